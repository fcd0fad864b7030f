package app

import (
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/plan"
)

// One of two upstreams does everything wrong that one can, and nobody sees it:
// every name is answered, by the good one.
func TestFaultOneOfTwo(t *testing.T) {
	wrongID := func(q *dns.Msg, _ bool) []*dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.Id++
		return []*dns.Msg{m}
	}
	wrongQuestion := func(q *dns.Msg, _ bool) []*dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.Question[0].Name = "wrong.example."
		return []*dns.Msg{m}
	}
	for _, c := range []struct {
		name    string
		respond func(*dns.Msg, bool) []*dns.Msg
	}{
		{"silent", silent},
		{"SERVFAIL", fails(dns.RcodeServerFailure)},
		{"REFUSED", fails(dns.RcodeRefused)},
		{"NOTIMP", fails(dns.RcodeNotImplemented)},
		{"wrong ID", wrongID},
		{"wrong question", wrongQuestion},
		{"closed port", nil},
	} {
		for _, selects := range []string{"fastest", "random", "order", "race"} {
			t.Run(c.name+" "+selects, func(t *testing.T) {
				respond := c.respond
				if respond == nil {
					respond = silent
				}
				bad, good := newOther(t, respond), newOther(t, gives(t, "60 A 192.0.2.1"))
				if c.respond == nil {
					for _, s := range bad.servers {
						_ = s.Shutdown()
					}
				}
				s := newSite(t)
				s.forward(func(f *plan.Forward) { f.Select, f.Timeout = selects, patience }, bad, good)
				r := s.run(nil)
				for i := range 20 {
					name := fmt.Sprintf("n%d.example", i)
					if m := r.ask(name, dns.TypeA); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 1 {
						t.Fatalf("%s: %v", name, m)
					}
				}
			})
		}
	}
}

// An upstream that truncates is asked over TCP, and the client gets all of it,
// cut to what it takes.
func TestFaultTruncating(t *testing.T) {
	var records []string
	for i := range 100 {
		records = append(records, fmt.Sprintf("60 A 192.0.2.%d", i+1))
	}
	whole := gives(t, records...)
	o := newOther(t, func(q *dns.Msg, tcp bool) []*dns.Msg {
		m := whole(q, tcp)
		if !tcp {
			m[0].Truncated, m[0].Answer = true, nil
		}
		return m
	})
	s := newSite(t)
	s.forward(nil, o)
	s.cached(nil)
	r := s.run(nil)
	q := new(dns.Msg)
	q.SetQuestion("big.example.", dns.TypeA)
	for range 2 { // from the upstream, then from the cache
		if m := r.exchange("udp", q); !m.Truncated {
			t.Errorf("over UDP: %v", m)
		}
		if m := r.exchange("tcp", q); m.Truncated || len(m.Answer) != 100 {
			t.Errorf("over TCP: %d records, TC %v", len(m.Answer), m.Truncated)
		}
	}
	if n := o.asked.Load(); n != 2 {
		t.Errorf("asked %d times, want UDP and TCP once", n)
	}
}

// An upstream that answers every query twice is no reason for anything.
func TestFaultTwice(t *testing.T) {
	once := gives(t, "60 A 192.0.2.1")
	o := newOther(t, func(q *dns.Msg, tcp bool) []*dns.Msg {
		m := once(q, tcp)
		return append(m, m...)
	})
	s := newSite(t)
	s.forward(nil, o)
	r := s.run(nil)
	for i := range 200 {
		if m := r.ask(fmt.Sprintf("n%d.example", i), dns.TypeA); len(m.Answer) != 1 {
			t.Fatalf("answered %v", m)
		}
	}
	st := r.world.Load().engines.groups[0].Status(r.now())[0]
	if st.TCPQueries > 0 || !st.Healthy {
		t.Errorf("%+v", st)
	}
}

// When nobody answers, the client is told so within the total deadline, with an
// extended error; soon after, the upstream is tried again.
func TestFaultAllDead(t *testing.T) {
	o := newOther(t, silent)
	s := newSite(t)
	s.forward(nil, o)
	s.cached(nil)
	ahead := s.settable()
	r := s.run(nil)
	got := r.begin("www.example", dns.TypeA)
	r.flying(1)
	ahead.Add(int64(3 * time.Second))
	select {
	case m := <-got:
		t.Fatalf("given up after 3 s: %v", m)
	case <-time.After(50 * time.Millisecond):
	}
	ahead.Add(int64(1100 * time.Millisecond))
	if m := <-got; m == nil || m.Rcode != dns.RcodeServerFailure {
		t.Fatalf("answered %v", m)
	}
	before := o.asked.Load()
	m := r.askEDNS("www.example", dns.TypeA, nil)
	if m.Rcode != dns.RcodeServerFailure || ede(m) != int(dns.ExtendedErrorCodeNoReachableAuthority) || o.asked.Load() != before {
		t.Errorf("right behind (RFC 9520 §3.2): %v, asked %d times", m, o.asked.Load()-before)
	}
	o.answers(gives(t, "60 A 192.0.2.1"))
	ahead.Add(int64(1100 * time.Millisecond))
	if m := r.ask("www.example", dns.TypeA); len(m.Answer) != 1 {
		t.Errorf("when the upstream is back: %v", m)
	}
}

// What an upstream sends that is no sound response is not passed on.
func TestFaultGarbage(t *testing.T) {
	o := newOther(t, func(q *dns.Msg, _ bool) []*dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.Answer = []dns.RR{&dns.RFC3597{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, Rdata: "0102"}}
		return []*dns.Msg{m}
	})
	s := newSite(t)
	s.forward(nil, o)
	s.cached(nil)
	r := s.run(nil)
	if m := r.askEDNS("www.example", dns.TypeA, nil); m.Rcode != dns.RcodeServerFailure || ede(m) != int(dns.ExtendedErrorCodeInvalidData) {
		t.Errorf("answered %v", m)
	}
}
