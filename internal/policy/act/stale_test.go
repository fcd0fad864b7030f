package act

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
)

// stale is a site whose cache has something expired.
func stale(t *testing.T, c siteConfig, rcode int, with ...string) *site {
	t.Helper()
	c.cache.MaxStale = time.Hour
	s := newSite(t, c)
	s.fill(www, dns.TypeA, rcode, with...)
	s.clock.Add(int64(2 * time.Minute))
	return s
}

// checkStale checks an answer from what has expired (RFC 8767 §4).
func checkStale(t *testing.T, c *client, m *dns.Msg) {
	t.Helper()
	if m.Rcode != 0 || !slices.Equal(records(m), []string{"www.example.\t30\tIN\tA\t192.0.2.1"}) {
		t.Errorf("answered %v, want what has expired, for 30 s", m)
	}
	checkError(t, m, edeStale)
	if c.Note.Source != serve.SourceStale || c.Note.Upstream != 7 || c.Note.EDE != edeStale+1 {
		t.Errorf("noted %+v", c.Note)
	}
}

// RFC 8767 §5: the upstream is asked first; the expired data is better than its
// failure, and for a while it is not asked again.
func TestForwardStaleFailure(t *testing.T) {
	for _, c := range []struct {
		name   string
		rcode  int
		change func(*dns.Msg)
	}{
		{"SERVFAIL", 2, nil},
		{"REFUSED", 5, nil},
		{"malformed", 0, func(m *dns.Msg) {
			m.Answer = []dns.RR{&dns.RFC3597{Hdr: dns.RR_Header{Name: www, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, Rdata: "c00002"}}
		}},
	} {
		s := stale(t, siteConfig{}, 0, wwwA)
		k := s.ask(www, dns.TypeA, edns)
		s.waits(k)
		change := c.change
		if change == nil {
			change = func(*dns.Msg) {}
		}
		s.up.answer(t, s.up.next(t), c.rcode, nil, change)
		checkStale(t, k, s.answer(k))
		s.clock.Add(int64(29 * time.Second))
		m, k := s.hit(www, dns.TypeA, edns)
		checkStale(t, k, m)
		s.unasked()
		s.clock.Add(int64(2 * time.Second))
		k = s.ask(www, dns.TypeA, edns)
		s.up.answer(t, s.up.next(t), 0, []string{"www.example. 60 IN A 192.0.2.2"})
		if m := s.answer(k); !slices.Equal(records(m), []string{"www.example.\t60\tIN\tA\t192.0.2.2"}) || k.Note.EDE != 0 {
			t.Errorf("%s: answered %v, want what is new", c.name, m)
		}
	}
}

// RFC 8914 §4.20: code 19 is Stale NXDOMAIN Answer.
func TestForwardStaleNXDomain(t *testing.T) {
	s := stale(t, siteConfig{}, 3, "soa")
	k := s.ask(www, dns.TypeA, edns)
	s.up.answer(t, s.up.next(t), 2, nil)
	m := s.answer(k)
	checkError(t, m, edeStaleNXDomain)
	if m.Rcode != dns.RcodeNameError || soaTTL(m) != 30 || k.Note.Source != serve.SourceStale {
		t.Errorf("answered %v", m)
	}
}

// An answer that is sound replaces what has expired, whether it may be kept or not.
func TestForwardStaleRefreshed(t *testing.T) {
	s := stale(t, siteConfig{}, 0, wwwA)
	k := s.ask(www, dns.TypeA, edns)
	s.up.answer(t, s.up.next(t), 3, []string{"soa"})
	if m := s.answer(k); m.Rcode != dns.RcodeNameError || k.Note.Source != serve.SourceForward {
		t.Errorf("answered %v", m)
	}
	s.hit(www, dns.TypeA)
}

// RFC 8767 §5: the client response timer. Who can have something expired does not
// wait for longer; the flight goes on, and fills the cache.
func TestForwardOverdue(t *testing.T) {
	s := stale(t, siteConfig{}, 0, wwwA)
	first, second := s.ask(www, dns.TypeA, edns), s.ask(www, dns.TypeA, edns, wantsDO)
	q := s.up.next(t)
	s.pass(cache.Patience - 10*time.Millisecond)
	s.waits(first)
	s.waits(second)
	s.pass(10 * time.Millisecond)
	for _, k := range []*client{first, second} {
		checkStale(t, k, s.answer(k))
		if k.starts.Load() != 2 || k.Pending != nil {
			t.Errorf("woken %d times, waits for %v", k.starts.Load()-1, k.Pending)
		}
	}
	for range 4 { // the other tries of the same exchange
		s.up.next(t)
	}
	late := s.ask(www, dns.TypeA, edns)
	if len(late.done) == 0 {
		t.Fatal("who is late waits, with something expired at hand")
	}
	checkStale(t, late, s.answer(late))
	s.unasked()
	if s.forward.Flights.Len() != 1 {
		t.Fatalf("%d flights, want the one that outlives its clients", s.forward.Flights.Len())
	}
	s.up.answer(t, q, 0, []string{"www.example. 60 IN A 192.0.2.2"})
	s.landed()
	m, _ := s.hit(www, dns.TypeA)
	if !slices.Equal(records(m), []string{"www.example.\t60\tIN\tA\t192.0.2.2"}) {
		t.Errorf("answered %v, want what the flight brought", m)
	}
	for _, k := range []*client{first, second, late} {
		if len(k.done) != 0 {
			t.Error("answered twice")
		}
	}
}

// landed waits until no flight is under way.
func (s *site) landed() {
	s.t.Helper()
	for begin := time.Now(); s.forward.Flights.Len() > 0; s.group.Tick(s.now()) {
		if time.Since(begin) > patience {
			s.t.Fatal("the flight does not end")
		}
	}
}

// expire makes the policy think that there is something expired, which is gone when
// it is wanted.
var expire = policy.Rule{Do: doing(func(r *serve.Request) policy.Next {
	r.Expired = true
	return policy.Go
})}

func TestForwardStaleGone(t *testing.T) {
	s := newSite(t, siteConfig{first: expire})
	k := s.ask(www, dns.TypeA, edns)
	q := s.up.next(t)
	s.pass(cache.Patience)
	s.waits(k)
	if n := k.starts.Load(); n != 2 {
		t.Errorf("woken %d times, want once", n-1)
	}
	late := s.ask(www, dns.TypeA, edns)
	s.waits(late)
	for range 3 { // the other tries
		s.up.next(t)
	}
	s.unasked()
	s.up.answer(t, q, 0, []string{wwwA})
	for _, k := range []*client{k, late} {
		if m := s.answer(k); len(m.Answer) != 1 || m.Answer[0].Header().Ttl != 60 || k.Note.Source != serve.SourceForward {
			t.Errorf("answered %v", m)
		}
	}
	// Gone when the upstream fails.
	k = s.ask("ftp.example.", dns.TypeA, edns)
	s.up.answer(t, s.up.next(t), 2, nil)
	m := s.answer(k)
	checkError(t, m, edeNetwork)
	if m.Rcode != dns.RcodeServerFailure {
		t.Errorf("answered %v", m)
	}
}

// Expired data that needs more room gets it, and one reason, and the upstream is
// not asked a second time.
func TestForwardStaleLarge(t *testing.T) {
	var large []string
	for i := range 30 {
		large = append(large, fmt.Sprintf("www.example. 60 IN TXT \"%03d%s\"", i, strings.Repeat("x", 250)))
	}
	s := newSite(t, siteConfig{cache: cache.Config{MaxStale: time.Hour}})
	k := s.put(overTCP, query(t, www, dns.TypeTXT))
	s.up.answer(t, s.up.next(t), 0, large)
	s.answer(k)
	s.clock.Add(int64(2 * time.Minute))
	k = s.put(overTCP, query(t, www, dns.TypeTXT, edns))
	s.up.answer(t, s.up.next(t), 2, nil)
	for range 2 {
		m := s.answer(k)
		checkError(t, m, edeStale)
		if len(m.Answer) != 30 || m.Truncated || m.Answer[0].Header().Ttl != 30 {
			t.Errorf("%d records, TC %v", len(m.Answer), m.Truncated)
		}
		k = s.put(overTCP, query(t, www, dns.TypeTXT, edns))
	}
	s.unasked()
}

// Clients come, the upstream answers, fails and is silent, and Patience ends, all at
// once: every client is answered once, with what it asked for.
func TestForwardStaleConcurrent(t *testing.T) {
	const workers, each = 4, 150
	s := newSite(t, siteConfig{cache: cache.Config{MaxStale: time.Hour}})
	var clients, others sync.WaitGroup
	others.Go(func() {
		for n := 0; ; n++ {
			q := <-s.up.got
			switch {
			case len(q.raw) == 0:
				return
			case n%7 == 3:
				s.up.answer(t, q, 2, nil)
			case n%3 != 1:
				m := q.msg(t)
				s.up.answer(t, q, 0, []string{m.Question[0].Name + " 1 IN TXT " + m.Question[0].Name})
			}
		}
	})
	done := make(chan struct{})
	others.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				s.pass(10 * time.Millisecond)
				runtime.Gosched()
			}
		}
	})
	for w := range workers {
		clients.Go(func() {
			for i := range each {
				name := fmt.Sprintf("n%d.example.", (i+w)%3)
				c := s.ask(name, dns.TypeTXT, edns)
				m := s.answer(c)
				if m.Rcode == 0 && (len(m.Answer) != 1 || !strings.Contains(m.Answer[0].String(), "\""+name+"\"")) || m.Rcode != 0 && m.Rcode != 2 {
					t.Errorf("%s: answered %v", name, m)
				}
				if len(c.done) != 0 || c.Pending != nil {
					t.Errorf("%s: answered twice, or still waiting for %v", name, c.Pending)
				}
			}
		})
	}
	clients.Wait()
	close(done)
	s.up.got <- asked{}
	others.Wait()
	for s.forward.Flights.Len() > 0 {
		s.pass(10 * time.Millisecond)
	}
}

