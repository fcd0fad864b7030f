package cache

import (
	"sync/atomic"
	"unsafe"
)

// epoch tells when memory that readers may still look at can be used again,
// without readers registering anywhere. Time is cut into epochs. A reader counts
// itself in under the parity of the epoch it entered in. The epoch moves on from
// e to e+1 only when all who entered in e-1 have left. Memory that was unlinked
// in epoch e can be reached by those who entered in e or before, so in e+2
// nobody is left who can.
type epoch struct {
	now     atomic.Uint64
	_       [56]byte
	readers [stripes]stripe
}

// stripes is how many counters share the work, so that readers on different
// cores do not write to the same cache line: as many as there are shards.
const stripes = 64

type stripe struct {
	n [2]atomic.Int64 // readers inside, by the parity of their epoch
	_ [48]byte
}

// guard is a reader's presence.
type guard struct{ n *atomic.Int64 }

// enter counts a reader in. from is anything that differs between those who read
// at the same time, such as the Builder they write to; it is not read.
func (e *epoch) enter(from unsafe.Pointer) guard {
	s := &e.readers[uint64(uintptr(from))*0x9e3779b97f4a7c15>>58]
	for {
		now := e.now.Load()
		n := &s.n[now&1]
		n.Add(1)
		if e.now.Load() == now {
			return guard{n}
		}
		n.Add(-1) // it moved on in between: those who wait for this parity may have missed us
	}
}

// leave counts the reader out.
func (g guard) leave() { g.n.Add(-1) }

// advance moves the epoch on, where nobody is left of the one before.
func (e *epoch) advance() bool {
	now := e.now.Load()
	for i := range e.readers {
		if e.readers[i].n[(now+1)&1].Load() != 0 {
			return false
		}
	}
	return e.now.CompareAndSwap(now, now+1)
}
