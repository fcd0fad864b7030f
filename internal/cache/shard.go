package cache

import (
	"sync"
	"time"
	"unsafe"
)

const (
	segmentSize  = 128 << 10
	segmentUnits = segmentSize / unit
	spares       = 2                   // segments kept free, or soon free, beyond those in use
	mostKept     = segmentSize / 4 * 3 // octets copied on from a segment: a quarter at least is gained
	mostEmptied  = 4                   // segments for one fill: by then one is gained
	bucketSize   = int64(unsafe.Sizeof(bucket{}))
)

// layout is how the memory of a shard is divided: index, ghosts, segments.
type layout struct {
	size     int64
	buckets  int
	ghosts   int // octets
	segments int
}

// plan divides size octets. An eighth for the index is a slot for every 64 octets:
// with entries of 112 octets and more, half of the slots are free, and hardly any
// entry goes for want of a slot. A 64th are ghosts, about one for each entry that
// fits in.
func plan(size int64) layout {
	l := layout{buckets: int(size / 8 / bucketSize &^ 1), ghosts: int(size/64) / ghostSize * ghostSize}
	front := int64(l.buckets)*bucketSize + int64(l.ghosts)
	l.segments = int((size - front) / segmentSize)
	l.size = (front + int64(l.segments)*segmentSize + 4095) &^ 4095
	return l
}

// shard is a part of the cache with a lock of its own. Readers use buckets and
// base only, which never change.
type shard struct {
	buckets []bucket
	base    unsafe.Pointer // of the shard's memory; offsets of entries are from here
	front   uint32         // units before the first segment
	epoch   *epoch
	stale   time.Duration
	_       [64]byte // what writers change is on other cache lines

	mu       sync.Mutex // guards all below
	ghosts   ghosts
	segments []segment
	free     []uint32
	retired  []retired // oldest first
	small    fifo      // entries that are new
	main     fifo      // entries that were asked for

	entries                int
	live                   int64 // octets of entries that the index knows
	fills, evictions, lost uint64
	_                      [64]byte
}

// segment is the state of one segment.
type segment struct {
	used  uint32 // octets
	small bool   // stands in the small queue
}

// retired is a segment that readers may still be in.
type retired struct {
	segment uint32
	epoch   uint64
}

// fifo is a queue of segments, oldest first. The last is being filled.
type fifo struct {
	list []uint32
	head int
}

func (q *fifo) len() int        { return len(q.list) - q.head }
func (q *fifo) push(seg uint32) { q.list = append(q.list, seg) }
func (q *fifo) last() uint32    { return q.list[len(q.list)-1] }
func (q *fifo) all() []uint32   { return q.list[q.head:] }
func (q *fifo) clear()          { q.list, q.head = q.list[:0], 0 }

// pop takes the oldest.
func (q *fifo) pop() uint32 {
	seg := q.list[q.head]
	if q.head++; q.head > len(q.list)/2 {
		q.list = append(q.list[:0], q.list[q.head:]...)
		q.head = 0
	}
	return seg
}

func (s *shard) open(l layout, mem []byte, e *epoch, stale time.Duration) {
	index := int64(l.buckets) * bucketSize
	s.base = unsafe.Pointer(&mem[0])
	s.buckets = unsafe.Slice((*bucket)(s.base), l.buckets)
	s.ghosts = unsafe.Slice((*ghostSet)(unsafe.Pointer(&mem[index])), l.ghosts/ghostSize)
	s.front = uint32((index + int64(l.ghosts)) / unit)
	s.epoch, s.stale = e, stale
	s.segments = make([]segment, l.segments)
	s.free = make([]uint32, 0, l.segments)
	for i := l.segments - 1; i >= 0; i-- {
		s.free = append(s.free, uint32(i))
	}
}

// entry is the entry at an offset.
func (s *shard) entry(off uint32) *entry {
	return (*entry)(unsafe.Add(s.base, uintptr(off)*unit))
}

