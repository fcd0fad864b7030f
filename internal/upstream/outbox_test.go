package upstream

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
	"github.com/waymark-dns/waymark/internal/wire"
)

// gatherWaiters begins exchanges that wait for the batch to end.
func gatherWaiters(r *rig, names ...string) []*waiter {
	all := make([]*waiter, len(names))
	for i, name := range names {
		all[i] = newWaiter(name)
		all[i].Gather = true
		r.Start(&all[i].Exchange)
	}
	return all
}

// names is n names, of some lengths.
func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("n%d.%s.example.", i, strings.Repeat("x", 1+i%5))
	}
	return all
}

// What is gathered leaves when the batch ends, all of it, and every query is
// answered; also where there are more than one message or one socket takes.
func TestGather(t *testing.T) {
	for _, n := range []int{1, 2, 5, egress.MaxBatch, 3*egress.MaxBatch + 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			f := newFake(t, answer)
			r := newRig(t, nil, f)
			all := gatherWaiters(r, names(n)...)
			if n <= egress.MaxBatch {
				f.unasked(t)
			}
			r.env.Outbox.Flush()
			for _, w := range all {
				w.wait(t)
				w.answered(t, wire.NoError, 0)
			}
		})
	}
}

// The queries of a batch have one source port, and the next batch most likely
// another.
func TestGatherPort(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Sockets = 64 }, f)
	ports := map[uint16]bool{}
	for range 20 {
		all := gatherWaiters(r, names(10)...)
		r.env.Outbox.Flush()
		batch := map[uint16]bool{}
		for _, w := range all {
			w.wait(t)
			batch[f.next(t).from.Port()] = true
		}
		if len(batch) != 1 {
			t.Fatalf("a batch from %d ports", len(batch))
		}
		for p := range batch {
			ports[p] = true
		}
	}
	if len(ports) < 10 {
		t.Errorf("20 batches from %d ports", len(ports))
	}
}

// A batch that does not end keeps nothing longer than until the next Tick.
func TestGatherTick(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, nil, f)
	all := gatherWaiters(r, names(3)...)
	r.Tick(r.now())
	for _, w := range all {
		w.wait(t)
		w.answered(t, wire.NoError, 0)
	}
}

// Where nobody listens, the queries of a batch go to another server at once.
func TestGatherRefused(t *testing.T) {
	dead := newFake(t, answer)
	dead.close()
	f := newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select = Order }, dead, f)
	for range 3 {
		all := gatherWaiters(r, names(8)...)
		r.env.Outbox.Flush()
		for _, w := range all {
			r.until("answered by the other server", func() bool { return len(w.ended) > 0 })
			w.wait(t)
			w.answered(t, wire.NoError, 1)
		}
	}
}

// A group that is closed between a query and the end of its batch ends the query.
func TestGatherClosed(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, nil, f)
	all := gatherWaiters(r, names(3)...)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r.env.Outbox.Flush()
	for _, w := range all {
		w.wait(t)
		w.failed(t, ErrClosed)
	}
}

// Batches of many goroutines end for each other.
func TestGatherMany(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, nil, f)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				all := gatherWaiters(r, names(7)...)
				r.env.Outbox.Flush()
				for _, w := range all {
					select {
					case <-w.ended:
					case <-time.After(patience):
						t.Error("not answered")
						return
					}
					if w.Err != nil {
						t.Error(w.Err)
					}
				}
			}
		})
	}
	wg.Wait()
}
