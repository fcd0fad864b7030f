package upstream

import (
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

func TestAnswer(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, nil, f)
	w := r.good("www.example.", 0)
	if w.Tries != 1 || w.Server != f.addr {
		t.Errorf("%d tries, answered by %s", w.Tries, w.Server)
	}
	if q := f.next(t); string(q.msg[2:]) != string(w.Query[2:]) {
		t.Errorf("sent %x, want %x", q.msg, w.Query)
	}
	f.unasked(t)
	if s := r.status(0); s.Queries != 1 || s.Answers != 1 || !s.Healthy {
		t.Errorf("%+v", s)
	}
	if r.woken.Load() != 1 {
		t.Errorf("woken %d times, want once", r.woken.Load())
	}
	r.pass(200 * time.Millisecond)
	if r.Tick(r.now()) {
		t.Error("nothing is in flight, and yet Tick wants to be called")
	}
	r.good("www.example.", 0)
	if r.woken.Load() != 2 {
		t.Errorf("woken %d times, want twice", r.woken.Load())
	}
}

func TestServerSilent(t *testing.T) {
	f := newFake(t, silent)
	r := newRig(t, nil, f)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	first := f.next(t)
	for i, wait := range []time.Duration{150, 300, 600, 1200, 1200} { // doubled, up to a point
		r.pass((wait - 10) * time.Millisecond)
		f.unasked(t)
		r.pass(10 * time.Millisecond)
		if q := f.next(t); q.from == first.from {
			t.Errorf("try %d: from the same port: the socket was not retired", i+2)
		}
	}
	r.pass(540 * time.Millisecond)
	w.flying(t)
	r.pass(20 * time.Millisecond)
	w.wait(t)
	w.failed(t, ErrTimeout)
	f.unasked(t)
	if w.Tries != 6 {
		t.Errorf("%d tries, want 6", w.Tries)
	}
	r.pass(5 * time.Second)
	if s := r.status(0); s.Sockets != 0 || s.Timeouts != 6 {
		t.Errorf("%+v: want all sockets closed and 6 time-outs", s)
	}
	if r.Tick(r.now()) {
		t.Error("Tick wants to be called")
	}
}

func TestServerSlow(t *testing.T) {
	f := newFake(t, silent)
	r := newRig(t, nil, f)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	q := f.next(t)
	r.pass(1500 * time.Millisecond)
	f.send(q, reply(q.msg, wire.NoError)) // the first try's
	w.wait(t)
	w.answered(t, wire.NoError, 0)
	if w.RTT != 1500*time.Millisecond || w.Tries != 4 {
		t.Errorf("RTT %v, %d tries", w.RTT, w.Tries)
	}
	if n := r.status(0).Sockets; n != 3 { // nothing is to come over the first one any more
		t.Errorf("%d sockets are open, want 3", n)
	}
}

func TestServerDead(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Servers = []Server{{Addr: closedPort(t)}} })
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	for i, pause := range []time.Duration{100, 200} {
		r.awaits(w, retryDue, 0)
		r.pass((pause - 10) * time.Millisecond)
		if n := r.status(0).Queries; n != uint64(i+1) {
			t.Errorf("%d queries before the pause was over, want %d", n, i+1)
		}
		r.pass(10 * time.Millisecond)
	}
	w.wait(t)
	w.failed(t, ErrUnreachable)
	if s := r.status(0); s.Healthy || s.Errors != 3 || s.Queries != 3 {
		t.Errorf("%+v", s)
	}
}

func TestServerLossy(t *testing.T) {
	lost := [10]bool{0: true, 3: true, 4: true} // 30 %
	f := newFake(t, func(q query) [][]byte {
		if lost[q.n%10] {
			return nil
		}
		return answer(q)
	})
	r := newRig(t, nil, f)
	for range 100 {
		w := newWaiter("www.example.")
		r.Start(&w.Exchange)
		for lost[f.next(t).n%10] {
			r.retry()
		}
		w.wait(t)
		w.answered(t, wire.NoError, 0)
	}
}

func TestOneOfTwoDead(t *testing.T) {
	f := newFake(t, answer)
	for _, how := range []Select{Fastest, Random, Order, Race} {
		r := newRig(t, func(c *Config) {
			c.Select = how
			c.Servers = append([]Server{{Addr: closedPort(t)}}, c.Servers...)
		}, f)
		for range 20 {
			r.good("www.example.", 1)
		}
	}
}

