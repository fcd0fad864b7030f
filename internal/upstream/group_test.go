package upstream

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wheel"
	"github.com/waymark-dns/waymark/internal/wire"
)

func TestBadConfig(t *testing.T) {
	env := Env{Now: func() time.Duration { return 0 }, Wake: func() {}}
	for name, c := range map[string]Config{
		"no server":  {},
		"too many":   {Servers: make([]Server, MaxServers+1)},
		"no address": {Servers: []Server{{Name: "a"}}},
		"no port":    {Servers: []Server{{Addr: netip.AddrPortFrom(loopback, 0)}}},
	} {
		if g, err := NewGroup(c, env); err == nil {
			t.Errorf("%s: taken", name)
			g.Close()
		}
	}
}

func TestBadQuery(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, nil, f)
	good, _ := ask("www.example.")
	change := func(at int, to byte) []byte {
		q := append([]byte(nil), good...)
		q[at] = to
		return q
	}
	for name, q := range map[string][]byte{
		"empty": nil, "header only": good[:12], "cut": good[:20], "no question": change(5, 0),
		"two questions": change(5, 2), "a response": change(2, 0x80), "a compressed name": change(12, 0xc0),
		"larger than a message can be": append(append([]byte(nil), good...), make([]byte, wire.MaxMessage)...),
	} {
		w := &waiter{ended: make(chan struct{}, 1)}
		w.Query, w.Owner = q, w
		r.Start(&w.Exchange)
		w.wait(t)
		if w.Err != ErrQuery {
			t.Errorf("%s: ended with %v", name, w.Err)
		}
	}
	f.unasked(t)
}

func TestRace(t *testing.T) {
	for n, want := range map[int]uint8{0: 2, 2: 2, 3: 3, 9: 3} {
		a, b, c := newFake(t, silent), newFake(t, silent), newFake(t, silent)
		r := newRig(t, func(c *Config) { c.Select, c.Race = Race, n }, a, b, c)
		w := newWaiter("www.example.")
		r.Start(&w.Exchange)
		qa, qb := a.next(t), b.next(t)
		a.send(qa, reply(qa.msg, wire.ServFail)) // is not the answer
		r.until("the failure", func() bool { return r.status(0).Failures == 1 })
		b.send(qb, reply(qb.msg, wire.NoError))
		w.wait(t)
		w.answered(t, wire.NoError, 1)
		if w.Tries < want || w.Tries > 3 {
			t.Errorf("Race %d: %d tries, want %d", n, w.Tries, want)
		}
	}
}

// known makes the group know its servers.
func (r *rig) known() {
	for range 2 * knownSamples {
		r.run("www.example.")
	}
	r.until("all are answered", func() bool {
		for _, s := range r.Status(r.now()) {
			if s.Queries != s.Answers {
				return false
			}
		}
		return true
	})
}

func drain(f *fake) {
	for len(f.got) > 0 {
		<-f.got
	}
}

func TestHedge(t *testing.T) {
	a, b := newFake(t, answer), newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select = Order }, a, b)
	r.known()
	a.become(silent)
	drain(a)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	q := a.next(t)
	b.unasked(t)
	r.pass(10 * time.Millisecond) // later than 19 of 20
	w.wait(t)
	w.answered(t, wire.NoError, 1)
	if w.Tries != 2 {
		t.Errorf("%d tries, want 2", w.Tries)
	}
	b.next(t)
	a.unasked(t)
	if s := r.status(0); s.Timeouts != 0 {
		t.Errorf("%+v: a hedge is no time-out", s)
	}
	// What is lost shows, though the hedge was answered.
	r.pass(50 * time.Millisecond)
	if s := r.status(0); s.Timeouts != 1 || s.Penalty == 0 {
		t.Errorf("%+v: want a time-out", s)
	}
	a.send(q, reply(q.msg, wire.NoError))
	r.until("the late answer", func() bool { return r.status(0).Penalty < timeoutPenalty/2 })
}

func TestNoHedge(t *testing.T) {
	a, b := newFake(t, answer), newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select, c.Hedge = Order, false }, a, b)
	r.known()
	a.become(silent)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	r.pass(40 * time.Millisecond)
	w.flying(t)
	b.unasked(t)
	r.pass(10 * time.Millisecond)
	w.wait(t)
	w.answered(t, wire.NoError, 1)
}

// A server that is not healthy is not asked by way of a hedge.
func TestNoHedgeToUnhealthy(t *testing.T) {
	a, b := newFake(t, answer), newFake(t, silent)
	r := newRig(t, func(c *Config) { c.Select = Order }, a, b)
	r.known()
	r.servers[1].punish(maxPenalty, r.now())
	r.probeAt.Store(int64(2 * time.Hour)) // nor by way of a probe
	a.become(silent)
	drain(a)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	a.next(t)
	r.pass(40 * time.Millisecond)
	if n := r.status(1).Queries; n != 0 {
		t.Errorf("asked %d times", n)
	}
	r.pass(10 * time.Millisecond)
	a.next(t) // a lost packet is likelier
	r.pass(100 * time.Millisecond)
	b.next(t) // but then it is asked too
}

