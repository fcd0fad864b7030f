package match

import (
	"net/netip"
	"sync/atomic"

	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/nameset"
	"github.com/waymark-dns/waymark/internal/wire"
)

// DomainSet is a set of names that can be exchanged while it is in use: its own
// expressions first, then other sets.
type DomainSet struct {
	own    atomic.Pointer[nameset.Set]
	others []*DomainSet
}

// NewDomainSet makes a set of its own expressions and of others.
func NewDomainSet(own *nameset.Set, others ...*DomainSet) *DomainSet {
	d := &DomainSet{others: others}
	d.own.Store(own)
	return d
}

// Replace puts other expressions in place of its own.
func (d *DomainSet) Replace(own *nameset.Set) { d.own.Store(own) }

// Own is its own expressions.
func (d *DomainSet) Own() *nameset.Set { return d.own.Load() }

// Match tells whether the name is in the set.
func (d *DomainSet) Match(name wire.Name, l *wire.Labels) bool {
	if own := d.own.Load(); own != nil && own.Match(name, l) {
		return true
	}
	for _, o := range d.others {
		if o.Match(name, l) {
			return true
		}
	}
	return false
}

// IPSet is a set of addresses that can be exchanged while it is in use.
type IPSet struct {
	own    atomic.Pointer[addrset.Set]
	others []*IPSet
}

// NewIPSet makes a set of its own prefixes and of others.
func NewIPSet(own *addrset.Set, others ...*IPSet) *IPSet {
	s := &IPSet{others: others}
	s.own.Store(own)
	return s
}

// Replace puts other prefixes in place of its own.
func (s *IPSet) Replace(own *addrset.Set) { s.own.Store(own) }

// Contains tells whether the address is in the set.
func (s *IPSet) Contains(a netip.Addr) bool {
	if s.own.Load().Contains(a) {
		return true
	}
	for _, o := range s.others {
		if o.Contains(a) {
			return true
		}
	}
	return false
}
