package app

import (
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/stats"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Forwarding is for those who are allowed; our zones are for everyone who is not
// denied. The cache is no way around it.
func TestAccessForwarding(t *testing.T) {
	prefixes := func(texts ...string) (list []netip.Prefix) {
		for _, text := range texts {
			list = append(list, netip.MustParsePrefix(text))
		}
		return list
	}
	for _, c := range []struct {
		name           string
		access         plan.Access
		zone, forward  int
		forwardEDE     int
		recursionAvail bool
	}{
		{"private networks, from the start", plan.Access{}, dns.RcodeSuccess, dns.RcodeSuccess, -1, true},
		{"others are allowed", plan.Access{Allow: prefixes("192.0.2.0/24")}, dns.RcodeSuccess, dns.RcodeRefused, 18, false},
		{"nobody is allowed", plan.Access{Allow: []netip.Prefix{}}, dns.RcodeSuccess, dns.RcodeRefused, 18, false},
		{"denied", plan.Access{Deny: prefixes("127.0.0.0/8")}, dns.RcodeRefused, dns.RcodeRefused, 18, false},
		{"denied, but for one", plan.Access{Deny: prefixes("127.0.0.0/8"), Allow: prefixes("127.0.0.1/32")}, dns.RcodeSuccess, dns.RcodeSuccess, -1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOther(t, gives(t, "60 A 192.0.2.1"))
			s := newSite(t)
			s.zone("example.org", zoneText(1))
			s.forward(nil, o)
			s.cached(nil)
			s.plan.Access = c.access
			r := s.run(nil)
			for range 2 {
				if m := r.ask("example.org", dns.TypeNS); m.Rcode != c.zone || m.RecursionAvailable != c.recursionAvail {
					t.Errorf("our zone: %v", m)
				}
				if m := r.askEDNS("www.example.com", dns.TypeA, nil); m.Rcode != c.forward || ede(m) != c.forwardEDE || m.RecursionAvailable != c.recursionAvail {
					t.Errorf("forwarding: %v", m)
				}
			}
		})
	}
}

// A listener may have its own lists.
func TestAccessOfListener(t *testing.T) {
	o := newOther(t, gives(t, "60 A 192.0.2.1"))
	s := newSite(t)
	s.forward(nil, o)
	s.plan.Access.Listeners = []plan.ListenerAccess{{Listen: s.plan.Listen[1], Allow: []netip.Prefix{}}}
	r := s.run(nil)
	q := new(dns.Msg)
	q.SetQuestion("www.example.", dns.TypeA)
	if m := r.exchange("udp", q); m.Rcode != dns.RcodeSuccess {
		t.Errorf("the listener without lists: %v", m)
	}
	if m := r.exchange("tcp", q); m.Rcode != dns.RcodeRefused {
		t.Errorf("the listener that allows nobody: %v", m)
	}
}

// A view has its own zones, upstreams and cache entries.
func TestViews(t *testing.T) {
	inside, outside := newOther(t, gives(t, "60 A 192.0.2.1")), newOther(t, gives(t, "60 A 192.0.2.2"))
	s := newSite(t)
	s.plan.Views = []plan.View{{Name: "tcp", Listen: []plan.Listen{s.plan.Listen[1]}}}
	s.zone("example.org", zoneText(1))
	s.plan.Zones = append(s.plan.Zones, s.plan.Zones[0])
	s.write("inside", zoneText(7))
	s.plan.Zones[1].File, s.plan.Zones[1].Views = s.dir+"/inside", []string{"tcp"}
	s.forward(nil, outside)
	s.forward(func(f *plan.Forward) { f.Views = []string{"tcp"} }, inside)
	s.cached(nil)
	r := s.run(nil)
	for range 2 {
		for network, want := range map[string]struct {
			serial uint32
			addr   string
		}{"udp": {1, "192.0.2.2 "}, "tcp": {7, "192.0.2.1 "}} {
			q := new(dns.Msg)
			q.SetQuestion("example.org.", dns.TypeSOA)
			if m := r.exchange(network, q); len(m.Answer) != 1 || m.Answer[0].(*dns.SOA).Serial != want.serial {
				t.Errorf("zone over %s: %v", network, m)
			}
			q.SetQuestion("www.example.", dns.TypeA)
			if data, _ := told(r.exchange(network, q)); data != want.addr {
				t.Errorf("forwarded over %s: %s, want %s", network, data, want.addr)
			}
		}
	}
	if inside.asked.Load() != 1 || outside.asked.Load() != 1 {
		t.Errorf("asked %d and %d times, want once each", inside.asked.Load(), outside.asked.Load())
	}
}

