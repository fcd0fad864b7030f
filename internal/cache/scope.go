package cache

import (
	"net/netip"
	"runtime"
	"slices"
	"time"
)

// Responses for one subnet (RFC 7871) are found in two steps: a marker says which
// prefix lengths there are for a question, then each is tried, the longest first.

// lengths is how many prefix lengths a marker has room for, in each family.
const lengths = 8

// ofFamily is the prefix lengths of a family, longest first; 0 ends them.
func (m *scope) ofFamily(v4 bool) []uint8 {
	if v4 {
		return m.addr[:lengths]
	}
	return m.addr[lengths:]
}

// scoped finds the entry for the longest prefix of k's subnet. The caller is
// inside an epoch.
func (c *Cache) scoped(k *Key, p *probe, now time.Duration) (e *entry, freq int) {
	m := p.marker()
	marker, _ := c.one(&m, now)
	if marker == nil {
		return nil, 0
	}
	addr := k.Scope.Addr()
	for _, bits := range marker.scope().ofFamily(addr.Is4()) {
		if bits == 0 {
			break
		}
		if int(bits) > k.Scope.Bits() {
			continue
		}
		net, err := addr.Prefix(int(bits))
		if err != nil {
			break // a length of the other family: no marker says so
		}
		at := p.at(net)
		if e, freq = c.one(&at, now); e != nil {
			return e, freq
		}
	}
	return nil, 0
}

// mark enters the prefix length of k's scope into the marker of its question.
// Where there are too many lengths the shortest goes; what it led to is a miss.
func (c *Cache) mark(k *Key, now time.Duration) {
	defer runtime.KeepAlive(c)
	p := k.probe().marker()
	s := c.shard(p.hash)
	s.mu.Lock()
	_, _, old := s.find(&p)
	n := newEntry{p: &p, stored: now}
	if old != nil {
		n.lengths = *old.scope()
	}
	s.mu.Unlock()
	if n.lengths.add(k.Scope) {
		c.insert(&n, now)
	}
}

// add enters the length of a prefix. It is false where it was there.
func (m *scope) add(net netip.Prefix) bool {
	list, bits := m.ofFamily(net.Addr().Is4()), uint8(net.Bits())
	if slices.Contains(list, bits) {
		return false
	}
	list[lengths-1] = bits
	slices.SortFunc(list, func(a, b uint8) int { return int(b) - int(a) })
	return true
}