func TestOneOfTwoSilent(t *testing.T) {
	for _, how := range []Select{Fastest, Order} {
		mute, f := newFake(t, silent), newFake(t, answer)
		r := newRig(t, func(c *Config) { c.Select = how }, mute, f)
		w := newWaiter("www.example.")
		r.Start(&w.Exchange)
		mute.next(t)
		r.pass(150 * time.Millisecond)
		w.wait(t)
		w.answered(t, wire.NoError, 1)
	}
}

func TestAllDead(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Servers = []Server{{Addr: closedPort(t)}, {Addr: closedPort(t)}} })
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	for _, pause := range []time.Duration{100, 200} {
		r.awaits(w, retryDue, 0)
		r.pass(pause * time.Millisecond)
	}
	w.wait(t)
	w.failed(t, ErrUnreachable)
}

func TestFailover(t *testing.T) {
	for _, rc := range []wire.Rcode{wire.ServFail, wire.Refused, wire.NotImp, wire.FormErr} {
		t.Run(rc.String(), func(t *testing.T) {
			bad, f := newFake(t, rcodes(rc)), newFake(t, answer)
			r := newRig(t, func(c *Config) { c.Select = Order }, bad, f)
			w := r.good("www.example.", 1)
			if w.Tries != 2 {
				t.Errorf("%d tries, want 2", w.Tries)
			}
			if s := r.status(0); s.Failures != 1 || s.Penalty == 0 {
				t.Errorf("%+v", s)
			}
			for range 5 {
				r.good("www.example.", 1)
			}
			if s := r.status(0); s.Healthy {
				t.Errorf("%+v: want it unhealthy", s)
			}
		})
	}
}

// Where all servers fail, the response that says most is given.
func TestAllFailing(t *testing.T) {
	a, b := newFake(t, rcodes(wire.Refused)), newFake(t, rcodes(wire.ServFail))
	for i, servers := range [][]*fake{{a, b}, {b, a}, {b}} {
		r := newRig(t, func(c *Config) { c.Select = Order }, servers...)
		w := r.run("www.example.")
		w.answered(t, wire.ServFail, []int{1, 0, 0}[i])
		if int(w.Tries) != len(servers) {
			t.Errorf("%d tries, want %d", w.Tries, len(servers))
		}
	}
}

// A server that failed does not keep a slower one from answering, nor a dead one
// the exchange from ending.
func TestFailingAndSilent(t *testing.T) {
	a, b := newFake(t, rcodes(wire.ServFail)), newFake(t, silent)
	r := newRig(t, func(c *Config) { c.Select = Order }, a, b)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	for _, wait := range []time.Duration{150, 300, 600} {
		r.awaits(w, tryDue, 1)
		w.flying(t)
		r.pass(wait * time.Millisecond)
	}
	r.pass(failurePatience - 1060*time.Millisecond)
	w.flying(t) // a late answer would still be taken
	r.pass(20 * time.Millisecond)
	w.wait(t)
	w.answered(t, wire.ServFail, 0)
	if w.Tries != 4 {
		t.Errorf("%d tries, want 4", w.Tries)
	}
}

func TestNXDomainIsGood(t *testing.T) {
	a, b := newFake(t, rcodes(wire.NXDomain)), newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select = Order }, a, b)
	r.run("www.example.").answered(t, wire.NXDomain, 0)
	b.unasked(t)
}

func TestAnsweringTwice(t *testing.T) {
	f := newFake(t, func(q query) [][]byte {
		return [][]byte{reply(q.msg, wire.NoError), reply(q.msg, wire.NoError)}
	})
	r := newRig(t, func(c *Config) { c.Sockets = 1 }, f)
	for range 50 {
		r.good("www.example.", 0)
	}
	r.until("50 duplicates", func() bool { return r.status(0).Spoofs.Duplicate == 50 })
	if s := r.status(0); s.Spoofs.WrongID != 0 || s.Sockets != 1 {
		t.Errorf("%+v", s)
	}
}

// Duplicates are no spoofs, however many come.
func TestManyDuplicates(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Sockets = 1 }, f)
	r.good("www.example.", 0)
	first := f.next(t)
	f.become(silent)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	second := f.next(t)
	for range 3 * maxSpoofs {
		f.send(first, reply(first.msg, wire.NXDomain))
	}
	f.send(second, reply(second.msg, wire.NoError))
	w.wait(t)
	w.answered(t, wire.NoError, 0)
	if s := r.status(0); s.Spoofs != (Spoofs{Duplicate: 3 * maxSpoofs}) || s.Sockets != 1 {
		t.Errorf("%+v", s)
	}
}

