package nameset

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"sync"

	"github.com/waymark-dns/waymark/internal/wire"
)

// pattern is a regular expression of a set.
type pattern struct {
	re    *regexp.Regexp
	value uint32
	inner string // text that each match holds; "" where none is known
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
	p := pattern{re: re, value: value, inner: required(tree), tails: tailsOf(tree)}
	if prog, err := syntax.Compile(tree); err == nil {
		const instruction = 80 // the program's own 40 octets, and as many for the form that runs in one pass
		p.size = instruction * len(prog.Inst)
	}
	return p, nil
}

// always tells whether p runs on every name. A dot or two does not spare much.
func (p *pattern) always() bool {
	return len(p.tails) == 1 && p.tails[0] == tail{} && len(bytes.Trim([]byte(p.inner), ".")) == 0
}

// candidate is a pattern filed under the labels that its tail ends in.
type candidate struct {
	pattern uint32
	tail
}

// patterns are the regular expressions of a set in the order of declaration.
type patterns struct {
	all     []pattern
	lists   [][]candidate // by labels, each in the order of declaration
	scratch sync.Pool     // of *text: regexp keeps hold of what it reads, so that a stack will not do
}

type text [maxText]byte

// findPattern is the value of the first regular expression that matches name, or
// with either of any.
func (s *Set) findPattern(name wire.Name, l *wire.Labels, either bool) (value uint32, ok bool) {
	best := none
	var room *text
	var whole []byte
	t := &s.table
	for d := min(l.N, t.tails.deepest()); d >= 0; d-- {
		if !t.tails.has(d) {
			continue
		}
		i := l.N - d
		list, ok := t.get(l.Hash[i], name[l.Off[i]:len(name)-1], markTail)
		if !ok {
			continue
		}
		if room == nil {
			if room, _ = s.patterns.scratch.Get().(*text); room == nil {
				room = new(text)
			}
			whole = appendText(room[:0], name)
		}
		if best = min(best, s.patterns.first(list, whole, best)); best != none && either {
			break
		}
	}
	if room != nil {
		s.patterns.scratch.Put(room)
	}
	if best == none {
		return 0, false
	}
	return s.patterns.all[best].value, true
}

// first is the first of the list that matches and stands before the limit, or none.
func (ps *patterns) first(list uint32, whole []byte, limit uint32) uint32 {
	for i := range ps.lists[list] {
		c := &ps.lists[list][i]
		if c.pattern >= limit {
			break
		}
		if c.matches(whole, &ps.all[c.pattern]) {
			return c.pattern
		}
	}
	return none
}

func (c *candidate) matches(whole []byte, p *pattern) bool {
	head := len(whole) - len(c.text)
	switch {
	case head < 0 || c.whole && head > 0 || string(whole[head:]) != c.text:
		return false
	case c.exact:
		return true
	case p.inner != "" && !contains(whole, p.inner):
		return false
	}
	return p.re.Match(whole)
}

// contains is bytes.Contains for a string.
func contains(text []byte, part string) bool {
	first := part[0]
	for {
		i := bytes.IndexByte(text, first)
		if i < 0 || len(text)-i < len(part) {
			return false
		}
		if string(text[i:i+len(part)]) == part {
			return true
		}
		text = text[i+1:]
	}
}

func (ps *patterns) bytes() int {
	const each, candidateSize = 96, 32
	sum := each * cap(ps.all)
	for _, list := range ps.lists {
		sum += 24 + candidateSize*cap(list)
	}
	for i := range ps.all {
		p := &ps.all[i]
		sum += p.size + 2*len(p.re.String()) + 24*len(p.tails)
	}
	return sum
}
