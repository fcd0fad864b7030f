package act

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// scoped answers q for a part of its subnet, with an address.
func (s *site) scoped(q asked, scope byte, address string) {
	s.t.Helper()
	s.up.answer(s.t, q, 0, []string{"www.example. 60 IN A " + address}, func(m *dns.Msg) {
		for _, o := range q.msg(s.t).IsEdns0().Option {
			if e, ok := o.(*dns.EDNS0_SUBNET); ok {
				e.SourceScope = scope
				m.IsEdns0().Option = append(m.IsEdns0().Option, e)
			}
		}
	})
}

// ecsOf is the option that was sent, in octets; nil where there is none.
func ecsOf(t *testing.T, q asked) []byte {
	t.Helper()
	m := q.msg(t)
	o := m.IsEdns0()
	if len(o.Option) == 0 {
		return nil
	}
	if len(o.Option) != 1 || o.Option[0].Option() != wire.OptECS {
		t.Fatalf("sent %v", m)
	}
	return q.raw[len(q.raw)-len(appendSubnet(nil, prefixOf(t, o.Option[0].(*dns.EDNS0_SUBNET)))):]
}

// RFC 7871 §7.1: what is sent on.
func TestECSSent(t *testing.T) {
	for _, c := range []struct {
		name string
		pass bool
		with how
		want string // "" is no option
	}{
		{"a client's address is cut", true, option(wire.OptECS, "\x00\x01\x20\x00\xc0\x00\x02\x81"), "0008 0007 0001 18 00 c00002"},
		{"a shorter prefix stays", true, subnet("192.0.0.0/16"), "0008 0006 0001 10 00 c000"},
		{"IPv6", true, subnet("2001:db8:1:2:3::/80"), "0008 000b 0002 38 00 20010db8000100"},
		{"nothing is to be told", true, subnet("0.0.0.0/0"), "0008 0004 0001 00 00"},
		{"none", true, edns, ""},
		{"malformed", true, option(wire.OptECS, "\x00\x01\x18\x00\xc0\x00"), ""},
		{"not to be passed on", false, subnet("192.0.2.0/24"), ""},
	} {
		s := newSite(t, siteConfig{ecs: c.pass})
		k := s.ask(www, dns.TypeA, c.with)
		q := s.up.next(t)
		if got := ecsOf(t, q); !bytes.Equal(got, unhex(t, c.want)) {
			t.Errorf("%s: sent %x, want %s", c.name, got, c.want)
		}
		s.scoped(q, 0, "192.0.2.1")
		if m := s.answer(k); len(m.Answer) != 1 {
			t.Errorf("%s: answered %v", c.name, m)
		}
	}
}

// RFC 7871 §7.3.1: who gets which answer.
func TestECSAnswers(t *testing.T) {
	s := newSite(t, siteConfig{ecs: true})
	for _, c := range []struct {
		name  string
		with  how
		scope int    // of the answer; -1 is that the upstream must not be asked
		want  string // address
	}{
		{"a subnet", subnet("192.0.2.0/24"), 24, "10.0.0.1"},
		{"the same", subnet("192.0.2.128/25"), -1, "10.0.0.1"},
		{"another", subnet("192.0.3.0/24"), 24, "10.0.0.2"},
		{"the first again", subnet("192.0.2.0/24"), -1, "10.0.0.1"},
		{"less than was asked for is not enough", subnet("192.0.0.0/16"), 16, "10.0.0.3"},
		{"the longest is taken", subnet("192.0.3.0/24"), -1, "10.0.0.2"},
		{"within the shorter one", subnet("192.0.4.0/24"), -1, "10.0.0.3"},
		{"IPv6", subnet("2001:db8::/48"), 32, "10.0.0.4"},
		{"within the scope that it had", subnet("2001:db8:ffff::/48"), -1, "10.0.0.4"},
		{"no subnet: for where we are", edns, 0, "10.0.0.5"},
		{"no subnet again", edns, -1, "10.0.0.5"},
		{"told to tell nothing: as without", subnet("0.0.0.0/0"), -1, "10.0.0.5"},
		{"what is for where we are is not for a subnet", subnet("198.51.100.0/24"), 0, "10.0.0.6"},
		{"scope 0 is for every subnet", subnet("203.0.113.0/24"), -1, "10.0.0.6"},
		{"of either family", subnet("2001:db9::/48"), -1, "10.0.0.6"},
		{"but for those with one of their own", subnet("192.0.2.0/24"), -1, "10.0.0.1"},
	} {
		k := s.ask(www, dns.TypeA, c.with)
		if c.scope >= 0 {
			s.scoped(s.up.next(t), byte(c.scope), c.want)
		}
		if c.scope < 0 && len(k.done) == 0 {
			t.Fatalf("%s: the upstream is asked", c.name)
		}
		if m := s.answer(k); !slices.Equal(records(m), []string{"www.example.\t60\tIN\tA\t" + c.want}) {
			t.Errorf("%s: answered %v, want %s", c.name, m, c.want)
		}
	}
	s.unasked()
}

