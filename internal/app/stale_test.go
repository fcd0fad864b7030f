package app

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/plan"
)

// staleSite is a forwarder with www.example in its cache, expired since a minute,
// and an upstream that is about to do what the test says.
func staleSite(t *testing.T, edit func(*plan.Cache)) (r *running, o *other, ahead *atomic.Int64) {
	o = newOther(t, gives(t, "60 A 192.0.2.1"))
	s := newSite(t)
	s.forward(nil, o)
	s.cached(edit)
	ahead = s.settable()
	r = s.run(nil)
	if m := r.ask("www.example", dns.TypeA); len(m.Answer) != 1 {
		t.Fatalf("answered %v", m)
	}
	ahead.Add(int64(2 * time.Minute))
	return r, o, ahead
}

// isStale tells whether m is the old answer as a stale one: TTL 30 (RFC 8767 §4).
func isStale(m *dns.Msg) bool {
	if m == nil {
		return false
	}
	data, ttl := told(m)
	return data == "192.0.2.1 " && ttl == 30
}

// RFC 8767 §5: the upstream has 1.8 s, then the client gets what there is; once it
// has failed, it is not tried for 30 s.
func TestStaleSilentUpstream(t *testing.T) {
	r, o, ahead := staleSite(t, nil)
	o.answers(silent)
	got := r.begin("www.example", dns.TypeA)
	r.flying(1)
	ahead.Add(int64(1700 * time.Millisecond))
	select {
	case m := <-got:
		t.Fatalf("answered before 1.8 s: %v", m)
	case <-time.After(50 * time.Millisecond): // five ticks
	}
	ahead.Add(int64(200 * time.Millisecond))
	if m := <-got; !isStale(m) {
		t.Fatalf("answered %v, want the stale answer", m)
	}
	// The flight goes on, and whoever comes now does not wait for it.
	r.flying(1)
	if m := r.ask("www.example", dns.TypeA); !isStale(m) {
		t.Errorf("behind 1.8 s: %v", m)
	}
	ahead.Add(int64(5 * time.Second))
	r.flying(0)
	before := o.asked.Load()
	for range 5 {
		if m := r.askEDNS("www.example", dns.TypeA, nil); !isStale(m) || ede(m) != int(dns.ExtendedErrorCodeStaleAnswer) {
			t.Errorf("behind the failure: %v", m)
		}
	}
	if n := o.asked.Load(); n != before {
		t.Errorf("asked %d times within 30 s of a failure", n-before)
	}
	o.answers(gives(t, "60 A 192.0.2.9"))
	ahead.Add(int64(31 * time.Second))
	if data, _ := told(r.ask("www.example", dns.TypeA)); data != "192.0.2.9 " {
		t.Errorf("when the upstream is back: %s", data)
	}
}

// A failed refresh erases nothing, and the client does not wait for 1.8 s.
func TestStaleFailingUpstream(t *testing.T) {
	for _, rcode := range []int{dns.RcodeServerFailure, dns.RcodeRefused, dns.RcodeNotImplemented} {
		r, o, _ := staleSite(t, nil)
		o.answers(fails(rcode))
		for range 3 {
			if m := r.ask("www.example", dns.TypeA); !isStale(m) {
				t.Errorf("%s: %v", dns.RcodeToString[rcode], m)
			}
		}
		o.answers(denies) // that is an answer
		if m := r.ask("www.example", dns.TypeA); !isStale(m) {
			t.Errorf("tried again within 30 s: %v", m)
		}
	}
}

// Nothing is given out beyond its greatest age.
func TestStaleTooOld(t *testing.T) {
	r, o, ahead := staleSite(t, func(c *plan.Cache) { c.Stale = time.Hour })
	o.answers(fails(dns.RcodeServerFailure))
	ahead.Add(int64(2 * time.Hour))
	if m := r.askEDNS("www.example", dns.TypeA, nil); m.Rcode != dns.RcodeServerFailure || ede(m) != int(dns.ExtendedErrorCodeNetworkError) {
		t.Errorf("answered %v", m)
	}
}

// stale: off gives out nothing.
func TestStaleOff(t *testing.T) {
	r, o, _ := staleSite(t, func(c *plan.Cache) { c.Stale = 0 })
	o.answers(fails(dns.RcodeServerFailure))
	if m := r.ask("www.example", dns.TypeA); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("answered %v", m)
	}
}

// stale: immediate answers at once and asks behind the answer, once.
func TestStaleImmediate(t *testing.T) {
	gate := make(chan struct{})
	r, o, _ := staleSite(t, func(c *plan.Cache) { c.Immediate = true })
	fresh := gives(t, "60 A 192.0.2.9")
	o.answers(func(q *dns.Msg, tcp bool) []*dns.Msg {
		<-gate
		return fresh(q, tcp)
	})
	for range 5 {
		if m := r.ask("www.example", dns.TypeA); !isStale(m) {
			t.Errorf("answered %v", m)
		}
	}
	r.flying(1)
	close(gate)
	r.flying(0)
	if data, ttl := told(r.ask("www.example", dns.TypeA)); data != "192.0.2.9 " || ttl < 55 {
		t.Errorf("behind the refresh: %s %d", data, ttl)
	}
}

// A popular name is fetched anew in the last tenth of its life, once; another is
// not.
func TestPrefetch(t *testing.T) {
	o := newOther(t, gives(t, "600 A 192.0.2.1"))
	s := newSite(t)
	s.forward(nil, o)
	s.cached(nil)
	ahead := s.settable()
	r := s.run(nil)
	for range 3 {
		r.ask("popular.example", dns.TypeA)
	}
	r.ask("rare.example", dns.TypeA)
	ahead.Add(int64(500 * time.Second))
	r.ask("popular.example", dns.TypeA)
	if n := o.asked.Load(); n != 2 {
		t.Fatalf("asked %d times while there is time", n)
	}
	ahead.Add(int64(60 * time.Second))
	for range 3 {
		r.ask("popular.example", dns.TypeA)
	}
	r.ask("rare.example", dns.TypeA)
	r.await("the refresh", func() bool { return o.asked.Load() == 3 && r.world.Load().engines.flights.Len() == 0 })
	if _, ttl := told(r.ask("popular.example", dns.TypeA)); ttl < 590 {
		t.Errorf("TTL %d, want that of the refresh", ttl)
	}
	if n := o.asked.Load(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
}
