package limit

import (
	"crypto/subtle"
	"encoding/binary"
	"net/netip"
)

// State is what a COOKIE option is worth.
type State uint8

// The states of a COOKIE option (RFC 7873 §5.2).
const (
	Malformed  State = iota // of a length that cannot be: FORMERR
	ClientOnly              // a client cookie alone: the client does not know ours yet
	Bad                     // a server cookie that is not ours, or too old, or of the future
	Stale                   // valid, and to be renewed: over half an hour old, or of a previous secret
	Good                    // valid
)

// Valid says that the client has got a response from here lately, at the address
// from which it asks.
func (s State) Valid() bool { return s >= Stale }

// CookieSize is the length of a COOKIE option that Make makes.
const CookieSize = clientSize + serverSize

const (
	clientSize  = 8
	serverSize  = 16 // RFC 9018 §4
	minOption   = 16 // with a server cookie; RFC 7873 §4: 8 octets of the client and 8 to 32 of the server
	maxOption   = 40
	version     = 1
	freshFor    = 30 * 60 // seconds; RFC 9018 §4.3
	validFor    = 60 * 60 // seconds; RFC 9018 §4.3
	validBefore = 5 * 60  // seconds that the clock of the maker may be ahead; RFC 9018 §4.3
)

// Cookies makes and checks the interoperable server cookies of RFC 9018. It is
// immutable: new secrets make a new one. Many may ask it at once.
type Cookies struct {
	keys []sipKey // the first makes cookies, all check them
}

// NewCookies makes cookies with secret, and takes those made with previous
// secrets too (RFC 9018 §5: while the secret of several servers is changed).
func NewCookies(secret [16]byte, previous ...[16]byte) *Cookies {
	c := &Cookies{keys: []sipKey{newSipKey(secret)}}
	for _, p := range previous {
		c.keys = append(c.keys, newSipKey(p))
	}
	return c
}

// Check says what the data of a COOKIE option is worth that came from client.
// unix is the time in seconds since 1970, modulo 2^32. An IPv4-mapped client
// counts as IPv4, a zone is ignored. It does not allocate.
func (c *Cookies) Check(option []byte, client netip.Addr, unix uint32) State {
	switch n := len(option); {
	case n == clientSize:
		return ClientOnly
	case n < minOption || n > maxOption:
		return Malformed
	case n != CookieSize || option[clientSize] != version:
		return Bad
	}
	age := int32(unix - binary.BigEndian.Uint32(option[12:])) // serial numbers: RFC 9018 §4.3
	if age > validFor || age < -validBefore {
		return Bad
	}
	for i, key := range c.keys {
		var hash [8]byte
		serverHash(&hash, key, option[:clientSize+8], client)
		if subtle.ConstantTimeCompare(hash[:], option[clientSize+8:]) == 1 {
			if i > 0 || age > freshFor {
				return Stale
			}
			return Good
		}
	}
	return Bad
}

// Make writes the data of the COOKIE option of a response into dst: the client
// cookie, the first 8 octets of the option that came, and a server cookie made
// now. It panics where there are fewer. It does not allocate.
func (c *Cookies) Make(dst *[CookieSize]byte, clientCookie []byte, client netip.Addr, unix uint32) {
	copy(dst[:], clientCookie[:clientSize])
	binary.BigEndian.PutUint32(dst[8:], version<<24) // and three octets reserved: RFC 9018 §4.2
	binary.BigEndian.PutUint32(dst[12:], unix)
	serverHash((*[8]byte)(dst[16:]), c.keys[0], dst[:16], client)
}

// serverHash is the hash of a server cookie over the 16 octets in front of it,
// as they came, and the client's address (RFC 9018 §4.4).
func serverHash(dst *[8]byte, key sipKey, head []byte, client netip.Addr) {
	var msg [32]byte
	n := copy(msg[:], head)
	if client = client.Unmap(); client.Is4() {
		a := client.As4()
		n += copy(msg[n:], a[:])
	} else {
		a := client.As16()
		n += copy(msg[n:], a[:])
	}
	binary.LittleEndian.PutUint64(dst[:], key.sum24(msg[:n]))
}
