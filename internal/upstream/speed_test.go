package upstream

import (
	"sync"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wheel"
)

// echo turns queries into responses, without allocation.
func echo(t testing.TB) *fake {
	t.Helper()
	f := newFake(t, silent)
	f.close()
	conn := listenAt(t, f.addr)
	done := sync.WaitGroup{}
	done.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			buf[2] |= 0x80
			_, _ = conn.WriteToUDPAddrPort(buf[:n], from)
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		done.Wait()
	})
	return f
}

// signal is an owner that allocates nothing.
type signal chan struct{}

func (s signal) Exchanged(x *Exchange) {
	if x.Err != nil {
		panic(x.Err)
	}
	s <- struct{}{}
}

func TestAllocs(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	for _, mix := range []bool{false, true} {
		r := newRig(t, func(c *Config) { c.Sockets, c.MixCase = 32, mix }, echo(t))
		done := make(signal, 1)
		x := &Exchange{Owner: done}
		x.Query, x.Bare = ask("www.example.")
		round := func() {
			r.Start(x)
			<-done
			r.pass(wheel.Step)
		}
		for range 2000 { // the pools grow
			round()
		}
		if got := testing.AllocsPerRun(1000, round); got > 0 {
			t.Errorf("MixCase %v: %v allocations per exchange, want none", mix, got)
		}
	}
}

// BenchmarkExchange is the round trip over loopback, with 64 in flight; the echo
// server's part of it is on the same CPUs.
func BenchmarkExchange(b *testing.B) {
	r := newRig(b, func(c *Config) { c.Sockets = 128 }, echo(b))
	begin := time.Now()
	r.env.Now = func() time.Duration { return time.Since(begin) }
	stop := make(chan struct{})
	ticker := sync.WaitGroup{}
	ticker.Go(func() {
		t := time.NewTicker(wheel.Step)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				r.Tick(r.env.Now())
			case <-stop:
				return
			}
		}
	})
	const inFlight = 64
	c := &chain{group: r.Group, left: b.N, done: make(chan struct{})}
	b.ReportAllocs()
	b.ResetTimer()
	for range min(inFlight, b.N) {
		x := &Exchange{Owner: c}
		x.Query, x.Bare = ask("www.example.")
		c.next(x)
	}
	<-c.done
	b.StopTimer()
	close(stop)
	ticker.Wait()
}

// chain starts exchanges as others end, until enough have ended.
type chain struct {
	group *Group
	done  chan struct{}

	mu    sync.Mutex // guards what follows
	left  int        // to be started
	going int
}

func (c *chain) next(x *Exchange) {
	c.mu.Lock()
	more := c.left > 0
	if more {
		c.left--
		c.going++
	}
	over := !more && c.going == 0
	c.mu.Unlock()
	switch {
	case more:
		c.group.Start(x)
	case over:
		close(c.done)
	}
}

func (c *chain) Exchanged(x *Exchange) {
	c.mu.Lock()
	c.going--
	c.mu.Unlock()
	c.next(x)
}
