package qlog

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
)

// RingSize is the octets of a ring: what comes at 100,000 queries a second in the
// tenth of a second that whoever drains it may be late on a busy machine.
const RingSize = 1 << 20

// Ring is a queue of records with one writer and at most one reader. The writer
// never waits: without a reader nothing is written, and with one, a record that does
// not fit is dropped and counted. It takes no memory before it has a reader.
type Ring struct {
	now   func() time.Duration
	buf   []byte // the writer's view of store; nil until it has seen it
	write uint64 // octets ever written; the writer's own
	seen  uint64 // write when it was last stamped
	free  uint64 // how far write may go before read has to be looked at again

	attached  atomic.Bool
	store     atomic.Pointer[[]byte] // once made it stays
	answers   atomic.Bool            // the addresses in answers are wanted
	published atomic.Uint64          // write, as the reader may see it
	read      atomic.Uint64          // octets ever read
	dropped   atomic.Uint64

	rec Record // the reader's own
}

// NewRing makes a ring without a reader. now is the clock of Request.At.
func NewRing(now func() time.Duration) *Ring { return &Ring{now: now} }

// Observe is part of serve.Observer.
func (g *Ring) Observe(r *serve.Request) {
	if !g.attached.Load() {
		return
	}
	if g.buf == nil {
		g.buf = *g.store.Load()
	}
	at := g.write & (RingSize - 1)
	if RingSize-at < maxRecord { // records do not wrap: a mark fills the end
		if !g.room(RingSize - at + maxRecord) {
			return
		}
		g.buf[at], g.buf[at+1] = 0, 0
		g.write += RingSize - at
		at = 0
	} else if !g.room(maxRecord) {
		return
	}
	g.write += uint64(put(g.buf[at:at+maxRecord], r, g.answers.Load()))
}

// room tells whether n more octets may be written.
func (g *Ring) room(n uint64) bool {
	if g.write+n <= g.free {
		return true
	}
	g.free = g.read.Load() + RingSize
	if g.write+n <= g.free {
		return true
	}
	g.dropped.Add(1)
	return false
}

// Flush is part of serve.Observer: what was observed may be read from now on, and
// is as late as it is now. The clock is read once for the batch.
func (g *Ring) Flush() {
	if g.write == g.seen {
		return
	}
	at := g.write & (RingSize - 1) // a record has left room for it
	binary.LittleEndian.PutUint64(g.buf[at:], stampMark)
	binary.LittleEndian.PutUint64(g.buf[at+8:], uint64(g.now()))
	g.write += stampSize
	g.seen = g.write
	g.published.Store(g.write)
}

// Dropped is how many records did not fit.
func (g *Ring) Dropped() uint64 { return g.dropped.Load() }

// Attach makes the caller the reader of what comes from now on. answers says whether
// the addresses in answers are wanted.
func (g *Ring) Attach(answers bool) {
	g.answers.Store(answers)
	if g.store.Load() == nil {
		buf := make([]byte, RingSize)
		g.store.Store(&buf)
	}
	g.read.Store(g.published.Load())
	g.attached.Store(true)
}

// Detach ends the reading: nothing is written until the next Attach.
func (g *Ring) Detach() { g.attached.Store(false) }

// Drain hands every published record to each, oldest first, and tells how much of
// the ring was in use.
func (g *Ring) Drain(each func(*Record)) (used int) {
	begin, end := g.read.Load(), g.published.Load()
	if begin == end {
		return 0
	}
	buf := *g.store.Load()
	rec := &g.rec
	for at := begin; at < end; {
		stamp := time.Duration(binary.LittleEndian.Uint64(buf[stampAfter(buf, at)+8:]))
		for {
			off := at & (RingSize - 1)
			size := uint64(binary.LittleEndian.Uint16(buf[off:]))
			if size == 0 {
				at += RingSize - off
				continue
			}
			if size == stampMark {
				at += stampSize
				break
			}
			get(buf[off:], rec)
			rec.Latency = max(stamp-rec.At, 0)
			each(rec)
			at += size
		}
	}
	g.read.Store(end)
	return int(end - begin)
}

// stampAfter is where the stamp of the batch at that place stands.
func stampAfter(buf []byte, at uint64) uint64 {
	for {
		off := at & (RingSize - 1)
		switch size := uint64(binary.LittleEndian.Uint16(buf[off:])); size {
		case 0:
			at += RingSize - off
		case stampMark:
			return off
		default:
			at += size
		}
	}
}

// Shared is an Observer for goroutines that have no ring of their own. They share
// some rings, each with a lock, and spread over them by the client's port.
type Shared struct{ shards []shard }

type shard struct {
	mu   sync.Mutex // guards ring as its one writer
	ring *Ring
	_    [40]byte // no two locks on one cache line
}

// NewShared makes an Observer that writes to rings.
func NewShared(rings ...*Ring) *Shared {
	s := &Shared{shards: make([]shard, len(rings))}
	for i, ring := range rings {
		s.shards[i].ring = ring
	}
	return s
}

// Observe is part of serve.Observer.
func (s *Shared) Observe(r *serve.Request) {
	d := &s.shards[int(r.Client.Port())%len(s.shards)]
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ring.Observe(r)
	d.ring.Flush()
}

// Flush is part of serve.Observer; Observe has done it.
func (s *Shared) Flush() {}
