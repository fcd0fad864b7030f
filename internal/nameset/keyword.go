package nameset

import (
	"slices"

	"github.com/waymark-dns/waymark/internal/wire"
)

// none is the number of no keyword and no regular expression.
const none = ^uint32(0)

// maxKeywords limits the octets of all keywords of a set together, so that the
// automaton's places fit below its mark: there are fewer than 128 classes.
const maxKeywords = 4 << 20

// hit marks a step into a state where a keyword ends.
const hit = 1 << 31

// automaton finds keywords in one walk over the text of a name (Aho and Corasick,
// 1975), with the failure links worked into the table. It is flat: state i is the
// row of steps at i*width, a step for each class of octets.
type automaton struct {
	class [256]uint8 // of octets of text; 0 is the class of those in no keyword; upper case counts as lower
	width uint32     // number of classes
	next  []uint32   // where the row of the next state starts, with the mark hit
	first []uint32   // per state: the lowest number of the keywords that end here, or none
}

// inText tells whether p could stand in the text of a name.
func inText(p []byte) bool {
	return !slices.ContainsFunc(p, func(c byte) bool { return c < ' ' || c > '~' })
}

// newAutomaton builds the automaton of words, which are in lower case and inText.
// Their numbers are their places in the slice.
func newAutomaton(words []string) *automaton {
	a := &automaton{width: 1}
	for _, w := range words {
		for i := range len(w) {
			if a.class[w[i]] == 0 {
				a.class[w[i]] = uint8(a.width)
				a.width++
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		a.class[c] = a.class[c|0x20]
	}
	a.state()
	for id, w := range words {
		a.add(w, uint32(id))
	}
	a.link()
	a.next, a.first = slices.Clone(a.next), slices.Clone(a.first) // without the room to grow
	return a
}

// state adds a state without steps and returns its number.
func (a *automaton) state() uint32 {
	a.next = append(a.next, make([]uint32, a.width)...)
	a.first = append(a.first, none)
	return uint32(len(a.first) - 1)
}

// add puts the path of a word into the tree that the automaton starts from.
func (a *automaton) add(word string, id uint32) {
	s := uint32(0)
	for i := range len(word) {
		at := s*a.width + uint32(a.class[word[i]])
		if a.next[at] == 0 {
			child := a.state()
			a.next[at] = child
		}
		s = a.next[at]
	}
	a.first[s] = min(a.first[s], id)
}

// link makes the tree an automaton: it walks the states by depth, gives each the
// steps of the longest other path that ends the same, and then turns numbers of
// states into places of rows.
func (a *automaton) link() {
	fail := make([]uint32, len(a.first))
	queue := make([]uint32, 1, len(a.first))
	for head := 0; head < len(queue); head++ {
		s := queue[head]
		row := a.next[s*a.width : (s+1)*a.width]
		back := a.next[fail[s]*a.width : (fail[s]+1)*a.width]
		for c, child := range row {
			if child == 0 {
				row[c] = back[c]
				continue
			}
			if s != 0 {
				fail[child] = back[c]
			}
			a.first[child] = min(a.first[child], a.first[fail[child]])
			queue = append(queue, child)
		}
	}
	for i, s := range a.next {
		a.next[i] = s * a.width
		if a.first[s] != none {
			a.next[i] |= hit
		}
	}
}

// find is the lowest number of the keywords that the text of name holds, or none.
func (a *automaton) find(name wire.Name) uint32 {
	best, row := a.first[0], uint32(0)
	for i := 0; i < len(name) && name[i] != 0 && best != 0; {
		end := i + 1 + int(name[i])
		if i > 0 {
			row, best = a.step(row, best, '.')
		}
		for _, c := range name[i+1 : end] {
			if odd[c] {
				row, best = a.escaped(row, best, c)
			} else {
				row, best = a.step(row, best, c)
			}
		}
		i = end
	}
	return best
}

// step takes one octet of text.
func (a *automaton) step(row, best uint32, c byte) (nextRow, nextBest uint32) {
	row = a.next[row+uint32(a.class[c])]
	if row&hit != 0 {
		row &^= hit
		best = min(best, a.first[row/a.width])
	}
	return row, best
}

func (a *automaton) escaped(row, best uint32, c byte) (nextRow, nextBest uint32) {
	var room [4]byte
	for _, c := range appendEscape(room[:0], c) {
		row, best = a.step(row, best, c)
	}
	return row, best
}

func (a *automaton) bytes() int {
	if a == nil {
		return 0
	}
	return len(a.class) + 4*(cap(a.next)+cap(a.first))
}
