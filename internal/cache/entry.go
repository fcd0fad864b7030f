package cache

import (
	"net/netip"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/waymark-dns/waymark/internal/wire"
)

// entry is the head of an entry as it lies in a segment. Behind it come, where
// flagged, a scope or a list of prefix lengths, then the plain form, its TTL
// offsets, and where the entry is signed the DNSSEC form and its TTL offsets.
// All but again is never changed once the index knows of the entry.
type entry struct {
	hash     uint64
	stored   int64  // when, in nanoseconds of the process's clock; negative where it was loaded
	ttl      uint32 // life from then on, in seconds
	again    uint32 // atomic: the next refresh is not before this second (upper 31 bits); lowest bit: the last failed
	what     uint64 // view, type, class
	flags    uint16 // response code in the lowest four bits
	ede      uint16
	upstream uint16
	units    uint16 // size of all, in units

	plainLen, plainTTLs uint16 // octets of the message, and of TTL offsets how many
	fullLen, fullTTLs   uint16 // of the DNSSEC form; 0 where it is the plain one
}

const (
	entrySize = int(unsafe.Sizeof(entry{}))
	unit      = 16 // entries start at multiples of it
	scopeSize = 24
)

// Flags of an entry.
const (
	flagRcode    = 15
	flagAD       = 1 << 4
	flagCD       = 1 << 5
	flagScoped   = 1 << 6 // a scope follows
	flagMarker   = 1 << 7 // no response: which prefix lengths there are for the question
	flagNegative = 1 << 8
	flagFailure  = 1 << 9 // SERVFAIL

	flagsOfKey = flagCD | flagScoped | flagMarker
)

// scope is the subnet that an entry is for, or the prefix lengths of a marker.
type scope struct {
	addr [16]byte // an IPv4 address in the first four; in a marker eight lengths of IPv4, eight of IPv6
	bits uint8
	v4   bool
	_    [6]byte
}

// probe is a key made ready for comparing.
type probe struct {
	hash  uint64
	what  uint64
	flags uint16 // of flagsOfKey
	name  wire.Name
	scope scope
}

// probe is k without its scope.
func (k *Key) probe() probe {
	p := probe{what: uint64(k.View) | uint64(k.Type)<<32 | uint64(k.Class)<<48, name: k.Name}
	if k.CD {
		p.flags = flagCD
	}
	p.hash = mix(k.Hash^p.what, 0x9e3779b97f4a7c15+uint64(p.flags)<<1)
	return p
}

// at is p for one subnet.
func (p probe) at(net netip.Prefix) probe {
	addr := net.Addr()
	p.scope = scope{bits: uint8(net.Bits()), v4: addr.Is4()}
	if p.scope.v4 {
		a := addr.As4()
		copy(p.scope.addr[:], a[:])
	} else {
		p.scope.addr = addr.As16()
	}
	p.flags |= flagScoped
	hi, lo := be64(p.scope.addr[:8]), be64(p.scope.addr[8:])
	p.hash = mix(p.hash^hi, 0xd6e8feb86659fd93+lo+uint64(p.scope.bits)<<1)
	return p
}

// marker is p for the marker of its question.
func (p probe) marker() probe {
	p.flags |= flagMarker
	p.hash = mix(p.hash, 0xa0761d6478bd642f)
	return p
}

// is tells whether e is what p looks for.
func (e *entry) is(p *probe) bool {
	if e.hash != p.hash || e.what != p.what || e.flags&flagsOfKey != p.flags {
		return false
	}
	if p.flags&flagScoped != 0 && *e.scope() != p.scope {
		return false
	}
	// A name in a message is uncompressed in the question, and a name that is
	// equal as far as p's goes ends where it ends.
	m := e.message()
	end := wire.HeaderSize + len(p.name)
	return end <= len(m) && wire.EqualFold(m[wire.HeaderSize:end], p.name)
}

func (e *entry) scope() *scope {
	return (*scope)(unsafe.Add(unsafe.Pointer(e), entrySize))
}

// body is where the plain form starts.
func (e *entry) body() unsafe.Pointer {
	n := entrySize
	if e.flags&(flagScoped|flagMarker) != 0 {
		n += scopeSize
	}
	return unsafe.Add(unsafe.Pointer(e), n)
}

// message is the plain form.
func (e *entry) message() []byte {
	return unsafe.Slice((*byte)(e.body()), int(e.plainLen))
}

// form is one of the two forms, with its TTL offsets.
func (e *entry) form(dnssec bool) (msg, ttlAt []byte) {
	p, n, ttls := e.body(), int(e.plainLen), 2*int(e.plainTTLs)
	if dnssec && e.fullLen != 0 {
		p, n, ttls = unsafe.Add(p, n+ttls), int(e.fullLen), 2*int(e.fullTTLs)
	}
	all := unsafe.Slice((*byte)(p), n+ttls)
	return all[:n:n], all[n:]
}

// size is the octets that e takes.
func (e *entry) size() int { return int(e.units) * unit }

// left is the life that is left, negative where it is over.
func (e *entry) left(now time.Duration) time.Duration {
	return time.Duration(e.stored) + time.Duration(e.ttl)*time.Second - now
}

// dead tells whether nobody may use e any more. Failures are never stale.
func (e *entry) dead(now, stale time.Duration) bool {
	left := e.left(now)
	return left <= -stale || left <= 0 && e.flags&flagFailure != 0
}

// age is how many seconds ago e was stored.
func (e *entry) age(now time.Duration) uint32 {
	return seconds(now - time.Duration(e.stored))
}

// refreshable tells whether the time of the next refresh has come, or else
// whether it is because the last one failed.
func (e *entry) refreshable(now time.Duration) (due, failed bool) {
	again := atomic.LoadUint32(&e.again)
	return again>>1 <= uint32(now/time.Second), again&1 != 0
}

// win is true for one of all who call it within hold.
func (e *entry) win(now, hold time.Duration) bool {
	again := atomic.LoadUint32(&e.again)
	return again>>1 <= uint32(now/time.Second) &&
		atomic.CompareAndSwapUint32(&e.again, again, uint32((now+hold)/time.Second)<<1)
}

// failed puts the next refresh off by hold.
func (e *entry) failed(now, hold time.Duration) {
	atomic.StoreUint32(&e.again, uint32((now+hold)/time.Second)<<1|1)
}

// copyEntry copies e to at. Readers may change again meanwhile.
func copyEntry(at unsafe.Pointer, e *entry) {
	const before, behind = unsafe.Offsetof(e.again), unsafe.Offsetof(e.again) + unsafe.Sizeof(e.again)
	n := e.size()
	dst, src := unsafe.Slice((*byte)(at), n), unsafe.Slice((*byte)(unsafe.Pointer(e)), n)
	copy(dst[:before], src)
	(*entry)(at).again = atomic.LoadUint32(&e.again)
	copy(dst[behind:], src[behind:])
}
