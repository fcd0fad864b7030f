package netsets

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"
)

// recent remembers what was written lately: a table where the later of two that
// meet in one slot stays. Losing one only means that it is written again. Any
// goroutine may read it, one writes.
type recent struct {
	secret [2]uint64
	slots  [recentSlots]atomic.Pointer[written]
}

// recentSlots is enough for the addresses that a house asks for in a minute; the
// table then takes half a megabyte at most.
const recentSlots = 8192

// written is one thing that is in a set: a prefix, or an address as a prefix of
// full length.
type written struct {
	target *Target
	prefix netip.Prefix
	until  time.Duration
}

func newRecent() *recent { return &recent{secret: [2]uint64{rand.Uint64(), rand.Uint64()}} }

// slot is where an entry would be. The secret keeps clients from choosing.
func (r *recent) slot(t *Target, p netip.Prefix) *atomic.Pointer[written] {
	a := p.Addr().As16()
	h := mix(binary.LittleEndian.Uint64(a[:8])^r.secret[0], binary.LittleEndian.Uint64(a[8:])^r.secret[1])
	h = mix(h^t.sum, bits.RotateLeft64(r.secret[1], 32)^uint64(p.Bits()))
	return &r.slots[h%recentSlots]
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// has tells whether the address, or the prefix that the target makes of it, was
// written lately.
func (r *recent) has(t *Target, a netip.Addr, now time.Duration) bool {
	return r.hasPrefix(t, t.prefix(a), now) || r.hasPrefix(t, netip.PrefixFrom(a, a.BitLen()), now)
}

func (r *recent) hasPrefix(t *Target, p netip.Prefix, now time.Duration) bool {
	e := r.slot(t, p).Load()
	return e != nil && now < e.until && e.prefix == p && (e.target == t || *e.target == *t)
}

func (r *recent) put(t *Target, p netip.Prefix, until time.Duration) {
	r.slot(t, p).Store(&written{t, p, until})
}

// forget drops all of a target.
func (r *recent) forget(t *Target) {
	for i := range r.slots {
		if e := r.slots[i].Load(); e != nil && *e.target == *t {
			r.slots[i].Store(nil)
		}
	}
}
