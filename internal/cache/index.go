package cache

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
)

// bucket is one cache line of the index. A slot is 0, or where the entry is, how
// often it was asked for, and a tag from its hash:
//
//	offset in units (32 bits) | frequency (2 bits) | tag (30 bits)
//
// Readers change nothing but the frequency. All else is done under the shard's
// lock; an entry that moves keeps its slot, so that no reader misses it.
type bucket [8]atomic.Uint64

const (
	tagMask  = 1<<30 - 1
	freqUnit = 1 << 30
	freqMask = 3 * freqUnit
	keyMask  = tagMask | freqMask
)

func slotOffset(v uint64) uint32 { return uint32(v >> 32) }
func slotFreq(v uint64) int      { return int(v & freqMask / freqUnit) }

// slotFor is a slot's value for an entry.
func slotFor(hash uint64, off uint32, freq int) uint64 {
	return uint64(off)<<32 | uint64(freq)*freqUnit | hash&tagMask
}

// home is the first bucket of a hash; the second is its neighbour. The number
// comes from the upper bits, the tag from the lower ones, the shard from those
// between.
func (s *shard) home(hash uint64) uint64 {
	return hash >> 32 * uint64(len(s.buckets)) >> 32
}

func (c *Cache) shard(hash uint64) *shard {
	return &c.shards[hash>>30&c.mask]
}

// find is the slot of the entry that p looks for, what was in it, and the entry.
// The caller is inside an epoch or holds the lock.
func (s *shard) find(p *probe) (slot *atomic.Uint64, v uint64, e *entry) {
	tag := p.hash & tagMask
	i := s.home(p.hash)
	for range 2 {
		b := &s.buckets[i]
		for j := range b {
			if v = b[j].Load(); v&tagMask == tag && v != 0 {
				if e = s.entry(slotOffset(v)); e.is(p) {
					return &b[j], v, e
				}
			}
		}
		i ^= 1
	}
	return nil, 0, nil
}

// slotOf is the slot that leads to off, nil where the entry there is no longer in
// the index. The caller holds the lock.
func (s *shard) slotOf(hash uint64, off uint32) *atomic.Uint64 {
	i := s.home(hash)
	for range 2 {
		b := &s.buckets[i]
		for j := range b {
			if slotOffset(b[j].Load()) == off {
				return &b[j]
			}
		}
		i ^= 1
	}
	return nil
}

// vacant is a slot for a new entry: an empty one, or else the one of the two
// buckets that was asked for least, its entry dropped. The caller holds the lock.
func (s *shard) vacant(hash uint64) *atomic.Uint64 {
	i := s.home(hash)
	var weakest *atomic.Uint64
	least := 4
	for range 2 {
		b := &s.buckets[i]
		for j := range b {
			v := b[j].Load()
			if v == 0 {
				return &b[j]
			}
			if f := slotFreq(v); f < least {
				weakest, least = &b[j], f
			}
		}
		i ^= 1
	}
	s.drop(weakest)
	s.evictions++
	return weakest
}

// relink makes slot lead to another place. The frequency is kept, or lowered by
// less, to 0 at least.
func relink(slot *atomic.Uint64, off uint32, less int) {
	for {
		v := slot.Load()
		if slot.CompareAndSwap(v, slotFor(v, off, max(slotFreq(v)-less, 0))) {
			return
		}
	}
}

// drop empties a slot. The caller holds the lock.
func (s *shard) drop(slot *atomic.Uint64) {
	v := slot.Swap(0)
	s.entries--
	s.live -= int64(s.entry(slotOffset(v)).size())
}

// touch notes that the entry was asked for.
func touch(slot *atomic.Uint64, v uint64) {
	if v&freqMask != freqMask {
		slot.CompareAndSwap(v, v+freqUnit) // whoever was faster has noted it as well
	}
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func be64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
