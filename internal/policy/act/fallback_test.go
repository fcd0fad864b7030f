package act

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// late is a step that takes its time and then answers with an address, with a code
// alone, with nothing, or fails.
type late struct {
	after  time.Duration
	answer byte // last octet of the address; 0 is no response
	rcode  wire.Rcode
	typ    uint16 // of the address, for questions of that type only; 0 is A
	fails  bool
	ran    *int
}

func (l late) Start(r *serve.Request) policy.Next {
	if r.Pending == nil && l.after > 0 {
		r.Pending = l
		waker := r.Waker
		time.AfterFunc(l.after, waker.Wake)
		return policy.Pend
	}
	r.Pending = nil
	if l.ran != nil {
		*l.ran++
	}
	if l.fails {
		return policy.Fail
	}
	if l.rcode != 0 || l.answer != 0 {
		r.Empty()
		typ, rdata := uint16(wire.TypeA), []byte{0, 4, 192, 0, 2, l.answer}
		if r.Ask.Type == wire.TypeAAAA {
			typ, rdata = wire.TypeAAAA, append([]byte{0, 16}, append(make([]byte, 15), l.answer)...)
		}
		if l.answer != 0 && (l.typ == 0 || l.typ == r.Ask.Type) {
			r.Reply.Add(wire.Answer, r.Ask.Name, &wire.RRset{Type: typ, Class: wire.ClassIN, TTL: 60, Count: 1, RDATA: rdata}, nil)
		}
		r.Finish(l.rcode)
	}
	return policy.Go
}

// waker is told that a request goes on.
type waker struct{ woken chan struct{} }

func (w waker) Wake() { w.woken <- struct{}{} }

// played is what became of a request that ran a set of programs, and when.
type played struct {
	took  time.Duration
	rcode wire.Rcode
	last  byte // last octet of the answer, 0 without one
}

// play runs a question through the programs in synthetic time.
func play(t *testing.T, typ uint16, programs func(run *policy.Runner) []policy.Program) (got played) {
	t.Helper()
	forks := policy.NewForks(t.Context(), 100)
	run := &policy.Runner{Forks: forks}
	run.Set = &policy.Set{Programs: programs(run)}
	var r serve.Request
	received(t, "192.0.2.1", overUDP, query(t, "www.example.", typ)).Detach(&r, make([]byte, 512), make([]byte, 4096))
	w := waker{make(chan struct{}, 1)}
	r.Waker = w
	begin := time.Now()
	for run.Set.Start(&r) == serve.Pending {
		<-w.woken
	}
	got.took, got.rcode = time.Since(begin), r.Reply.Rcode()
	var m dns.Msg
	if err := m.Unpack(r.Fit(1232)); err != nil {
		t.Fatal(err)
	}
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			got.last = rr.A[len(rr.A)-1]
		case *dns.AAAA:
			got.last = rr.AAAA[15]
		}
	}
	time.Sleep(time.Minute) // those that lost end too
	synctest.Wait()
	if n := forks.Len(); n != 0 {
		t.Errorf("%d branches are left", n)
	}
	return got
}

const ms = time.Millisecond

// The timing of fallback, a row for each sentence about it.
func TestFallback(t *testing.T) {
	for _, c := range []struct {
		name               string
		primary, secondary late
		standby            bool
		want               played
		second             int // how often the second ran
	}{
		{"the first answers at once", late{answer: 1}, late{answer: 2}, false, played{0, 0, 1}, 0},
		{"the first answers in time", late{after: 100 * ms, answer: 1}, late{answer: 2}, false, played{100 * ms, 0, 1}, 0},
		{"any code is an answer", late{after: 100 * ms, rcode: wire.ServFail}, late{answer: 2}, false, played{100 * ms, wire.ServFail, 0}, 0},
		{"the first fails", late{after: 100 * ms, fails: true}, late{answer: 2}, false, played{100 * ms, 0, 2}, 1},
		{"the first has no answer", late{after: 100 * ms}, late{after: 50 * ms, answer: 2}, false, played{150 * ms, 0, 2}, 1},
		{"the first is late, the second is quick", late{after: time.Second, answer: 1}, late{after: 50 * ms, answer: 2}, false, played{250 * ms, 0, 2}, 1},
		{"the first is late, the second later", late{after: 300 * ms, answer: 1}, late{after: time.Second, answer: 2}, false, played{300 * ms, 0, 1}, 1},
		{"the first is late, the second fails", late{after: 300 * ms, answer: 1}, late{fails: true}, false, played{300 * ms, 0, 1}, 1},
		{"both fail", late{after: 100 * ms, fails: true}, late{after: 100 * ms}, false, played{200 * ms, wire.ServFail, 0}, 1},
		{"both fail, the second while the first is late", late{after: time.Second, fails: true}, late{after: 100 * ms, fails: true}, false, played{time.Second, wire.ServFail, 0}, 1},
		{"standby: the first is in time", late{after: 100 * ms, answer: 1}, late{answer: 2}, true, played{100 * ms, 0, 1}, 1},
		{"standby: the second's answer is held until the threshold", late{after: time.Second, answer: 1}, late{answer: 2}, true, played{200 * ms, 0, 2}, 1},
		{"standby: or until the first fails", late{after: 100 * ms, fails: true}, late{answer: 2}, true, played{100 * ms, 0, 2}, 1},
		{"standby: behind the threshold whoever comes first", late{after: time.Second, answer: 1}, late{after: 300 * ms, answer: 2}, true, played{300 * ms, 0, 2}, 1},
		{"standby: the second fails, the first is late", late{after: time.Second, answer: 1}, late{fails: true}, true, played{time.Second, 0, 1}, 1},
		{"standby: both fail", late{after: time.Second}, late{fails: true}, true, played{time.Second, wire.ServFail, 0}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				second := 0
				c.secondary.ran = &second
				got := play(t, dns.TypeA, func(run *policy.Runner) []policy.Program {
					f := &Fallback{Primary: 1, Secondary: 2, Threshold: 200 * ms, Standby: c.standby, run: run}
					return []policy.Program{
						{Rules: []policy.Rule{{Start: f}}}, {Rules: []policy.Rule{{Start: c.primary}}}, {Rules: []policy.Rule{{Start: c.secondary}}},
					}
				})
				if got != c.want || second != c.second {
					t.Errorf("got %+v, the second ran %d times; want %+v, %d", got, second, c.want, c.second)
				}
			})
		})
	}
}

