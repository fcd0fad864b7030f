// Package limit holds what keeps a server usable under abuse: rate limits per
// client (Rate), response rate limiting (RRL), server cookies (Cookies), the
// memory of clients that are known (Known) and the budget of parked requests
// (Shed). It decides; it sends nothing, reads no clock and writes no log. The
// policy and the listeners ask it, from any goroutine at once.
//
// Its memory is fixed when it is made, a call neither allocates nor waits, and
// all of it fails open: a table too small for the clients of the day forgets
// some of them, and never denies one for the sake of another.
package limit

import (
	"encoding/binary"
	"net/netip"
)

// tries bounds the loops over an atomic word. Each failure means that another
// call changed the word meanwhile, so that with one worker per CPU a handful is
// the most that is ever seen.
const tries = 64

// mask cuts addresses to prefixes. Addresses are taken as 16 octets, IPv4 as
// ::ffff:0:0/96 (RFC 4291 §2.5.5.2): an IPv4 client is the same in both forms,
// and zones play no part.
type mask struct {
	v4     uint64 // of the low half of an IPv4 address
	hi, lo uint64 // of both halves of an IPv6 address
}

// newMask makes a mask of two prefix lengths; outside of 1..32 and 1..128 the
// defaults take their place.
func newMask(v4, v6 int, default4, default6 int) mask {
	if v4 < 1 || v4 > 32 {
		v4 = default4
	}
	if v6 < 1 || v6 > 128 {
		v6 = default6
	}
	const all = ^uint64(0)
	m := mask{v4: all << (32 - v4), hi: all, lo: all << (128 - v6)}
	if v6 < 64 {
		m.hi = all << (64 - v6)
	}
	return m
}

// of is the prefix of addr as two numbers.
func (m *mask) of(addr netip.Addr) (hi, lo uint64) {
	if addr.Is4() { // four times as fast as by way of 16 octets
		a := addr.As4()
		return 0, (0xffff<<32 | uint64(binary.BigEndian.Uint32(a[:]))) & m.v4
	}
	a := addr.As16()
	hi, lo = binary.BigEndian.Uint64(a[:8]), binary.BigEndian.Uint64(a[8:])
	if hi == 0 && lo>>32 == 0xffff {
		return hi, lo & m.v4
	}
	return hi & m.hi, lo & m.lo
}