func TestMalformedResponse(t *testing.T) {
	bad := newFake(t, func(q query) [][]byte {
		m := reply(q.msg, wire.NoError)
		return [][]byte{m[:len(m)-3]}
	})
	f := newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select = Order }, bad, f)
	r.good("www.example.", 1)
	r = newRig(t, nil, bad)
	r.run("www.example.").failed(t, ErrUnreachable)
}

func TestNoEDNS(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(q []byte) []byte
	}{
		{"FORMERR with question", func(q []byte) []byte {
			bare := append([]byte(nil), q[:questionEnd(q)]...)
			bare[11] = 0
			return reply(bare, wire.FormErr)
		}},
		{"FORMERR, header only", func(q []byte) []byte { return []byte{q[0], q[1], 0x80, 1, 11: 0} }},
		{"NOTIMP, header only", func(q []byte) []byte { return []byte{q[0], q[1], 0x80, 4, 11: 0} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := func(q query) [][]byte {
				if q.opt() {
					return [][]byte{c.make(q.msg)}
				}
				return answer(q)
			}
			f := newFake(t, old)
			r := newRig(t, nil, f)
			if w := r.good("www.example.", 0); w.Tries != 2 {
				t.Errorf("%d tries, want 2", w.Tries)
			}
			if f.next(t); f.next(t).opt() {
				t.Error("the second try was with OPT")
			}
			for range 3 { // it is remembered
				if w := r.good("www.example.", 0); w.Tries != 1 || f.next(t).opt() {
					t.Errorf("%d tries, or with OPT", w.Tries)
				}
			}
			if !r.status(0).NoEDNS {
				t.Error("not in the status")
			}
			r.pass(15 * time.Minute) // and forgotten
			f.become(answer)
			if r.good("www.example.", 0); !f.next(t).opt() {
				t.Error("not asked with OPT again")
			}
			if r.status(0).NoEDNS {
				t.Error("still in the status")
			}
		})
	}
}

// An answer to a query with OPT shows that it was an error to take the server for
// one without EDNS.
func TestEDNSAfterAll(t *testing.T) {
	f := newFake(t, silent)
	r := newRig(t, nil, f)
	first, second := newWaiter("one.example."), newWaiter("two.example.")
	r.Start(&first.Exchange)
	q := f.next(t)
	f.become(func(q query) [][]byte {
		if q.opt() {
			return [][]byte{{q.msg[0], q.msg[1], 0x80, 1, 11: 0}}
		}
		return answer(q)
	})
	r.Start(&second.Exchange)
	second.wait(t)
	if !r.status(0).NoEDNS {
		t.Error("not taken for a server without EDNS")
	}
	f.send(q, reply(q.msg, wire.NoError))
	first.wait(t)
	first.answered(t, wire.NoError, 0)
	if r.status(0).NoEDNS {
		t.Error("still taken for a server without EDNS")
	}
}

// A server that knows OPT and does not like the query is asked once.
func TestFormErrWithOPT(t *testing.T) {
	f := newFake(t, rcodes(wire.FormErr)) // which has OPT
	r := newRig(t, nil, f)
	r.run("www.example.").answered(t, wire.FormErr, 0)
	f.next(t)
	f.unasked(t)
	if r.status(0).NoEDNS {
		t.Error("taken for a server without EDNS")
	}
}

func TestRecovery(t *testing.T) {
	mute, f := newFake(t, silent), newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select = Order }, mute, f)
	for range 10 { // until it is penalised as much as can be
		w := newWaiter("www.example.")
		r.Start(&w.Exchange)
		r.pass(500 * time.Millisecond)
		w.wait(t)
		w.answered(t, wire.NoError, 1)
	}
	if r.status(0).Healthy {
		t.Fatal("a silent server is healthy")
	}
	mute.become(answer)
	for i := 0; ; i++ {
		answers := r.status(0).Answers
		if w := r.run("www.example."); w.Upstream == 0 {
			break
		}
		if i == 50 {
			t.Fatalf("5 s on it is not used: %+v", r.status(0))
		}
		r.pass(100 * time.Millisecond)
		if q := r.status(0); q.Queries > q.Answers+q.Timeouts && q.Answers == answers {
			r.until("the probe is answered", func() bool { q := r.status(0); return q.Answers+q.Timeouts >= q.Queries })
		}
	}
}
