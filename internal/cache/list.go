package cache

import (
	"net/netip"
	"runtime"
	"time"
	"unsafe"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Entry is what Each tells of an entry.
type Entry struct {
	Name        wire.Name // as it was put in; valid during the call only
	Type, Class uint16
	View        uint32
	CD          bool
	Scope       netip.Prefix // the zero value where the entry is for everybody
	Rcode       wire.Rcode
	Left        time.Duration // life left; negative when stale
	Size        int           // octets
	Freq        int           // how often it was asked for, 3 at most
}

// Each calls f for every entry at that time, in no order, until f is false. It
// holds no lock, and f may take its time. Entries that are put in or dropped
// meanwhile may be missed.
func (c *Cache) Each(now time.Duration, f func(Entry) bool) {
	var found [len(bucket{})]Entry
	var names [len(bucket{})][wire.MaxName]byte
	for i := range c.shards {
		s := &c.shards[i]
		for j := range s.buckets {
			n := 0
			c.visit(s, j, func(e *entry, v uint64) {
				if !e.dead(now, c.conf.MaxStale) {
					found[n] = e.describe(now, names[n][:0])
					found[n].Freq = slotFreq(v)
					n++
				}
			})
			for _, e := range found[:n] {
				if !f(e) {
					return
				}
			}
		}
	}
}

// visit calls f for the responses of one bucket, from inside an epoch. Few at a
// time, so that nobody waits for segments.
func (c *Cache) visit(s *shard, bucket int, f func(e *entry, v uint64)) {
	defer runtime.KeepAlive(c)
	b := &s.buckets[bucket]
	g := c.epoch.enter(unsafe.Pointer(b))
	for i := range b {
		if v := b[i].Load(); v != 0 {
			if e := s.entry(slotOffset(v)); e.flags&flagMarker == 0 {
				f(e, v)
			}
		}
	}
	g.leave()
}

// describe is what there is to tell of e; its name is copied to name.
func (e *entry) describe(now time.Duration, name []byte) Entry {
	d := Entry{
		Name: append(name, e.name()...), Type: uint16(e.what >> 32), Class: uint16(e.what >> 48), View: uint32(e.what),
		CD: e.flags&flagCD != 0, Rcode: wire.Rcode(e.flags & flagRcode), Left: e.left(now), Size: e.size(),
	}
	if e.flags&flagScoped != 0 {
		d.Scope = e.scope().prefix()
	}
	return d
}

// name is the name of the question.
func (e *entry) name() wire.Name {
	m := e.message()
	return wire.Name(m[wire.HeaderSize:wire.UncompressedEnd(m, wire.HeaderSize)])
}

// prefix is the subnet of an entry.
func (s *scope) prefix() netip.Prefix {
	if s.v4 {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(s.addr[:4])), int(s.bits))
	}
	return netip.PrefixFrom(netip.AddrFrom16(s.addr), int(s.bits))
}

// Flush drops all entries of a name, of all types, and tells how many.
func (c *Cache) Flush(name wire.Name) int {
	return c.flush(func(n wire.Name) bool { return wire.EqualFold(n, name) })
}

// FlushTree drops all entries of a name and of all names below it, and tells how
// many.
func (c *Cache) FlushTree(name wire.Name) int {
	return c.flush(func(n wire.Name) bool { return n.Under(name) })
}

func (c *Cache) flush(is func(wire.Name) bool) (dropped int) {
	for i := range c.shards {
		s := &c.shards[i]
		for j := range s.buckets {
			c.visit(s, j, func(e *entry, v uint64) {
				if is(e.name()) && s.remove(e.hash, slotOffset(v)) {
					dropped++
				}
			})
		}
	}
	return dropped
}

// remove drops the entry at off, where it is still there. The caller is inside an
// epoch: nothing else can be at off.
func (s *shard) remove(hash uint64, off uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.slotOf(hash, off)
	if slot != nil {
		s.drop(slot)
	}
	return slot != nil
}

// FlushAll drops everything.
func (c *Cache) FlushAll() {
	defer runtime.KeepAlive(c)
	for i := range c.shards {
		c.shards[i].clear()
	}
}

func (s *shard) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.buckets {
		for j := range s.buckets[i] {
			s.buckets[i][j].Store(0)
		}
	}
	for _, q := range []*fifo{&s.small, &s.main} {
		for _, seg := range q.all() {
			s.retire(seg)
		}
		q.clear()
	}
	clear(s.ghosts)
	s.entries, s.live = 0, 0
}

// Stats are numbers of a cache. Hits are counted by those who ask.
type Stats struct {
	Entries   int
	Used      int64  // octets of live entries
	Size      int64  // octets that the cache may take
	Fills     uint64 // responses stored since the start, as the rest
	Evictions uint64 // entries that went to make room
	Dropped   uint64 // responses that found no free segment
}

// Stats adds the numbers of all shards up.
func (c *Cache) Stats() Stats {
	defer runtime.KeepAlive(c)
	st := Stats{Size: c.conf.Size}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		st.Entries += s.entries
		st.Used += s.live
		st.Fills += s.fills
		st.Evictions += s.evictions
		st.Dropped += s.lost
		s.mu.Unlock()
	}
	return st
}
