// Package stats counts what listeners do. Each worker owns one Worker and adds
// to plain fields of a Batch; once per batch they are published, so that the
// reader of metrics never disturbs a query. It knows no metrics format.
package stats

import "sync/atomic"

// Counter is one number a worker counts.
type Counter uint8

// The counters. The first 24 are responses by code.
const (
	Rcode0  Counter = 0
	Queries Counter = iota + 23 // queries received, whatever became of them
	Truncated
	BytesIn
	BytesOut
	DroppedShort    // messages shorter than a header
	DroppedResponse // messages with QR=1
	DroppedPolicy   // queries that the policy dropped, the two below apart
	DroppedRate     // queries over the rate of one client
	DroppedRRL      // responses over the rate of one kind to one client
	LimitedRate     // queries over the rate of one client that were told to come again
	LimitedRRL      // responses over the rate that went out truncated
	Parked          // requests that had to wait
	Shed            // requests that would have had to wait, but the room was full
	ShedUnknown     // those among them of clients that were not known
	SendFailed      // responses that the kernel did not take
	Accepted        // stream connections
	Refused         // stream connections over a limit
	FromNone        // responses by source, in the order of serve.Source
	FromZone
	FromLocal
	FromCache
	FromStale
	FromForward
	FromRefused
	FromError
	Counters
)

// Rcode is the counter of a response code.
func Rcode(code uint16) Counter { return Rcode0 + Counter(min(code, 23)) }

// Batch is what one worker counted since it last published.
type Batch [Counters]uint64

// Worker is the published counters of one worker. Many may publish into one
// Worker; a reader sees each counter whole.
type Worker struct {
	_      [64]byte // no two workers on one cache line
	counts [Counters]atomic.Uint64
}

// Publish adds b and clears it.
func (w *Worker) Publish(b *Batch) {
	for i, n := range b {
		if n != 0 {
			w.counts[i].Add(n)
			b[i] = 0
		}
	}
}

// Load is the present value of a counter.
func (w *Worker) Load(c Counter) uint64 { return w.counts[c].Load() }