// One of all who hit asks again behind its answer, and the answer of that is there
// for the next.
func TestForwardAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		conf  cache.Config
		after time.Duration
		ttl   string
	}{
		{"shortly before its end", cache.Config{Prefetch: true}, 56 * time.Second, "4"},
		{"expired, and given at once", cache.Config{MaxStale: time.Hour, Immediate: true}, 90 * time.Second, "30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, siteConfig{cache: c.conf})
			s.fill(www, dns.TypeA, 0, wwwA)
			s.hit(www, dns.TypeA)
			s.unasked()
			s.clock.Add(int64(c.after))
			want := "www.example.\t" + c.ttl + "\tIN\tA\t192.0.2.1"
			for range 5 {
				if m, _ := s.hit(www, dns.TypeA); !slices.Equal(records(m), []string{want}) {
					t.Errorf("answered %v, want %s", m, want)
				}
			}
			if n := s.again.Load(); n != 1 || s.forks.Len() != 1 {
				t.Errorf("asked again %d times, %d at work; want once", n, s.forks.Len())
			}
			s.up.answer(t, s.up.next(t), 0, []string{"www.example. 60 IN A 192.0.2.2"})
			s.landed()
			for begin := time.Now(); s.forks.Len() > 0; {
				if time.Since(begin) > patience {
					t.Fatal("the copy does not end")
				}
			}
			m, _ := s.hit(www, dns.TypeA)
			if !slices.Equal(records(m), []string{"www.example.\t60\tIN\tA\t192.0.2.2"}) || s.again.Load() != 1 {
				t.Errorf("answered %v", m)
			}
			s.unasked()
		})
	}
}

func TestCacheAllocs(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	s := stale(t, siteConfig{ecs: true, cache: cache.Config{Immediate: true}}, 0, wwwA)
	s.fill("ftp.example.", dns.TypeA, 0, "ftp.example. 60 IN A 192.0.2.1")
	s.forward.Cache.Again = func(*serve.Request) {}
	for name, want := range map[string]serve.Source{www: serve.SourceStale, "ftp.example.": serve.SourceCache} {
		r := received(t, "192.0.2.1", overUDP, query(t, name, dns.TypeA, wantsDO))
		out := make([]byte, 1232)
		allocates(t, func() {
			r.Start(out)
			r.At, r.Route = s.now(), 1
			if s.forward.Cache.Do(r) != policy.Stop || r.Note.Source != want {
				t.Errorf("%s: %v", name, r.Note.Source)
			}
		})
	}
}
