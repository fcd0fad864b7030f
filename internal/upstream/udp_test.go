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
	for i, wait := range []time.Duration{150, 300} { // doubled
		r.pass((wait - 10) * time.Millisecond)
		f.unasked(t)
		r.pass(10 * time.Millisecond)
		if q := f.next(t); q.from == first.from {
			t.Errorf("try %d: from the same port: the socket was not retired", i+2)
		}
	}
	r.pass(4*time.Second - 460*time.Millisecond)
	w.flying(t)
	r.pass(20 * time.Millisecond)
	w.wait(t)
	w.failed(t, ErrTimeout)
	f.unasked(t)
	if w.Tries != 3 {
		t.Errorf("%d tries, want 3", w.Tries)
	}
	r.pass(5 * time.Second)
	if s := r.status(0); s.Sockets != 0 || s.Timeouts != 3 {
		t.Errorf("%+v: want all sockets closed and 3 time-outs", s)
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
	if w.RTT != 1500*time.Millisecond || w.Tries != 3 {
		t.Errorf("RTT %v, %d tries", w.RTT, w.Tries)
	}
}

func TestServerDead(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Servers = []Server{{Addr: closedPort(t)}} })
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	r.until("three tries", func() bool {
		r.pass(10 * time.Millisecond)
		return len(w.ended) > 0
	})
	w.wait(t)
	w.failed(t, ErrUnreachable)
	if s := r.status(0); s.Healthy || s.Errors == 0 {
		t.Errorf("%+v", s)
	}
}
