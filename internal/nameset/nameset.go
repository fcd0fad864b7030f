// Package nameset holds immutable sets and maps of domain names, given as
// expressions: a full name, a suffix, a keyword or a regular expression. It
// means by them what mosdns v5 means. It does not know what membership means,
// nor what the values of a map stand for. The configuration builds sets, the
// policy asks them on every query.
//
// Full names and suffixes lie in one hash table over one run of octets, which
// the garbage collector does not look into. Keywords are one automaton. Regular
// expressions are filed in the same hash table under the labels that every name
// they match must end in, so that most names run none.
package nameset

import (
	"github.com/waymark-dns/waymark/internal/wire"
)

// Set is an immutable set of names, or map of names to numbers. Many may ask it
// at once. A nil Set holds nothing.
type Set struct {
	table    table
	keywords *automaton // nil where there are none
	values   []uint32   // of the keywords
	patterns patterns
	stats    Stats
}

// Stats counts what a set is made of. Expressions that were added twice count
// once.
type Stats struct {
	Full, Domain, Keyword, Regexp int
	Always                        int // regexps that run on every name: see Set.Unfiltered
	Dead                          int // expressions that no name can match; in no other count
}

// Match tells whether name is in the set. l must be the labels of name. It does
// not allocate.
func (s *Set) Match(name wire.Name, l *wire.Labels) bool {
	if s == nil {
		return false
	}
	_, ok := s.find(name, l, true)
	return ok
}

// Find is the value of the expression that matches name. A full name goes before
// suffixes, of which the longest wins, then come regular expressions, then
// keywords, of which the first declared wins. l must be the labels of name. It
// does not allocate.
func (s *Set) Find(name wire.Name, l *wire.Labels) (value uint32, ok bool) {
	if s == nil {
		return 0, false
	}
	return s.find(name, l, false)
}

// find is Find; with either, any of several matching regular expressions will do.
func (s *Set) find(name wire.Name, l *wire.Labels, either bool) (value uint32, ok bool) {
	if value, ok = s.table.find(name, l); ok {
		return value, true
	}
	if s.table.tails != (depths{}) {
		if value, ok = s.findPattern(name, l, either); ok {
			return value, true
		}
	}
	if s.keywords != nil {
		if id := s.keywords.first(name); id != none {
			return s.values[id], true
		}
	}
	return 0, false
}

// Len is the number of expressions, those that no name can match left out.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return s.stats.Full + s.stats.Domain + s.stats.Keyword + s.stats.Regexp
}

// Stats tells what the set is made of.
func (s *Set) Stats() Stats {
	if s == nil {
		return Stats{}
	}
	return s.stats
}

// Unfiltered lists the regular expressions that run on every name that nothing
// before them matched, because no literal text was found that a match must hold.
// The caller owns the slice.
func (s *Set) Unfiltered() []string {
	if s == nil {
		return nil
	}
	var list []string
	for i := range s.patterns.all {
		if p := &s.patterns.all[i]; p.always() {
			list = append(list, p.re.String())
		}
	}
	return list
}

// Bytes is the memory that the set holds, in octets. Of compiled regular
// expressions it is an estimate.
func (s *Set) Bytes() int {
	if s == nil {
		return 0
	}
	return s.table.bytes() + s.keywords.bytes() + 4*cap(s.values) + s.patterns.bytes()
}
