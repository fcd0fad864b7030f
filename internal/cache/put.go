package cache

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/waymark-dns/waymark/internal/wire"
)

// recheck is how long a refresh is not tried again after one has failed (RFC 8767
// §5, failure recheck timer).
const recheck = 30 * time.Second

// Put stores msg, a response of the upstream with that number to the question of
// k. A scope in k is the subnet that the response is for; /0 is everybody (RFC
// 7871 §7.3.1). msg is not kept. A failure does not replace data that is there,
// fresh or stale: then it is as if Failed had been called.
func (c *Cache) Put(k *Key, msg []byte, now time.Duration, upstream uint16) Stored {
	r := c.readings.get()
	defer c.readings.put(r)
	return c.store(k, r, r.read(k, msg, &c.limits), now, upstream)
}

// store stores what was read, with that result.
func (c *Cache) store(k *Key, r *reading, result Stored, now time.Duration, upstream uint16) Stored {
	switch {
	case result == NotCacheable && r.rcode != wire.NoError && r.rcode != wire.NXDomain:
		if c.fail(k, now) {
			return KeptOld
		}
		return result
	case result != Kept:
		return result
	}
	p := k.probe()
	scoped := k.Scope.IsValid() && k.Scope.Bits() > 0
	if scoped {
		p = p.at(k.Scope.Masked())
	}
	n := newEntry{p: &p, r: r, stored: now, upstream: upstream}
	if result = c.insert(&n, now); result == Kept && scoped {
		c.mark(k, now)
	}
	return result
}

// newEntry is an entry to be stored.
type newEntry struct {
	p        *probe
	r        *reading // nil in a marker
	lengths  scope    // of a marker
	stored   time.Duration
	upstream uint16
	freq     int
	loaded   bool // it does not replace what was stored later
}

// size is the octets that n needs.
func (n *newEntry) size() int {
	size := entrySize
	if n.p.flags&(flagScoped|flagMarker) != 0 {
		size += scopeSize
	}
	if n.r == nil {
		size += n.markerLen()
	} else {
		plain := n.plain()
		size += len(plain.msg) + len(plain.ttlAt)
		if n.r.signed {
			size += len(n.r.full.msg) + len(n.r.full.ttlAt)
		}
	}
	return (size + unit - 1) &^ (unit - 1)
}

// plain is the form for clients without DNSSEC.
func (n *newEntry) plain() *form {
	if n.r.signed {
		return &n.r.plain
	}
	return &n.r.full
}

// markerLen is the length of a marker's message: a name where one is in a
// response, for comparing.
func (n *newEntry) markerLen() int { return wire.HeaderSize + len(n.p.name) }

// insert stores n in its shard.
func (c *Cache) insert(n *newEntry, now time.Duration) Stored {
	defer runtime.KeepAlive(c)
	s := c.shard(n.p.hash)
	size := n.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	_, v, old := s.find(n.p)
	if old != nil && old.dead(now, s.stale) {
		old = nil
	}
	q := &s.small
	switch {
	case old != nil && n.keepsOld(old):
		if n.r.rcode == wire.ServFail {
			old.failed(now, recheck)
		}
		return KeptOld
	case old != nil && !s.segmentOf(slotOffset(v)).small, old == nil && s.ghosts.take(n.p.hash), n.freq > 0:
		q = &s.main
	}
	off, ok := s.place(q, size, now, true)
	if !ok {
		s.lost++
		return NoRoom
	}
	n.write(s.entry(off), size)
	s.link(n.p, off, size, n.freq)
	s.fills++
	return Kept
}

// keepsOld tells whether what is there is better than n.
func (n *newEntry) keepsOld(old *entry) bool {
	switch {
	case n.r == nil || old.flags&flagFailure != 0:
		return false
	case n.r.rcode == wire.ServFail:
		return true
	}
	return n.loaded && old.stored >= int64(n.stored)
}

// link makes the index lead to a new entry, in the place of the one with the same
// key where there is one.
func (s *shard) link(p *probe, off uint32, size, freq int) {
	s.live += int64(size)
	// It may have moved or gone while room was made.
	if slot, _, old := s.find(p); slot != nil {
		s.live -= int64(old.size())
		relink(slot, off, 0)
		return
	}
	s.vacant(p.hash).Store(slotFor(p.hash, off, freq))
	s.entries++
}

// write fills in an entry that no reader knows of.
func (n *newEntry) write(e *entry, size int) {
	*e = entry{hash: n.p.hash, what: n.p.what, flags: n.p.flags, stored: int64(n.stored), units: uint16(size / unit), upstream: n.upstream}
	if n.r == nil {
		n.writeMarker(e)
		return
	}
	if n.p.flags&flagScoped != 0 {
		*e.scope() = n.p.scope
	}
	r, plain := n.r, n.plain()
	e.ttl, e.ede = r.life, r.ede
	e.flags |= r.flags()
	e.plainLen, e.plainTTLs = uint16(len(plain.msg)), uint16(len(plain.ttlAt)/2)
	at := store(store(e.body(), plain.msg), plain.ttlAt)
	if r.signed {
		e.fullLen, e.fullTTLs = uint16(len(r.full.msg)), uint16(len(r.full.ttlAt)/2)
		store(store(at, r.full.msg), r.full.ttlAt)
	}
}

// writeMarker fills in a marker. It lives until nobody asks for it any more.
func (n *newEntry) writeMarker(e *entry) {
	e.ttl = maxTTL
	e.plainLen = uint16(n.markerLen())
	*e.scope() = n.lengths
	msg := e.message()
	clear(msg[:wire.HeaderSize])
	copy(msg[wire.HeaderSize:], n.p.name)
}

// flags is what an entry's flags say of the response.
func (r *reading) flags() uint16 {
	f := uint16(r.rcode & flagRcode)
	if r.ad {
		f |= flagAD
	}
	if r.negative {
		f |= flagNegative
	}
	if r.rcode == wire.ServFail {
		f |= flagFailure
	}
	return f
}

// store copies b to at and returns what is behind it.
func store(at unsafe.Pointer, b []byte) unsafe.Pointer {
	copy(unsafe.Slice((*byte)(at), len(b)), b)
	return unsafe.Add(at, len(b))
}
