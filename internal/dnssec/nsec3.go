// Package dnssec holds pure functions over DNSSEC data in wire format. It keeps
// no state and reads no files; zone proves denials with it.
package dnssec

import (
	"crypto/sha1"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Hash is a hashed owner name (RFC 5155 §5); SHA-1 is the only algorithm.
type Hash [sha1.Size]byte

// HashText is the length of a Hash in base32hex (RFC 4648 §7), without padding.
const HashText = 32

// NSEC3Params is how names of a zone are hashed (RFC 5155 §4). The zero value is
// what RFC 9276 asks for: no salt, no additional iterations.
type NSEC3Params struct {
	Iterations uint16
	Salt       []byte
}

// HashName is the hash of name, letters folded. It allocates nothing.
func (p NSEC3Params) HashName(name wire.Name) Hash {
	var buf [sha1.Size + 255 + wire.MaxName]byte
	n := 0
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		buf[n] = c
		n++
	}
	n += copy(buf[n:], p.Salt)
	h := Hash(sha1.Sum(buf[:n]))
	for range p.Iterations {
		n = copy(buf[:], h[:])
		n += copy(buf[n:], p.Salt)
		h = sha1.Sum(buf[:n])
	}
	return h
}

// DecodeHash reads a hash in base32hex, letters folded.
func DecodeHash(text []byte) (h Hash, ok bool) {
	if len(text) != HashText {
		return h, false
	}
	var bits uint64
	n, out := 0, 0
	for _, c := range text {
		var v byte
		switch {
		case c >= '0' && c <= '9':
			v = c - '0'
		case c >= 'a' && c <= 'v':
			v = c - 'a' + 10
		case c >= 'A' && c <= 'V':
			v = c - 'A' + 10
		default:
			return h, false
		}
		bits = bits<<5 | uint64(v)
		if n += 5; n >= 8 {
			n -= 8
			h[out] = byte(bits >> n)
			out++
		}
	}
	return h, true
}

// ReadNSEC3 reads the parameters at the start of the RDATA of an NSEC3 or
// NSEC3PARAM record (RFC 5155 §3.2, §4.2). The salt is a view of rdata. ok is
// false for a hash algorithm other than SHA-1.
func ReadNSEC3(rdata []byte) (p NSEC3Params, ok bool) {
	if len(rdata) < 5 || len(rdata) < 5+int(rdata[4]) || rdata[0] != 1 {
		return p, false
	}
	return NSEC3Params{Iterations: uint16(rdata[2])<<8 | uint16(rdata[3]), Salt: rdata[5 : 5+int(rdata[4])]}, true
}
