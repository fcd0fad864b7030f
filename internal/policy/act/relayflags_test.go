package act

import (
	"slices"
	"testing"

	"github.com/miekg/dns"
)

// RD, AD and CD of the client go to the upstream, DO does not; questions with other
// flags are other queries, also while the first is under way.
func TestRelayFlags(t *testing.T) {
	s := newSite(t, siteConfig{none: true})
	relay := &Relay{Asked: Asked{s.group, s.forward.Flights}, Numbers: []uint16{7}, Now: s.now}
	s.set = program(rule(relay))
	type flags struct{ rd, ad, cd bool }
	cases := []struct {
		name string
		with []how
		want flags
	}{
		{"plain", nil, flags{true, false, false}},
		{"AD", []how{wantsAD}, flags{true, true, false}},
		{"CD", []how{wantsCD}, flags{true, false, true}},
		{"AD and CD", []how{wantsAD, wantsCD}, flags{true, true, true}},
		{"no RD", []how{noRD}, flags{}},
	}
	var clients []*client
	for _, c := range cases {
		clients = append(clients, s.ask(www, dns.TypeA, c.with...), s.ask(www, dns.TypeA, append(slices.Clone(c.with), wantsDO)...))
	}
	var seen []flags
	for range cases {
		q := s.up.next(t)
		m := q.msg(t)
		if m.IsEdns0() == nil || m.IsEdns0().Do() {
			t.Errorf("asked %v", m)
		}
		seen = append(seen, flags{m.RecursionDesired, m.AuthenticatedData, m.CheckingDisabled})
		s.up.answer(t, q, 0, []string{wwwA}, func(m *dns.Msg) { m.AuthenticatedData = seen[len(seen)-1].ad })
	}
	s.unasked()
	for _, c := range cases {
		if !slices.Contains(seen, c.want) {
			t.Errorf("%s: no query with %v among %v", c.name, c.want, seen)
		}
	}
	for i, k := range clients {
		c := cases[i/2]
		if m := s.answer(k); len(m.Answer) != 1 || m.AuthenticatedData != (c.want.ad && !c.want.cd) || m.CheckingDisabled != c.want.cd {
			t.Errorf("%s: answered %v", c.name, m)
		}
	}
}