// No more than one query in ten is hedged, beyond the first ten.
func TestHedgeBudget(t *testing.T) {
	a, b := newFake(t, answer), newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select = Order }, a, b)
	r.known()
	a.become(silent)
	const n = 30
	all := make([]*waiter, n)
	for i := range all {
		all[i] = newWaiter("www.example.")
		r.Start(&all[i].Exchange)
	}
	r.pass(10 * time.Millisecond)
	if got, most := r.status(1).Queries, uint64(10+n/10); got < 10 || got > most {
		t.Errorf("%d hedges for %d slow queries, want 10 to %d", got, n, most)
	}
	r.pass(40 * time.Millisecond)
	for _, w := range all {
		w.wait(t)
		w.answered(t, wire.NoError, 1)
	}
}

// The others are measured with duplicates, whose answers are nobody's.
func TestProbes(t *testing.T) {
	a, b := newFake(t, answer), newFake(t, rcodes(wire.ServFail))
	r := newRig(t, nil, a, b)
	r.good("www.example.", 0)
	r.until("the probe", func() bool { return r.status(1).Failures == 1 })
	for range 20 {
		r.good("www.example.", 0)
	}
	if n := r.status(1).Queries; n > 2 {
		t.Errorf("%d probes within no time", n)
	}
	for i := range uint64(3) {
		r.pass(probeEvery)
		before := r.status(1).Queries
		r.good("www.example.", 0)
		if n := r.status(1).Queries; n != before+1 {
			t.Errorf("%d probes 5 s after the %d-th, want 1", n-before, i+1)
		}
	}
	before := r.status(1).Queries
	for range 2 * 2 * probeQueries {
		r.good("www.example.", 0)
	}
	if n := r.status(1).Queries - before; n < 2 || n > 3 {
		t.Errorf("%d probes in 256 queries, want 2", n)
	}
}

// A probe that is lost is a time-out of its server, and of nothing else.
func TestProbeLost(t *testing.T) {
	a, b := newFake(t, answer), newFake(t, silent)
	r := newRig(t, nil, a, b)
	w := r.good("www.example.", 0)
	b.next(t)
	r.pass(150 * time.Millisecond)
	if s := r.status(1); s.Timeouts != 1 {
		t.Errorf("%+v", s)
	}
	if w.calls.Load() != 1 {
		t.Errorf("ended %d times", w.calls.Load())
	}
}

func TestFastest(t *testing.T) {
	slow, fast := newFake(t, silent), newFake(t, silent)
	r := newRig(t, nil, slow, fast)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	qs, qf := slow.next(t), fast.next(t) // the second is a probe
	r.pass(10 * time.Millisecond)
	fast.send(qf, reply(qf.msg, wire.NoError))
	r.until("the probe is answered", func() bool { return r.status(1).Answers == 1 })
	r.pass(30 * time.Millisecond)
	slow.send(qs, reply(qs.msg, wire.NoError))
	w.wait(t)
	w.answered(t, wire.NoError, 0)
	fast.become(answer)
	for range 10 {
		r.good("www.example.", 1)
	}
}

func TestRandom(t *testing.T) {
	a, b, c := newFake(t, answer), newFake(t, answer), newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select = Random }, a, b, c)
	var count [3]int
	for range 300 {
		count[r.run("www.example.").Upstream]++
	}
	for i, n := range count {
		if n < 50 || n > 150 {
			t.Errorf("server %d: %d of 300", i, n)
		}
	}
}

// counter is an owner that only counts.
type counter struct {
	ended atomic.Int64
	errs  [4]atomic.Int64
}

func (c *counter) Exchanged(x *Exchange) {
	for i, err := range []error{nil, ErrBusy, ErrClosed, ErrTimeout} {
		if x.Err == err {
			c.errs[i].Add(1)
		}
	}
	c.ended.Add(1)
}

func TestBusy(t *testing.T) {
	f := newFake(t, silent)
	r := newRig(t, func(c *Config) { c.Sockets = 256 }, f)
	var c counter
	all := make([]Exchange, MaxInFlight+10)
	q, _ := ask("www.example.")
	for i := range all {
		all[i].Query, all[i].Owner = q, &c
		r.Start(&all[i])
	}
	if got := c.errs[1].Load(); got != 10 || c.ended.Load() != 10 {
		t.Errorf("%d of %d that ended were refused, want 10", got, c.ended.Load())
	}
	drain(f)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if got := c.errs[2].Load(); got != MaxInFlight {
		t.Errorf("%d were closed, want %d", got, MaxInFlight)
	}
	if n := r.inFlight.Load(); n != 0 {
		t.Errorf("%d are still counted", n)
	}
}

// restarter starts its exchange again whenever it has ended, n times.
type restarter struct {
	group *Group
	left  int
	done  chan struct{}
}

func (s *restarter) Exchanged(x *Exchange) {
	if s.left--; s.left == 0 {
		close(s.done)
		return
	}
	s.group.Start(x)
}

