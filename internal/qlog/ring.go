package qlog

import (
	"sync"
	"sync/atomic"

	"github.com/waymark-dns/waymark/internal/serve"
)

// RingSize is the octets of a ring: about 2,500 queries, so that it stays in the
// processor's cache.
const RingSize = 1 << 18

// Ring is a queue of records with one writer and at most one reader. The writer
// never waits: while nobody reads, it overwrites the oldest records; with a
// reader, a record that does not fit is dropped and counted.
type Ring struct {
	buf   []byte
	write uint64 // octets ever written; the writer's own
	free  uint64 // how far write may go before read has to be looked at again

	published atomic.Uint64 // write, as the reader may see it
	read      atomic.Uint64 // octets ever read
	attached  atomic.Bool
	dropped   atomic.Uint64
}

// NewRing makes a ring without a reader.
func NewRing() *Ring { return &Ring{buf: make([]byte, RingSize)} }

// Observe is part of serve.Observer.
func (g *Ring) Observe(r *serve.Request) {
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
	g.write += uint64(put(g.buf[at:at+maxRecord], r))
}

// room tells whether n more octets may be written.
func (g *Ring) room(n uint64) bool {
	if g.write+n <= g.free {
		return true
	}
	if !g.attached.Load() {
		g.free = g.write + RingSize/8 // look again for a reader after that
		return true
	}
	g.free = g.read.Load() + RingSize
	if g.write+n <= g.free {
		return true
	}
	g.dropped.Add(1)
	return false
}

// Flush is part of serve.Observer: what was observed may be read from now on.
func (g *Ring) Flush() { g.published.Store(g.write) }

// Dropped is how many records did not fit.
func (g *Ring) Dropped() uint64 { return g.dropped.Load() }

// Attach makes the caller the reader; records from before are skipped. The writer
// looks for a reader each eighth of the ring, so none can be overwritten.
func (g *Ring) Attach() {
	g.read.Store(g.published.Load())
	g.attached.Store(true)
}

// Drain hands every published record to each, oldest first.
func (g *Ring) Drain(each func(Record)) {
	at, end := g.read.Load(), g.published.Load()
	for at < end {
		off := at & (RingSize - 1)
		if g.buf[off] == 0 && g.buf[off+1] == 0 {
			at += RingSize - off
			continue
		}
		rec, size := get(g.buf[off:])
		each(rec)
		at += uint64(size)
	}
	g.read.Store(at)
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
