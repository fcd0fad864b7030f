package nameset

import (
	"slices"

	"github.com/waymark-dns/waymark/internal/wire"
)

// none is the number of no word, no state and no regular expression.
const none = ^uint32(0)

// maxKeywords limits the octets of all keywords of a set together, so that the
// automaton's places fit below its mark: there are fewer than 128 classes.
const maxKeywords = 4 << 20

// hit marks a step into a state where a word ends.
const hit = 1 << 31

// automaton finds words in one walk over the text of a name (Aho and Corasick,
// 1975), with the failure links worked into the table. It is flat: state i is the
// row of steps at i*width, a step for each class of octets.
type automaton struct {
	class [256]uint8 // of octets of text; 0 is the class of those in no word; upper case counts as lower
	width uint32     // number of classes
	next  []uint32   // where the row of the next state starts, with the mark hit
	word  []uint32   // per state: the number of the word that is the path here, or none
	back  []uint32   // per state: the longest other state where a word ends and this path too, or none
}

// inText tells whether p could stand in the text of a name.
func inText(p []byte) bool {
	return !slices.ContainsFunc(p, func(c byte) bool { return c < ' ' || c > '~' })
}

// newAutomaton builds the automaton of words, which are in lower case, inText and
// all different. Their numbers are their places in the slice.
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
	a.next, a.word = slices.Clone(a.next), slices.Clone(a.word) // without the room to grow
	return a
}

// state adds a state without steps and returns its number.
func (a *automaton) state() uint32 {
	a.next = append(a.next, make([]uint32, a.width)...)
	a.word = append(a.word, none)
	return uint32(len(a.word) - 1)
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
	a.word[s] = id
}

// link makes the tree an automaton: it walks the states by depth, gives each the
// steps of the longest other path that ends the same, and then turns numbers of
// states into places of rows.
func (a *automaton) link() {
	a.back = make([]uint32, len(a.word))
	a.back[0] = none
	fail := make([]uint32, len(a.word)) // per state: the longest other path that ends the same
	queue := make([]uint32, 1, len(a.word))
	for head := 0; head < len(queue); head++ {
		queue = a.linkSteps(queue[head], fail, queue)
	}
	for i, s := range a.next {
		a.next[i] = s * a.width
		if a.word[s] != none || a.back[s] != none {
			a.next[i] |= hit
		}
	}
}

// linkSteps fills the row of state s, and appends the states below it to queue.
func (a *automaton) linkSteps(s uint32, fail, queue []uint32) []uint32 {
	row := a.next[s*a.width : (s+1)*a.width]
	other := a.next[fail[s]*a.width : (fail[s]+1)*a.width]
	for c, child := range row {
		if child == 0 {
			row[c] = other[c]
			continue
		}
		if s != 0 {
			fail[child] = other[c]
		}
		a.back[child] = fail[child]
		if a.word[fail[child]] == none {
			a.back[child] = a.back[fail[child]]
		}
		queue = append(queue, child)
	}
	return queue
}

// first is the lowest number of the words that the text of name holds, or none.
func (a *automaton) first(name wire.Name) uint32 {
	best := none
	a.walk(name, func(word uint32) { best = min(best, word) })
	return best
}

// walk calls found with the number of each word in the text of name, as often as
// it is there.
func (a *automaton) walk(name wire.Name, found func(word uint32)) {
	if a.word[0] != none {
		found(a.word[0])
	}
	row := uint32(0)
	for i := 0; i < len(name) && name[i] != 0; {
		end := i + 1 + int(name[i])
		if i > 0 {
			row = a.step(row, '.', found)
		}
		for _, c := range name[i+1 : end] {
			if odd[c] {
				row = a.escaped(row, c, found)
				continue
			}
			if row = a.next[row+uint32(a.class[c])]; row&hit != 0 {
				row = a.report(row, found)
			}
		}
		i = end
	}
}

// step takes one octet of text from the state whose row is given to the next.
func (a *automaton) step(row uint32, c byte, found func(uint32)) uint32 {
	if row = a.next[row+uint32(a.class[c])]; row&hit != 0 {
		row = a.report(row, found)
	}
	return row
}

// report calls found with the words that end in the state whose row is given, and
// returns the row without its mark.
func (a *automaton) report(row uint32, found func(uint32)) uint32 {
	row &^= hit
	for s := row / a.width; s != none && s != 0; s = a.back[s] {
		if a.word[s] != none {
			found(a.word[s])
		}
	}
	return row
}

func (a *automaton) escaped(row uint32, c byte, found func(uint32)) uint32 {
	var room [4]byte
	for _, c := range appendEscape(room[:0], c) {
		row = a.step(row, c, found)
	}
	return row
}

func (a *automaton) bytes() int {
	if a == nil {
		return 0
	}
	return len(a.class) + 4*(cap(a.next)+cap(a.word)+cap(a.back))
}