func TestStartWithinExchanged(t *testing.T) {
	r := newRig(t, nil, newFake(t, answer))
	s := &restarter{r.Group, 1000, make(chan struct{})}
	x := &Exchange{Owner: s}
	x.Query, x.Bare = ask("www.example.")
	r.Start(x)
	select {
	case <-s.done:
	case <-time.After(patience):
		t.Fatal("it did not end")
	}
}

func TestStartTwice(t *testing.T) {
	r := newRig(t, nil, newFake(t, silent))
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	defer func() {
		if recover() == nil {
			t.Error("an exchange in flight was started")
		}
	}()
	r.Start(&w.Exchange)
}

func TestCloseInFlight(t *testing.T) {
	mute := newFake(t, silent)
	s := newStream(t, anywhere(), func(_ int, c net.Conn) {
		for receive(c) != nil {
		}
	})
	r := newRig(t, func(c *Config) {
		c.Select = Race
		c.Servers = append(c.Servers, Server{Addr: s.addr, TCP: true}, Server{Addr: closedPort(t)})
		c.Race = 3
	}, mute)
	var all []*waiter
	for range 50 {
		w := newWaiter("www.example.")
		all = append(all, w)
		r.Start(&w.Exchange)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, w := range all {
		w.wait(t)
		w.failed(t, ErrClosed)
	}
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	w.wait(t)
	w.failed(t, ErrClosed)
	if r.Tick(r.now()) {
		t.Error("Tick wants to be called")
	}
	for _, w := range all {
		if n := w.calls.Load(); n != 1 {
			t.Errorf("ended %d times", n)
		}
	}
}

// What is put on the wheel of a closed group is ended there.
func TestLateForClose(t *testing.T) {
	r := newRig(t, nil, newFake(t, silent))
	w := newWaiter("www.example.")
	gen := w.begin(0, r.now(), 1)
	r.inFlight.Add(1)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	r.add(&event{x: &w.Exchange, gen: gen, kind: retryDue})
	w.wait(t)
	w.failed(t, ErrClosed)
}

// storm starts exchanges from many goroutines, with time passing meanwhile, and
// checks that each ends once.
func (r *rig) storm(goroutines, each int, closing bool) {
	r.t.Helper()
	var c counter
	var wg sync.WaitGroup
	stop := make(chan struct{})
	ticker := sync.WaitGroup{}
	ticker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				r.pass(wheel.Step)
			}
		}
	})
	for range goroutines {
		wg.Go(func() {
			w := newWaiter("www.example.")
			for range each {
				r.Start(&w.Exchange)
				<-w.ended
				c.ended.Add(1)
			}
		})
	}
	if closing {
		r.until("a part is done", func() bool { return c.ended.Load() > int64(goroutines*each/4) })
		if err := r.Close(); err != nil {
			r.t.Error(err)
		}
	}
	wg.Wait()
	close(stop)
	ticker.Wait()
	if got := c.ended.Load(); got != int64(goroutines*each) {
		r.t.Errorf("%d ended, want %d", got, goroutines*each)
	}
	if n := r.inFlight.Load(); n != 0 {
		r.t.Errorf("%d are still counted", n)
	}
}

func TestStorm(t *testing.T) {
	for _, closing := range []bool{false, true} {
		lossy := func(q query) [][]byte {
			switch q.n % 7 {
			case 0:
				return nil
			case 1:
				return [][]byte{reply(q.msg, wire.ServFail)}
			case 2:
				return [][]byte{truncate(q.msg)}
			case 3:
				return append(answer(q), answer(q)...)
			}
			return answer(q)
		}
		a, _ := newPair(t, lossy, answerAll)
		b, _ := newPair(t, lossy, half)
		r := newRig(t, func(c *Config) { c.Servers = append(c.Servers, Server{Addr: closedPort(t)}) }, a, b)
		r.storm(8, 300, closing)
	}
}

// A query that is longer than most.
func TestLongQuery(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, nil, f)
	w := newWaiter("www.example.")
	w.Query = append(w.Query[:w.Bare], 0, 0, wire.TypeOPT, 4, 208, 0, 0, 0, 0, 4, 4, 0, wire.OptPadding, 4, 0)
	w.Query = append(w.Query, make([]byte, 1024)...)
	r.Start(&w.Exchange)
	w.wait(t)
	w.answered(t, wire.NoError, 0)
	if q := f.next(t); string(q.msg[2:]) != string(w.Query[2:]) {
		t.Errorf("sent %d octets, want %d", len(q.msg), len(w.Query))
	}
}

func TestIPv6(t *testing.T) {
	conn, err := net.ListenUDP("udp6", &net.UDPAddr{IP: net.IPv6loopback})
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	f := serveFake(t, conn, answer)
	newRig(t, nil, f).good("www.example.", 0)
}

// A server whose port was closed for a while is used again with the next query.
func TestReboot(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, nil, f)
	r.good("www.example.", 0)
	f.close()
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	r.awaits(w, retryDue, 0)
	fakeAt(t, f.addr, answer)
	r.pass(100 * time.Millisecond)
	w.wait(t)
	w.answered(t, wire.NoError, 0)
	r.good("www.example.", 0)
}