// Flights are apart by subnet, cut as it is sent.
func TestECSFlights(t *testing.T) {
	s := newSite(t, siteConfig{ecs: true})
	one, same, other, none := s.ask(www, dns.TypeA, subnet("192.0.2.0/32")), s.ask(www, dns.TypeA, subnet("192.0.2.128/25")),
		s.ask(www, dns.TypeA, subnet("192.0.3.0/24")), s.ask(www, dns.TypeA)
	for range 3 {
		q := s.up.next(t)
		address := "10.0.0.9"
		if e := ecsOf(t, q); e != nil {
			address = "10.0.0." + string('0'+e[len(e)-1])
		}
		s.scoped(q, 24, address)
	}
	for i, c := range []struct {
		k    *client
		want string
	}{{one, "10.0.0.2"}, {same, "10.0.0.2"}, {other, "10.0.0.3"}, {none, "10.0.0.9"}} {
		if m := s.answer(c.k); !slices.Equal(records(m), []string{"www.example.\t60\tIN\tA\t" + c.want}) {
			t.Errorf("client %d: answered %v, want %s", i, m, c.want)
		}
	}
	s.unasked()
}

// RFC 7871 §7.3: a response for another subnet is dropped.
func TestECSForeign(t *testing.T) {
	s := newSite(t, siteConfig{ecs: true})
	k := s.ask(www, dns.TypeA, subnet("192.0.2.0/24"))
	s.up.answer(t, s.up.next(t), 0, []string{wwwA}, func(m *dns.Msg) {
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: wire.OptECS, Data: []byte("\x00\x01\x18\x18\xc0\x00\x03")}}
	})
	m := s.answer(k)
	checkError(t, m, edeInvalidData)
	if m.Rcode != dns.RcodeServerFailure {
		t.Errorf("answered %v", m)
	}
	// The failure is theirs alone who asked for that subnet.
	k = s.ask(www, dns.TypeA, subnet("192.0.3.0/24"))
	s.scoped(s.up.next(t), 24, "192.0.2.1")
	s.answer(k)
}

// A subnet with an expired answer of its own does not ask at every query when the
// upstream fails (RFC 8767 §5), though the failure says that it is for everyone.
func TestECSStale(t *testing.T) {
	s := newSite(t, siteConfig{ecs: true, cache: cache.Config{MaxStale: time.Hour}})
	k := s.ask(www, dns.TypeA, subnet("192.0.2.0/24"), edns)
	s.scoped(s.up.next(t), 24, "192.0.2.1")
	s.answer(k)
	s.clock.Add(int64(2 * time.Minute))
	k = s.ask(www, dns.TypeA, subnet("192.0.2.0/24"))
	s.up.answer(t, s.up.next(t), 2, nil)
	checkStale(t, k, s.answer(k))
	m, k := s.hit(www, dns.TypeA, subnet("192.0.2.0/24"))
	checkStale(t, k, m)
	if k.Note.Source != serve.SourceStale {
		t.Errorf("noted %+v", k.Note)
	}
}

// RFC 7871 §7.2.2: who gives a subnet is told whom the answer is for, from the
// upstream as from the cache; who gives none is not.
func TestECSBack(t *testing.T) {
	s := newSite(t, siteConfig{ecs: true})
	for i, with := range []how{subnet("192.0.2.0/24"), subnet("192.0.2.0/24"), edns} {
		k := s.ask(www, dns.TypeA, with)
		if i != 1 {
			s.scoped(s.up.next(t), 24, "10.0.0.1")
		}
		var got *dns.EDNS0_SUBNET
		for _, o := range s.answer(k).IsEdns0().Option {
			if e, ok := o.(*dns.EDNS0_SUBNET); ok {
				got = e
			}
		}
		if want := i < 2; (got != nil) != want || want && (got.SourceScope != 24 || got.SourceNetmask != 24 || got.Address.String() != "192.0.2.0") {
			t.Errorf("question %d: option %v", i+1, got)
		}
	}
}
