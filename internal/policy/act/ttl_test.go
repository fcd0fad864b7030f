package act

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/wire"
)

func TestTTL(t *testing.T) {
	const ( // TTLs in all sections
		answer    = "www.example. 0 IN A 192.0.2.1\nwww.example. 60 IN A 192.0.2.2"
		authority = "example. 300 IN NS ns.example."
		extra     = "ns.example. 86400 IN A 192.0.2.53"
	)
	for _, c := range []struct {
		args string
		want [4]uint32
	}{
		{"5", [4]uint32{5, 5, 5, 5}},
		{"0", [4]uint32{0, 60, 300, 86400}},
		{"100-600", [4]uint32{100, 100, 300, 600}},
		{"100-0", [4]uint32{100, 100, 300, 86400}},
		{"0-100", [4]uint32{0, 60, 100, 100}},
		{"0-0", [4]uint32{0, 60, 300, 86400}},
		{" 4294967295", [4]uint32{4294967295, 4294967295, 4294967295, 4294967295}},
		{"600-100", [4]uint32{100, 100, 100, 100}}, // least, then most
	} {
		a := made(t, plainEnv(), "ttl", c.args)
		m := done(t, asks(t, "www.example.", dns.TypeA, edns), rule(answers(t, wire.NoError, 0, answer, authority, extra)), rule(a))
		var got [4]uint32
		for i, rr := range []dns.RR{m.Answer[0], m.Answer[1], m.Ns[0], m.Extra[0]} {
			got[i] = rr.Header().Ttl
		}
		if got != c.want || m.IsEdns0() == nil || m.IsEdns0().UDPSize() != 1232 {
			t.Errorf("ttl %s: %d, want %d; response\n%v", c.args, got, c.want, m)
		}
	}
	r := asks(t, "www.example.", dns.TypeA)
	if next := made(t, plainEnv(), "ttl", "5").(policy.Step).Do(r); next != policy.Go || r.Out != nil {
		t.Errorf("without a response: next %d, response %x", next, r.Out)
	}
}

func TestDropResp(t *testing.T) {
	a := rule(made(t, plainEnv(), "drop_resp", "what stands here counts for nothing"))
	r := asks(t, "www.example.", dns.TypeA)
	before := answers(t, wire.NoError, 0, "www.example. 60 IN A 198.51.100.1")
	if m := done(t, r, rule(before), a); m.Rcode != dns.RcodeRefused || len(m.Answer) != 0 {
		t.Errorf("response\n%v", m)
	}
	// What comes behind it starts anew.
	after := answers(t, wire.NXDomain, 0, "", "example. 60 IN NS ns.example.")
	if m := done(t, asks(t, "www.example.", dns.TypeA), rule(before), a, rule(after)); m.Rcode != dns.RcodeNameError || len(m.Answer) != 0 || len(m.Ns) != 1 {
		t.Errorf("response\n%v", m)
	}
	if m := done(t, asks(t, "www.example.", dns.TypeA), a); m.Rcode != dns.RcodeRefused {
		t.Errorf("without a response: response\n%v", m)
	}
}
