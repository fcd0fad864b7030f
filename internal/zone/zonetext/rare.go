package zonetext

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/netip"
	"strconv"
)

// Types of gateways (RFC 4025 §2.3) and relays (RFC 8777 §4.2.3).
const (
	noGateway = iota
	gateway4
	gateway6
	gatewayName
)

// gateway writes type, algorithm and gateway of IPSECKEY (RFC 4025 §3).
func (t *text) gateway() bool {
	if len(t.rest) == 0 {
		return false
	}
	kind := t.rest[0]
	return t.fields("11") && t.host(kind) // type, algorithm, gateway
}

// relay writes discovery flag, type and relay of AMTRELAY (RFC 8777 §4.3).
func (t *text) relay() bool {
	b, ok := t.take(1)
	if !ok {
		return false
	}
	kind := b[0] & 0x7f
	t.blank()
	t.dst = append(t.dst, '0'+b[0]>>7, ' ')
	t.dst = strconv.AppendUint(t.dst, uint64(kind), 10)
	return t.host(kind)
}

// host writes a gateway or relay.
func (t *text) host(kind byte) bool {
	switch kind {
	case noGateway:
		t.blank()
		t.dst = append(t.dst, '.')
		return true
	case gateway4:
		return t.address('a')
	case gateway6:
		return !mapped(t.rest) && t.address('A')
	case gatewayName:
		return t.name()
	}
	return false
}

// mapped tells whether b starts with an IPv4 address in an IPv6 one, which as
// text many take for the former.
func mapped(b []byte) bool {
	if len(b) < 16 {
		return false
	}
	a, _ := netip.AddrFromSlice(b[:16])
	return a.Is4In6()
}

// hostIdentity writes RDATA of HIP (RFC 8005 §6).
func (t *text) hostIdentity() bool {
	head, ok := t.take(4)
	if !ok || head[0] == 0 {
		return false
	}
	identity, ok := t.take(int(head[0]))
	if !ok {
		return false
	}
	key, ok := t.take(int(binary.BigEndian.Uint16(head[2:])))
	if !ok || len(key) == 0 {
		return false
	}
	t.dst = strconv.AppendUint(t.dst, uint64(head[1]), 10)
	t.blank()
	t.dst = appendHex(t.dst, identity)
	t.blank()
	t.dst = base64.StdEncoding.AppendEncode(t.dst, key)
	for len(t.rest) > 0 {
		if !t.name() {
			return false
		}
	}
	return true
}

// prefixes writes RDATA of APL (RFC 3123 §5).
func (t *text) prefixes() bool {
	for len(t.rest) > 0 {
		if !t.prefix() {
			return false
		}
	}
	return true
}

// prefix writes one prefix: its octets up to the last that is not zero, as the RFC
// asks, for no others come back as they are.
func (t *text) prefix() bool {
	head, ok := t.take(4)
	if !ok {
		return false
	}
	family, bits := binary.BigEndian.Uint16(head), int(head[2])
	octets, ok := t.take(int(head[3] & 0x7f))
	size := familySize(family)
	if !ok || size == 0 || len(octets) > size || bits > 8*size || !fits(octets, bits) {
		return false
	}
	whole := make([]byte, size)
	copy(whole, octets)
	t.blank()
	if head[3]&0x80 != 0 {
		t.dst = append(t.dst, '!')
	}
	t.dst = append(strconv.AppendUint(t.dst, uint64(family), 10), ':')
	t.dst = append(appendAddress(t.dst, whole), '/')
	t.dst = strconv.AppendInt(t.dst, int64(bits), 10)
	return !mapped(whole)
}

// familySize is the octets of an address of a family, 0 for those unknown.
func familySize(family uint16) int {
	switch family {
	case 1:
		return 4
	case 2:
		return 16
	}
	return 0
}

// fits tells whether octets are those of a prefix of so many bits, without zeros
// at the end.
func fits(octets []byte, bits int) bool {
	n := len(octets)
	if n == 0 {
		return true
	}
	free := 8*n - bits // bits of the last octet behind the prefix
	return free < 8 && octets[n-1] != 0 && (free <= 0 || octets[n-1]&(1<<free-1) == 0)
}

// Constants of LOC (RFC 1876 §2).
const (
	equator   = 1 << 31        // also the prime meridian
	degree    = 60 * 60 * 1000 // thousandths of a second of arc
	altitude0 = 100_000 * 100  // centimetres that altitudes start below the reference
	mostSouth = 90 * degree    // from the equator, either way
	mostWest  = 180 * degree   // from the prime meridian, either way
	locSize   = 16             // octets of RDATA
)

// location writes RDATA of LOC (RFC 1876 §3).
func (t *text) location() bool {
	b, ok := t.take(locSize)
	if !ok || b[0] != 0 {
		return false
	}
	latitude, longitude := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	if !t.angle(latitude, mostSouth, "NS") || !t.angle(longitude, mostWest, "EW") {
		return false
	}
	t.blank()
	t.metres(int64(binary.BigEndian.Uint32(b[12:])) - altitude0)
	for _, c := range b[1:4] {
		mantissa, exponent := c>>4, c&15
		if mantissa > 9 || exponent > 9 || mantissa == 0 && exponent > 0 {
			return false
		}
		t.blank()
		t.metres(int64(mantissa) * int64(math.Pow10(int(exponent))))
	}
	return true
}

// angle writes a latitude or longitude, directions being the two it can have.
func (t *text) angle(v uint32, most int64, directions string) bool {
	off, direction := int64(v)-equator, directions[0]
	if off < 0 {
		off, direction = -off, directions[1]
	}
	if off > most {
		return false
	}
	t.blank()
	t.dst = append(strconv.AppendInt(t.dst, off/degree, 10), ' ')
	t.dst = append(strconv.AppendInt(t.dst, off/(degree/60)%60, 10), ' ')
	t.dst = strconv.AppendInt(t.dst, off/1000%60, 10)
	t.dst = append(t.dst, '.', byte('0'+off/100%10), byte('0'+off/10%10), byte('0'+off%10), ' ', direction)
	return true
}

// metres writes a length in centimetres.
func (t *text) metres(cm int64) {
	if cm < 0 {
		t.dst = append(t.dst, '-')
		cm = -cm
	}
	t.dst = strconv.AppendInt(t.dst, cm/100, 10)
	if rest := cm % 100; rest > 0 {
		t.dst = append(t.dst, '.', byte('0'+rest/10), byte('0'+rest%10))
	}
	t.dst = append(t.dst, 'm')
}
