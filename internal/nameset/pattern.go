package nameset

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/waymark-dns/waymark/internal/wire"
)

// pattern is a regular expression of a set.
type pattern struct {
	re    *regexp.Regexp
	value uint32
	inner string // text that each match holds, besides its tail; "" where none is known
	tails []tail
	size  int // estimate of memory, in octets
}

// newPattern compiles an expression and finds what its matches must hold.
func newPattern(expr string, value uint32) (pattern, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return pattern{}, err
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return pattern{}, err
	}
	tree = tree.Simplify()
	p := pattern{re: re, value: value, tails: tailsOf(tree)}
	for _, text := range required(tree) {
		if len(text) > len(p.inner) && telling(text, p.tails) {
			p.inner = text
		}
	}
	if prog, err := syntax.Compile(tree); err == nil {
		const instruction = 80 // the program's own 40 octets, and as many for the form that runs in one pass
		p.size = instruction * len(prog.Inst)
	}
	return p, nil
}

// telling tells whether to look for text spares much: it is more than a letter
// and dots, and not in the tail anyway.
func telling(text string, tails []tail) bool {
	if len(strings.ReplaceAll(text, ".", "")) < 2 {
		return false
	}
	for i := range tails {
		if !strings.Contains(tails[i].text, text) {
			return true
		}
	}
	return false
}

// always tells whether p runs on every name.
func (p *pattern) always() bool { return p.tails[0] == tail{} && p.inner == "" }

// matches tells whether the text of a name matches. Mostly its end says no.
func (p *pattern) matches(text []byte) bool {
	fits := false
	for i := range p.tails {
		t := &p.tails[i]
		head := len(text) - len(t.text)
		if head < 0 || t.whole && head > 0 || string(text[head:]) != t.text {
			continue
		}
		if t.exact {
			return true
		}
		fits = true
	}
	return fits && p.re.Match(text)
}

// patterns are the regular expressions of a set in the order of declaration.
// Those with an inner text are found by it, but it is looked for only where
// labels say that the name's end fits one of them. The others are found by
// labels alone.
type patterns struct {
	all     []pattern
	lists   []list     // by labels
	inner   *automaton // nil where no expression has an inner text
	byInner [][]uint32 // expressions by the number of their inner text
	scratch sync.Pool  // of *text: regexp keeps hold of what it reads, so that a stack will not do
}

// list is what is filed under the labels that tails end in.
type list struct {
	ids   []uint32 // expressions without inner text
	inner bool     // there are others
}

// text is room for the text of a name.
type text [maxText]byte

// search is one look-up among the regular expressions.
type search struct {
	of     *patterns
	either bool   // any that matches will do
	best   uint32 // the first so far, or none
	room   *text
	text   []byte // of the name, made when the first expression wants it
}

// findPattern is the value of the first regular expression that matches name, or
// with either of any.
func (s *Set) findPattern(name wire.Name, l *wire.Labels, either bool) (value uint32, ok bool) {
	find := search{of: &s.patterns, either: either, best: none}
	inner := false
	t := &s.table
	for d := min(l.N, t.tails.deepest()); d >= 0; d-- {
		if !t.tails.has(d) {
			continue
		}
		i := l.N - d
		if at, ok := t.get(l.Hash[i], name[l.Off[i]:len(name)-1], markTail); ok {
			list := &s.patterns.lists[at]
			inner = inner || list.inner
			find.try(name, list.ids)
		}
	}
	if inner {
		s.patterns.inner.walk(name, func(word uint32) { find.try(name, s.patterns.byInner[word]) })
	}
	if find.room != nil {
		s.patterns.scratch.Put(find.room)
	}
	if find.best == none {
		return 0, false
	}
	return s.patterns.all[find.best].value, true
}

// try runs the expressions of ids, which ascend, that may be the first. name is not
// kept in s, whose text regexp may hold on to: so it may lie on the caller's stack.
func (s *search) try(name wire.Name, ids []uint32) {
	if s.either && s.best != none {
		return
	}
	for _, id := range ids {
		if id >= s.best {
			return
		}
		if s.room == nil {
			if s.room, _ = s.of.scratch.Get().(*text); s.room == nil {
				s.room = new(text)
			}
			s.text = appendText(s.room[:0], name)
		}
		if s.of.all[id].matches(s.text) {
			s.best = id
		}
	}
}

func (ps *patterns) bytes() int {
	const each = 96 // a pattern
	sum := each*cap(ps.all) + ps.inner.bytes()
	for _, list := range ps.lists {
		sum += 32 + 4*cap(list.ids)
	}
	for _, ids := range ps.byInner {
		sum += 24 + 4*cap(ids)
	}
	for i := range ps.all {
		p := &ps.all[i]
		sum += p.size + 2*len(p.re.String()) + 24*len(p.tails)
	}
	return sum
}
