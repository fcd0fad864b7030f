package act

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
)

func TestBlackHole(t *testing.T) {
	for _, c := range []struct {
		name, args string
		typ        uint16
		want       string
	}{
		{"A where there is IPv4", "192.0.2.1 2001:db8::1", dns.TypeA, "www.example. 300 IN A 192.0.2.1"},
		{"AAAA where there is IPv6", "192.0.2.1 2001:db8::1", dns.TypeAAAA, "www.example. 300 IN AAAA 2001:db8::1"},
		{"all addresses, in their order", "192.0.2.2 192.0.2.1", dns.TypeA, "www.example. 300 IN A 192.0.2.2\nwww.example. 300 IN A 192.0.2.1"},
		{"IPv4 in IPv6 is IPv6", "::ffff:192.0.2.1", dns.TypeAAAA, "www.example. 300 IN AAAA ::ffff:192.0.2.1"},
		{"no IPv6", "192.0.2.1", dns.TypeAAAA, ""},
		{"no IPv4", "2001:db8::1", dns.TypeA, ""},
		{"another type", "192.0.2.1 2001:db8::1", dns.TypeMX, ""},
		{"no address", "", dns.TypeA, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := made(t, plainEnv(), "black_hole", c.args)
			r := asks(t, "www.example.", c.typ)
			if c.want == "" {
				checkGoesOn(t, a, r)
				return
			}
			next := a.(policy.Step).Do(r)
			m := fitted(t, r)
			checkMade(t, r, next, m)
			if got := section(m.Answer); got != c.want {
				t.Errorf("answer\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// It stands in place of a response that is there.
func TestBlackHoleReplaces(t *testing.T) {
	before := answers(t, 3, 0, "www.example. 60 IN A 198.51.100.1", "example. 60 IN NS ns.example.")
	m := done(t, asks(t, "www.example.", dns.TypeA), rule(before), rule(made(t, plainEnv(), "black_hole", "192.0.2.1")))
	if got := section(m.Answer); got != "www.example. 300 IN A 192.0.2.1" || len(m.Ns) != 0 || m.Rcode != 0 {
		t.Errorf("response\n%v", m)
	}
}
