// Package addrset holds immutable sets and maps of IP prefixes, for access
// rules and views. It reads one prefix of presentation format; it reads no
// files, and it does not know what membership means. The configuration builds
// sets, the policy asks them.
package addrset

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/gaissmai/bart"
)

// Set is an immutable set of addresses, given as prefixes. Many may ask it at
// once. A nil Set contains nothing.
type Set struct {
	table bart.Lite
}

// New makes a set of all addresses of the prefixes, which may overlap. It keeps
// no reference to the slice. An invalid prefix panics: Parse returns none.
func New(prefixes []netip.Prefix) *Set {
	s := &Set{}
	for _, p := range prefixes {
		s.table.Insert(canonical(p))
	}
	return s
}

// Contains says whether addr is in the set. An IPv4-mapped IPv6 address counts
// as the IPv4 address (so that ::/0 holds no IPv4), a zone is ignored, and an
// invalid address is in no set. It does not allocate.
func (s *Set) Contains(addr netip.Addr) bool {
	return s != nil && s.table.Contains(plain(addr))
}

// Len is the number of different prefixes.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return s.table.Size()
}

// Entry is what a Map holds for one prefix.
type Entry[V any] struct {
	Prefix netip.Prefix
	Value  V
}

// Map is an immutable map of prefixes, asked by address. Many may ask it at
// once. A nil Map finds nothing.
type Map[V any] struct {
	table bart.Table[V]
}

// NewMap makes a map of the entries. Of two entries with the same prefix the
// later wins. An invalid prefix panics.
func NewMap[V any](entries []Entry[V]) *Map[V] {
	m := &Map[V]{}
	for _, e := range entries {
		m.table.Insert(canonical(e.Prefix), e.Value)
	}
	return m
}

// Find is the value of the longest prefix that holds addr. Addresses are read
// as in Set.Contains. It does not allocate.
func (m *Map[V]) Find(addr netip.Addr) (value V, ok bool) {
	if m == nil {
		return value, false
	}
	return m.table.Lookup(plain(addr))
}

// Parse reads a prefix, or a lone address as the prefix of its full length. The
// result has no bits below the prefix: text with such bits is more often a slip
// than a network, and the error says how to write either meaning. Prefixes of
// IPv4-mapped addresses become IPv4 prefixes; zones are errors.
func Parse(text string) (netip.Prefix, error) {
	p, err := parse(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("reading prefix %q: %w", text, err)
	}
	return p, nil
}

func parse(text string) (netip.Prefix, error) {
	if strings.Contains(text, "%") {
		return netip.Prefix{}, errors.New("a zone has no meaning here: leave out the % and what follows")
	}
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, errors.New("no IP address: write an address such as 192.0.2.1 or a prefix such as 2001:db8::/32")
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, errors.New("no IP prefix: write an address, a slash and a length, such as 192.0.2.0/24 or 2001:db8::/32")
	}
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("the address has bits below the prefix: write %s for the network, or %s for the one address",
			canonical(p), p.Addr().Unmap())
	}
	return canonical(p), nil
}

// canonical is the prefix without host bits, as an IPv4 prefix where it lies
// within ::ffff:0:0/96 (RFC 4291 §2.5.5.2).
func canonical(p netip.Prefix) netip.Prefix {
	if !p.IsValid() {
		panic("addrset: invalid prefix")
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// plain is the address as the tables know it.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// Private lists the prefixes from which no query comes over the open Internet.
// The caller owns the slice.
func Private() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"),    // loopback: RFC 1122 §3.2.1.3
		netip.MustParsePrefix("::1/128"),        // loopback: RFC 4291 §2.5.3
		netip.MustParsePrefix("169.254.0.0/16"), // link-local: RFC 3927 §2.1
		netip.MustParsePrefix("fe80::/10"),      // link-local: RFC 4291 §2.5.6
		netip.MustParsePrefix("10.0.0.0/8"),     // private: RFC 1918 §3
		netip.MustParsePrefix("172.16.0.0/12"),  // private: RFC 1918 §3
		netip.MustParsePrefix("192.168.0.0/16"), // private: RFC 1918 §3
		netip.MustParsePrefix("100.64.0.0/10"),  // behind carrier-grade NAT: RFC 6598 §7
		netip.MustParsePrefix("fc00::/7"),       // unique local: RFC 4193 §3.1
	}
}
