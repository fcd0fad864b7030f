package match

import (
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/nameset"
	"github.com/waymark-dns/waymark/internal/wire"
)

// DomainSet is a set of names that can be exchanged while it is in use: its own
// expressions first, then other sets.
type DomainSet struct {
	own    atomic.Pointer[nameset.Set]
	others []*DomainSet

	exps, files []string // what Reload reads
}

// NewDomainSet makes a set of its own expressions and of others.
func NewDomainSet(own *nameset.Set, others ...*DomainSet) *DomainSet {
	d := &DomainSet{others: others}
	d.own.Store(own)
	return d
}

// LoadDomainSet makes a set of expressions, of those in files, one a line, and of
// others. Expressions without a kind are of the kind Domain. It keeps the slices.
func LoadDomainSet(exps, files []string, others ...*DomainSet) (*DomainSet, error) {
	d := &DomainSet{others: others, exps: exps, files: named(files)}
	return d, d.Reload()
}

// named is files without the empty name, which stands for none.
func named(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "" })
}

// Files is the files that Reload reads. The caller does not change it.
func (d *DomainSet) Files() []string { return d.files }

// Reload reads the files of a set that LoadDomainSet made anew. Where one cannot be
// read the set stays as it was.
func (d *DomainSet) Reload() error {
	b := nameset.NewBuilder(len(d.exps))
	if d.Own() != nil {
		b.Rest = rest
	}
	for _, text := range d.exps {
		x, err := nameset.ParseExpr(text, nameset.Domain)
		if err == nil {
			err = b.Add(x, 0)
		}
		if err != nil {
			return fmt.Errorf("reading expression %q: %w", text, err)
		}
	}
	for _, file := range d.files {
		if err := b.ReadFile(file, nameset.Domain); err != nil {
			return err
		}
	}
	d.Replace(b.Build())
	return nil
}

// rest lets queries pass while a set is made beside them: on a machine with one
// processor a goroutine that only computes keeps it for ten milliseconds at a time.
func rest() { time.Sleep(50 * time.Microsecond) }

// Replace puts other expressions in place of its own.
func (d *DomainSet) Replace(own *nameset.Set) { d.own.Store(own) }

// Own is its own expressions.
func (d *DomainSet) Own() *nameset.Set { return d.own.Load() }

// Len is how many expressions of its own it has.
func (d *DomainSet) Len() int { return d.own.Load().Len() }

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

	ips, files []string // what Reload reads
}

// NewIPSet makes a set of its own prefixes and of others.
func NewIPSet(own *addrset.Set, others ...*IPSet) *IPSet {
	s := &IPSet{others: others}
	s.own.Store(own)
	return s
}

// LoadIPSet makes a set of addresses and prefixes, of those in files, one a line,
// and of others. It keeps the slices.
func LoadIPSet(ips, files []string, others ...*IPSet) (*IPSet, error) {
	s := &IPSet{others: others, ips: ips, files: named(files)}
	return s, s.Reload()
}

// Files is the files that Reload reads. The caller does not change it.
func (s *IPSet) Files() []string { return s.files }

// Reload reads the files of a set that LoadIPSet made anew. Where one cannot be read
// the set stays as it was.
func (s *IPSet) Reload() error {
	var own PrefixList
	for _, text := range s.ips {
		if err := own.Add(text); err != nil {
			return err
		}
	}
	for _, file := range s.files {
		if err := own.ReadFile(file); err != nil {
			return err
		}
	}
	s.Replace(addrset.New(own))
	return nil
}

// Replace puts other prefixes in place of its own.
func (s *IPSet) Replace(own *addrset.Set) { s.own.Store(own) }

// Len is how many prefixes of its own it has.
func (s *IPSet) Len() int { return s.own.Load().Len() }

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
