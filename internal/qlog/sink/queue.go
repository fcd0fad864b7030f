package sink

import (
	"math/rand/v2"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// encoder appends the item of a row to dst, which it does not keep; nothing appended:
// the row has none. Calls do not overlap.
type encoder func(dst []byte, row *qlog.Row) []byte

// itemCost is what an item takes besides its octets.
const itemCost = 8

// batch is items behind one another, one a row.
type batch struct {
	octets []byte
	ends   []int // of each item, in octets
	done   int   // items that are settled
}

// left is how many items are not settled.
func (b *batch) left() int { return len(b.ends) - b.done }

// skip settles the next n items.
func (b *batch) skip(n int) { b.done += n }

func (b *batch) start() int {
	if b.done == 0 {
		return 0
	}
	return b.ends[b.done-1]
}

// rest is the octets of the items that are not settled.
func (b *batch) rest() []byte { return b.octets[b.start():] }

// within is how many whole items the first n octets of rest are.
func (b *batch) within(n int) int {
	return sort.SearchInts(b.ends[b.done:], b.start()+n+1)
}

// item is the i-th of the items that are not settled.
func (b *batch) item(i int) []byte {
	from := 0
	if b.done+i > 0 {
		from = b.ends[b.done+i-1]
	}
	return b.octets[from:b.ends[b.done+i]]
}

func (b *batch) cost() int { return len(b.octets) + itemCost*len(b.ends) }

// queue is batches that wait to be sent.
type queue struct {
	limit, rows int
	wake        chan struct{} // there may be something to take

	// mu guards what follows. It is never held while something waits.
	mu      sync.Mutex
	batches []*batch // the last is being filled
	held    int      // cost of all batches, also of those taken and not settled
	closed  bool
	// scant is the cost of the last item that found no room; 0: all did. Where as much
	// finds none rows are dropped unseen: a full queue is no work.
	scant int
}

func (q *queue) init(limit, rows int) {
	q.limit, q.rows, q.wake = limit, rows, make(chan struct{}, 1)
}

// put adds rows and returns how many were dropped.
func (q *queue) put(rows []qlog.Row, encode encoder) (dropped int) {
	q.mu.Lock()
	for i := range rows {
		if q.closed || !q.add(&rows[i], encode) {
			dropped++
		}
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return dropped
}

// add adds a row; false: it does not fit. The caller holds mu.
func (q *queue) add(row *qlog.Row, encode encoder) bool {
	if q.scant > 0 && q.held+q.scant > q.limit {
		return false
	}
	if len(q.batches) == 0 || q.full(q.batches[len(q.batches)-1]) {
		q.batches = append(q.batches, new(batch))
	}
	b := q.batches[len(q.batches)-1]
	before := len(b.octets)
	b.octets = encode(b.octets, row)
	cost := len(b.octets) - before + itemCost
	switch {
	case cost == itemCost:
		return true
	case q.held+cost > q.limit:
		b.octets, q.scant = b.octets[:before], cost
		return false
	}
	b.ends = append(b.ends, len(b.octets))
	q.held += cost
	return true
}

// full: a batch takes no more. Four make a full queue, so that it need not be dropped
// and sent as one.
func (q *queue) full(b *batch) bool { return len(b.ends) >= q.rows || b.cost() >= q.limit/4 }

// state tells whether there is something to take, and whether it is a full batch.
func (q *queue) state() (waiting, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 || len(q.batches[0].ends) == 0 {
		return false, false
	}
	return true, q.full(q.batches[0])
}

// take is the oldest batch, or nil. It counts against the limit until it is settled.
func (q *queue) take() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 || len(q.batches[0].ends) == 0 {
		return nil
	}
	b := q.batches[0]
	q.batches[0] = nil
	q.batches = q.batches[1:]
	return b
}

// settle frees the room of a batch that was taken.
func (q *queue) settle(b *batch) {
	q.mu.Lock()
	q.held -= b.cost()
	q.mu.Unlock()
}

func (q *queue) octets() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}

// Stats is what became of the rows of a sink so far.
type Stats struct {
	Sent    uint64 // rows that the peer took, or the system on its behalf
	Dropped uint64 // rows that found no room, or that the peer refused
	Spilled uint64 // rows written to the spill folder
	Errors  uint64 // tries that failed

	Queued    int   // octets in memory
	Disk      int64 // octets in the spill folder
	Connected bool  // the last try did not fail
}

// counts is Stats as it is counted.
type counts struct {
	sent, dropped, spilled, errors atomic.Uint64
	disk                           atomic.Int64
	connected                      atomic.Bool
}

// Stats may be called by many goroutines, after Close too.
func (s *Sink) Stats() Stats {
	return Stats{
		Sent: s.counts.sent.Load(), Dropped: s.counts.dropped.Load(), Spilled: s.counts.spilled.Load(), Errors: s.counts.errors.Load(),
		Queued: s.queue.octets(), Disk: s.counts.disk.Load(), Connected: s.counts.connected.Load(),
	}
}

// The first pause after a failure, and the longest: an outage of a collector lasts
// seconds or hours, and a try costs next to nothing.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
)

// backoff is pauses that double. The zero value begins.
type backoff struct{ pause time.Duration }

// next is between half of the pause and all of it, so that the servers of a site do
// not come back to one collector together.
func (b *backoff) next() time.Duration {
	b.pause = min(max(2*b.pause, firstPause), longestPause)
	return b.pause/2 + rand.N(b.pause/2)
}