// The choice between families, a row for each sentence about it.
func TestPrefer(t *testing.T) {
	for _, c := range []struct {
		name string
		typ  uint16
		rest late // answers what it is asked
		want played
	}{
		{"what is preferred goes on", dns.TypeA, late{after: 100 * ms, answer: 1}, played{100 * ms, 0, 1}},
		{"other types go on", dns.TypeTXT, late{after: 100 * ms, rcode: wire.NXDomain}, played{100 * ms, wire.NXDomain, 0}},
		{"the name has what is preferred", dns.TypeAAAA, late{after: 100 * ms, answer: 1}, played{100 * ms, 0, 0}},
		{"the name has not", dns.TypeAAAA, late{after: 100 * ms, answer: 1, typ: wire.TypeAAAA}, played{100 * ms, 0, 1}},
		{"the rest fails", dns.TypeAAAA, late{after: 100 * ms, fails: true}, played{100 * ms, wire.ServFail, 0}},
		{"the rest has no answer", dns.TypeAAAA, late{after: 100 * ms}, played{100 * ms, wire.Refused, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := play(t, c.typ, func(run *policy.Runner) []policy.Program {
					return []policy.Program{{Rules: []policy.Rule{wrapping(newPrefer(run)), {Start: c.rest}}}}
				})
				if got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

func newPrefer(run *policy.Runner) *Prefer {
	made, err := makePrefer(wire.TypeA, wire.TypeAAAA)(&Env{Run: run, Now: func() time.Duration { return 0 }}, "")
	if err != nil {
		panic(err)
	}
	return made.(*Prefer)
}

func wrapping(p *Prefer) policy.Rule { return policy.Rule{Start: p, After: p} }

// byType waits for one type longer than for the other.
type byType struct{ a, aaaa late }

func (b byType) Start(r *serve.Request) policy.Next {
	if r.Ask.Type == wire.TypeA {
		return b.a.Start(r)
	}
	return b.aaaa.Start(r)
}

// The answer waits for the probe, but not for long.
func TestPreferProbe(t *testing.T) {
	for _, c := range []struct {
		name  string
		probe late
		want  played
	}{
		{"the probe comes first and blocks", late{after: 50 * ms, answer: 9}, played{50 * ms, 0, 0}},
		{"the probe comes within half a second", late{after: 500 * ms, answer: 9}, played{500 * ms, 0, 0}},
		{"the probe says no", late{after: 500 * ms, rcode: wire.NXDomain}, played{500 * ms, 0, 1}},
		{"the probe fails", late{after: 300 * ms, fails: true}, played{300 * ms, 0, 1}},
		{"the probe takes too long", late{after: 5 * time.Second, answer: 9}, played{600 * ms, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := play(t, dns.TypeAAAA, func(run *policy.Runner) []policy.Program {
					rest := byType{a: c.probe, aaaa: late{after: 100 * ms, answer: 1}}
					return []policy.Program{{Rules: []policy.Rule{wrapping(newPrefer(run)), {Start: rest}}}}
				})
				if got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

// A name that was seen to have what is preferred is blocked without asking, for an
// hour.
func TestPreferRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now time.Duration
		asked := 0
		var prefer *Prefer
		ask := func(typ uint16) played {
			return play(t, typ, func(run *policy.Runner) []policy.Program {
				if prefer == nil {
					prefer = newPrefer(run)
					prefer.now = func() time.Duration { return now }
				}
				prefer.run = run
				return []policy.Program{{Rules: []policy.Rule{wrapping(prefer), {Start: late{answer: 1, ran: &asked}}}}}
			})
		}
		ask(dns.TypeA)
		if got := ask(dns.TypeAAAA); got.last != 0 || asked != 1 {
			t.Errorf("got %+v, asked %d times", got, asked)
		}
		now = time.Hour
		if ask(dns.TypeAAAA); asked != 3 {
			t.Errorf("an hour later: asked %d times, want the question and the probe", asked)
		}
	})
}

// The table forgets the oldest.
func TestRecent(t *testing.T) {
	r := newRecent(3, time.Hour)
	for n := range uint64(5) {
		r.add(n+1, 0)
	}
	for n, want := range []bool{false, false, true, true, true} {
		if got := r.has(uint64(n+1), time.Minute); got != want {
			t.Errorf("%d: %v", n+1, got)
		}
	}
	if r.has(5, time.Hour) {
		t.Error("remembered for longer than an hour")
	}
	if len(r.at) != 3 {
		t.Errorf("%d numbers are kept", len(r.at))
	}
}