// start is the offset of a segment.
func (s *shard) start(seg uint32) uint32 { return s.front + seg*segmentUnits }

// segmentOf is the segment that an offset is in.
func (s *shard) segmentOf(off uint32) *segment {
	return &s.segments[(off-s.front)/segmentUnits]
}

// place finds room for size octets at the end of a queue, emptying segments where
// evict is set. It is false where no segment is free: readers may still be in
// those that were emptied. The caller holds the lock, as for all below.
func (s *shard) place(q *fifo, size int, now time.Duration, evict bool) (off uint32, ok bool) {
	if !s.fits(q, size) {
		if size > segmentSize {
			return 0, false
		}
		for n := 0; evict && n < mostEmptied && len(s.free)+len(s.retired) <= spares; n++ {
			s.empty(now)
		}
		// What was copied on may have given the queue a new segment already.
		if !s.fits(q, size) && !s.extend(q) {
			return 0, false
		}
	}
	seg := q.last()
	off = s.start(seg) + s.segments[seg].used/unit
	s.segments[seg].used += uint32(size)
	return off, true
}

// fits tells whether the segment that a queue is filling has room.
func (s *shard) fits(q *fifo, size int) bool {
	return q.len() > 0 && int(s.segments[q.last()].used)+size <= segmentSize
}

// extend gives a queue a free segment.
func (s *shard) extend(q *fifo) bool {
	s.reclaim()
	n := len(s.free)
	if n == 0 {
		return false
	}
	seg := s.free[n-1]
	s.free = s.free[:n-1]
	s.segments[seg] = segment{small: q == &s.small}
	q.push(seg)
	return true
}

// reclaim makes segments free that no reader can be in any more, and moves the
// epoch on where that may help.
func (s *shard) reclaim() {
	for range 2 {
		if len(s.retired) > 0 && s.retired[0].epoch+2 > s.epoch.now.Load() {
			s.epoch.advance()
		}
	}
	now, n := s.epoch.now.Load(), 0
	for n < len(s.retired) && s.retired[n].epoch+2 <= now {
		s.free = append(s.free, s.retired[n].segment)
		n++
	}
	s.retired = append(s.retired[:0], s.retired[n:]...)
}

// retire notes that a segment is unlinked: the index leads into it no longer.
func (s *shard) retire(seg uint32) {
	s.retired = append(s.retired, retired{seg, s.epoch.now.Load()})
}

// empty retires the oldest segment of the small queue where that has more than a
// tenth of all, else of the main queue. What was asked for is copied on into the
// main queue. A segment that is being filled stays.
func (s *shard) empty(now time.Duration) {
	q := &s.main
	if s.main.len() < 2 || s.small.len() > max(1, len(s.segments)/10) {
		q = &s.small
	}
	if q.len() < 2 {
		return
	}
	seg := q.pop()
	off := s.start(seg)
	end, room := off+s.segments[seg].used/unit, mostKept
	for off < end {
		e := s.entry(off)
		room -= s.judge(e, off, room, now)
		off += uint32(e.units)
	}
	s.retire(seg)
}

// judge copies an entry on, where somebody asked for it and there is room, or
// drops it. It returns the octets copied.
func (s *shard) judge(e *entry, off uint32, room int, now time.Duration) int {
	slot := s.slotOf(e.hash, off)
	if slot == nil {
		return 0 // replaced or dropped before
	}
	size, small := e.size(), s.segmentOf(off).small
	if slotFreq(slot.Load()) > 0 && size <= room && !e.dead(now, s.stale) {
		if to, ok := s.place(&s.main, size, now, false); ok {
			copyEntry(unsafe.Pointer(s.entry(to)), e)
			less := 1
			if small {
				less = 3 // in the main queue everybody starts again
			}
			relink(slot, to, less)
			return size
		}
	}
	s.drop(slot)
	s.evictions++
	if small {
		s.ghosts.add(e.hash)
	}
	return 0
}