// A client over its rate is told to come over TCP, or gets nothing; it is counted,
// and one with a good cookie passes.
func TestRateLimit(t *testing.T) {
	for _, truncate := range []bool{true, false} {
		s := newSite(t)
		s.zone("example.org", zoneText(1))
		s.plan.Limits.Rate = plan.Rate{Set: true, PerSecond: 1, Burst: 5, IPv4: 32, IPv6: 64, Truncate: truncate}
		r := s.run(nil)
		query := new(dns.Msg)
		query.SetQuestion("example.org.", dns.TypeSOA)
		query.SetEdns0(1232, false)
		cookie := &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"}
		query.IsEdns0().Option = []dns.EDNS0{cookie}
		m := r.exchange("udp", query) // takes the first of five
		given, ok := m.IsEdns0().Option[0].(*dns.EDNS0_COOKIE)
		if !ok || len(given.Cookie) != 48 || given.Cookie[:16] != cookie.Cookie {
			t.Fatalf("no cookie in %v", m)
		}
		for range 4 {
			if m := r.ask("example.org", dns.TypeSOA); len(m.Answer) != 1 {
				t.Fatalf("within the burst: %v", m)
			}
		}
		if truncate {
			if m := r.ask("example.org", dns.TypeSOA); !m.Truncated || len(m.Answer) != 0 {
				t.Errorf("over the rate: %v", m)
			}
		} else {
			c := &dns.Client{Timeout: 100 * time.Millisecond}
			plain := new(dns.Msg)
			plain.SetQuestion("example.org.", dns.TypeSOA)
			if m, _, err := c.Exchange(plain, r.udp); err == nil {
				t.Errorf("over the rate: %v", m)
			}
		}
		if m := r.exchange("udp", query); m.Rcode != dns.RcodeBadCookie {
			t.Errorf("over the rate, with a client's cookie alone: %v", m)
		}
		cookie.Cookie = given.Cookie
		for range 10 {
			if m := r.exchange("udp", query); len(m.Answer) != 1 {
				t.Fatalf("with a good cookie: %v", m)
			}
		}
		plain := new(dns.Msg)
		plain.SetQuestion("example.org.", dns.TypeSOA)
		if m := r.exchange("tcp", plain); len(m.Answer) != 1 {
			t.Errorf("over TCP: %v", m)
		}
		counter, want := stats.LimitedRate, uint64(2)
		if !truncate {
			want = 1
			if n := r.total(stats.DroppedRate); n != 1 {
				t.Errorf("%d counted as dropped, want 1", n)
			}
		}
		if n := r.total(counter); n != want {
			t.Errorf("%d counted as limited, want %d", n, want)
		}
	}
}

// total is a counter, over all listeners.
func (r *running) total(c stats.Counter) (n uint64) {
	for _, src := range r.workers.all() {
		sum := src.sum()
		n += sum[c]
	}
	return n
}

// Forged queries for one name get few answers; every second of the others is one
// that a real client can do something with.
func TestRRLSlips(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	s.plan.Limits.RRL = plan.RRL{PerSecond: 2, Slip: 1, IPv4: 24, IPv6: 56}
	ahead := s.settable()
	r := s.run(nil)
	slipped := 0
	for range 20 {
		if m := r.ask("example.org", dns.TypeSOA); m.Truncated && len(m.Answer) == 0 {
			slipped++
		}
	}
	if slipped < 10 || slipped > 18 {
		t.Errorf("%d of 20 slipped", slipped)
	}
	if m := r.ask("example.org", dns.TypeNS); len(m.Answer) != 1 {
		t.Errorf("another question: %v", m)
	}
	ahead.Add(int64(time.Minute))
	if m := r.ask("example.org", dns.TypeSOA); len(m.Answer) != 1 {
		t.Errorf("a minute later: %v", m)
	}
	if n := r.total(stats.LimitedRRL); n != uint64(slipped) {
		t.Errorf("%d counted, want %d", n, slipped)
	}
}

// Beyond the places for requests that wait, what is in the cache is still
// answered, and what was shed is counted.
func TestShedMissesNotHits(t *testing.T) {
	o := newOther(t, gives(t, "600 A 192.0.2.1"))
	s := newSite(t)
	s.forward(func(f *plan.Forward) { f.Timeout = patience }, o)
	s.cached(nil)
	s.plan.Server.Parked = 4
	s.listen("udp", "127.0.0.1:0")
	r := s.run(nil)
	r.ask("hit.example", dns.TypeA) // the client is known from now on
	gate := make(chan struct{})
	fresh := gives(t, "600 A 192.0.2.2")
	o.answers(func(q *dns.Msg, tcp bool) []*dns.Msg {
		<-gate
		return fresh(q, tcp)
	})
	var waiting []<-chan *dns.Msg
	for i := range 4 {
		name := wire.Name{1, 'a' + byte(i), 0}
		waiting = append(waiting, r.begin(name.String(), dns.TypeA))
	}
	r.await("four that wait", func() bool { return r.parked.Len() == 4 })
	c := &dns.Client{Timeout: 100 * time.Millisecond}
	q := new(dns.Msg)
	q.SetQuestion("too.many.example.", dns.TypeA)
	if m, _, err := c.Exchange(q, r.udp); err == nil {
		t.Errorf("beyond the places: %v", m)
	}
	if m := r.ask("hit.example", dns.TypeA); len(m.Answer) != 1 {
		t.Errorf("a hit: %v", m)
	}
	close(gate)
	for _, got := range waiting {
		if m := <-got; m == nil || len(m.Answer) != 1 {
			t.Errorf("one that waited: %v", m)
		}
	}
	if n := r.total(stats.Shed); n != 1 {
		t.Errorf("%d counted as shed, want 1", n)
	}
}
