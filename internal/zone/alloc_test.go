package zone_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
)

// TestAllocAnswer holds every kind of answer to no allocation, from the received
// octets to those that are sent.
func TestAllocAnswer(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tab := table(t, append(mixedZones(t), crossZones(t)...)...)
	cases := []struct {
		name  string
		q     testkit.Question
		rcode int
		check func(r *dns.Msg) bool // that the case is what it is called
	}{
		{"one RRset", testkit.Question{Name: "www.plain.test.", Type: dns.TypeA}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Answer) == 1 }},
		{"RRset with additional data", testkit.Question{Name: "multi.plain.test.", Type: dns.TypeMX}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Answer) == 3 && len(r.Extra) > 1 }},
		{"NXDOMAIN", testkit.Question{Name: "nothing.plain.test.", Type: dns.TypeA}, dns.RcodeNameError,
			func(r *dns.Msg) bool { return len(r.Ns) == 1 }},
		{"NODATA", testkit.Question{Name: "www.plain.test.", Type: dns.TypeMX}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Answer) == 0 && len(r.Ns) == 1 }},
		{"wildcard", testkit.Question{Name: "x.y.wild.plain.test.", Type: dns.TypeA}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Answer) == 1 }},
		{"referral", testkit.Question{Name: "x.sub.plain.test.", Type: dns.TypeA}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return !r.Authoritative && len(r.Extra) == 6-1 }},
		{"DNAME", testkit.Question{Name: "a.b.c.dname.plain.test.", Type: dns.TypeA}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Answer) == 3 }},
		{"endless DNAME", testkit.Question{Name: "a.dname-self.plain.test.", Type: dns.TypeA, TCP: true}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Answer) == 22 }},
		{"YXDOMAIN", testkit.Question{Name: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.dname-long.plain.test.", Type: dns.TypeA, TCP: true},
			dns.RcodeYXDomain, func(r *dns.Msg) bool { return len(r.Answer) == 1 }},
		{"chain of CNAME records", testkit.Question{Name: "alias2.plain.test.", Type: dns.TypeA}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Answer) == 3 }},
		{"CNAME into another zone", testkit.Question{Name: "any-wild.nsec.cross.example.", Type: dns.TypeA, DO: true}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Answer) == 4 }},
		{"ANY", testkit.Question{Name: "nsec.test.", Type: dns.TypeANY, TCP: true, DO: true}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Answer) > 10 }},
		{"signed RRset", testkit.Question{Name: "www.nsec.test.", Type: dns.TypeA, DO: true}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Answer) == 2 }},
		{"signed NXDOMAIN, NSEC", testkit.Question{Name: "nothing.nsec.test.", Type: dns.TypeA, DO: true}, dns.RcodeNameError,
			func(r *dns.Msg) bool { return len(r.Ns) == 6 }},
		{"signed NXDOMAIN, NSEC3", testkit.Question{Name: "nothing.optout.test.", Type: dns.TypeA, DO: true}, dns.RcodeNameError,
			func(r *dns.Msg) bool { return len(r.Ns) == 8 }},
		{"signed wildcard NODATA, NSEC3", testkit.Question{Name: "x.wild.optout.test.", Type: dns.TypeTXT, DO: true}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Ns) >= 6 }},
		{"insecure referral, NSEC3", testkit.Question{Name: "x.sub.optout.test.", Type: dns.TypeA, DO: true}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return !r.Authoritative && len(r.Ns) == 7 }},
		{"cut at 512 octets", testkit.Question{Name: "nsec3.test.", Type: dns.TypeDNSKEY, DO: true, Size: 512}, dns.RcodeSuccess,
			func(r *dns.Msg) bool { return len(r.Answer) == 4 || r.Truncated }},
		{"negative response cut", testkit.Question{Name: "nothing.nsec3.test.", Type: dns.TypeA, DO: true, Size: 512}, dns.RcodeNameError,
			func(r *dns.Msg) bool { return r.Truncated }},
		{"no zone of ours", testkit.Question{Name: "www.elsewhere.test.", Type: dns.TypeA}, dns.RcodeRefused,
			func(r *dns.Msg) bool { return len(r.Ns) == 0 }},
	}
	us := testkit.NewAsker(tab.Answer)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := us.Ask(t, c.q)
			if r.Rcode != c.rcode || !c.check(r) {
				t.Fatalf("not the answer that is meant:\n%v", r)
			}
			msg := c.q.Message(t)
			if n := testing.AllocsPerRun(200, func() { us.Exchange(msg, c.q.TCP) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// TestNotFound: nothing is written of a name that is in none of the zones.
func TestNotFound(t *testing.T) {
	tab := table(t, mixedZones(t)[0])
	before, after := 0, 0
	us := testkit.NewAsker(func(r *serve.Request) (wire.Rcode, bool) {
		before = r.Reply.Len()
		rcode, found := tab.Answer(r)
		after = r.Reply.Len()
		return rcode, found
	})
	r := us.Ask(t, testkit.Question{Name: "example.com.", Type: dns.TypeA})
	if r.Rcode != dns.RcodeRefused || r.Authoritative || before != after {
		t.Errorf("%d octets, then %d; response\n%v", before, after, r)
	}
}
