package act

import (
	"encoding/binary"
	"net/netip"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Address families of ECS, and the longest prefixes that are passed on (RFC 7871
// §11.1).
const (
	familyIPv4, maxIPv4 = 1, 24
	familyIPv6, maxIPv6 = 2, 56
)

// ecsOption is the longest option: code, length, family, two prefix lengths, and
// an address.
const ecsOption = 4 + 4 + 16

// clientSubnet is the subnet that the client gives as its own, cut to what is
// passed on. It is not valid where there is none, and where the option is
// malformed. A prefix of length 0 says that nothing is to be passed on.
func clientSubnet(r *serve.Request) netip.Prefix {
	data, ok := r.EDNS.Option(wire.OptECS)
	if !ok {
		return netip.Prefix{}
	}
	p, _, _ := readSubnet(data)
	limit := maxIPv6
	if p.Addr().Is4() {
		limit = maxIPv4
	}
	if p.Bits() > limit {
		p, _ = p.Addr().Prefix(limit)
	}
	return p
}

// readSubnet reads an ECS option (RFC 7871 §6): the prefix that it names, and the
// length of the scope. Octets or bits beyond the prefix are malformed.
func readSubnet(data []byte) (p netip.Prefix, scope int, ok bool) {
	if len(data) < 4 {
		return p, 0, false
	}
	bits, scope := int(data[2]), int(data[3])
	var b [16]byte
	size := len(b)
	family := binary.BigEndian.Uint16(data)
	if family == familyIPv4 {
		size = 4
	}
	if family != familyIPv4 && family != familyIPv6 || bits > 8*size || scope > 8*size || len(data) != 4+(bits+7)/8 {
		return p, 0, false
	}
	copy(b[:size], data[4:])
	addr, _ := netip.AddrFromSlice(b[:size])
	p = netip.PrefixFrom(addr, bits)
	if p.Masked() != p {
		return netip.Prefix{}, 0, false
	}
	return p, scope, true
}

// appendSubnet writes the option that passes p on.
func appendSubnet(dst []byte, p netip.Prefix) []byte {
	family := byte(familyIPv6)
	if p.Addr().Is4() {
		family = familyIPv4
	}
	n := (p.Bits() + 7) / 8
	dst = append(dst, 0, wire.OptECS, 0, byte(4+n), 0, family, byte(p.Bits()), 0)
	return append(dst, p.Addr().AsSlice()[:n]...)
}
