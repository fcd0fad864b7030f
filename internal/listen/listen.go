// Package listen receives queries and sends responses: one file per transport.
// It hands every query to a serve.Handler and knows nothing of what answers.
// app makes the listeners, gives them a handler and an observer, and stops them.
package listen

import (
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/stats"
)

// Entry is where listeners find the handler: swapped whole when the
// configuration changes, loaded once per batch or query.
type Entry struct{ h atomic.Pointer[serve.Handler] }

// Set makes h the handler of all queries from now on.
func (e *Entry) Set(h serve.Handler) { e.h.Store(&h) }

func (e *Entry) load() serve.Handler { return *e.h.Load() }

// Config is what listeners of one kind share.
type Config struct {
	Entry    *Entry
	Now      func() time.Duration          // monotonic, since the process started
	Deadline func(time.Duration) time.Time // wall time that long from now
	UDPSize  uint16                        // largest response over UDP
	Parked   *Parked
	Peer     *serve.Peer // of the listener
	Flush    func()      // ends a batch: sends what requests with Gather have left; nil where there are none
}

// Worker is what one goroutine, or the goroutines of one stream listener, report
// to.
type Worker struct {
	Observer serve.Observer // of the reader's own goroutine
	Shared   serve.Observer // of all other goroutines
	Stats    *stats.Worker
}

// answered counts a response that is ready.
func answered(b *stats.Batch, r *serve.Request) {
	b[stats.Rcode(uint16(r.Note.Rcode))]++
	b[stats.FromNone+stats.Counter(r.Note.Source)]++
	b[stats.BytesOut] += uint64(len(r.Out))
	if r.Out[2]&2 != 0 {
		b[stats.Truncated]++
	}
	if r.Note.Limit != serve.Unlimited {
		b[stats.LimitedRate+stats.Counter(r.Note.Limit-serve.OverRate)]++
	}
}

// dropped counts a query that the policy leaves without a response.
func dropped(b *stats.Batch, r *serve.Request) {
	b[stats.DroppedPolicy+stats.Counter(r.Note.Limit)]++
}
