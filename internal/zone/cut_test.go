package zone_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
)

// TestGlueBeyondTheBuffer: glue below the cut has to fit (RFC 9471 section 3),
// also where it is the buffer that ends and not the client's limit.
func TestGlueBeyondTheBuffer(t *testing.T) {
	tab := table(t, testkit.Records(t, "example.org.", "@ 60 SOA a b 1 2 3 4 5\n"+
		"$GENERATE 1-30 in NS ns${0,2}.in\n$GENERATE 1-30 ns${0,2}.in AAAA 2001:db8::$\n"+
		"$GENERATE 1-30 out NS ns${0,2}.other\n$GENERATE 1-30 ns${0,2}.other AAAA 2001:db8::$\n"))
	for name, want := range map[string]bool{"x.in.example.org.": true, "x.out.example.org.": false} {
		var r serve.Request
		r.Peer = &serve.Peer{Proto: serve.TCP}
		r.Receive(testkit.Question{Name: name, Type: dns.TypeA}.Message(t), make([]byte, wire.MinBuffer+600))
		rcode, _ := tab.Answer(&r)
		r.Finish(rcode)
		m := new(dns.Msg)
		if err := m.Unpack(r.Fit(testkit.UDPSize)); err != nil {
			t.Fatal(err)
		}
		if m.Truncated != want || len(m.Ns) != 30 || len(m.Extra) == 0 || len(m.Extra) == 30 {
			t.Errorf("%s: TC %t, want %t; %d records of glue", name, m.Truncated, want, len(m.Extra))
		}
	}
}
