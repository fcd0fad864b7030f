package act

import "github.com/waymark-dns/waymark/internal/policy/match"

// Made is what a configuration has made that can be looked at, and handled, from
// outside while it is in use.
type Made struct {
	Caches []*LazyCache // those with a tag
	Relays []*Relay     // those with upstreams that have tags
	Sets   []*Set

	// Before is what the configuration before this one has made, nil where there was
	// none: what has the same name goes on counting.
	Before *Made
}

// counts is those of the cache with that tag.
func (m *Made) counts(tag string) *CacheCounts {
	if m.Before != nil && tag != "" {
		for _, c := range m.Before.Caches {
			if c.Tag == tag {
				return c.count
			}
		}
	}
	return &CacheCounts{}
}

// made is where the objects of e are noted.
func (e *Env) made() *Made {
	if e.Made == nil {
		e.Made = &Made{}
	}
	return e.Made
}

// Reread says when a set reads its files anew, besides when it is told to.
type Reread struct {
	Changed bool // when one of them has changed
	Seconds int  // so often; 0 is never
}

// Set is a set with a tag.
type Set struct {
	Tag, Type string
	Reread    Reread
	set       reloader
}

// reloader is a set of match.
type reloader interface {
	Files() []string
	Reload() error
	Len() int
}

// Files is the files that it reads. The caller does not change it.
func (s *Set) Files() []string { return s.set.Files() }

// Reload reads the files anew; where one cannot be read the set stays as it was.
// Two calls at once would need twice the memory.
func (s *Set) Reload() error { return s.set.Reload() }

// Len is how many rules of its own the set has now.
func (s *Set) Len() int { return s.set.Len() }

// reloaded notes a set.
func reloaded[T interface {
	*match.DomainSet | *match.IPSet
	reloader
}](e *Env, s Set, set T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	s.set = set
	m := e.made()
	m.Sets = append(m.Sets, &s)
	return set, nil
}
