package nameset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Errors of Builder.Add: limits of one set.
var (
	ErrNames    = errors.New("the names of one set take more than 4 GiB")
	ErrKeywords = errors.New("the keywords of one set take more than 4 MiB")
)

// Builder collects expressions and makes a Set of them. It is for one goroutine
// and one set. Names go straight into the memory that the set will keep, so that
// building needs hardly more than the set.
type Builder struct {
	// Rest, where it is set, is called now and then: a builder that works beside
	// queries lets them pass.
	Rest func()

	work    int // lines and records since the last rest
	chunks  [][]byte
	records int
	labels  []byte // of the name at hand
	dead    int

	keywords     []string
	keywordAt    map[string]int
	keywordBytes int
	values       []uint32 // of keywords

	patterns  []pattern
	patternAt map[string]int
	lists     []list
	listAt    map[string]int // by labels
}

// NewBuilder makes a builder for about hint expressions; 0 where that is unknown.
func NewBuilder(hint int) *Builder {
	const record = 24 // octets of an average one, of lists of names to block
	first := make([]byte, 1, min(1+max(hint, 0)*record, chunkSize))
	return &Builder{ // the first octet is never used, as no slot may be 0
		chunks:    [][]byte{first},
		labels:    make([]byte, 0, wire.MaxName),
		keywordAt: map[string]int{},
		patternAt: map[string]int{},
		listAt:    map[string]int{},
	}
}

// restEvery is the lines, or records, between two rests: some tenths of a
// millisecond of work.
const restEvery = 1024

// worked counts a line or a record.
func (b *Builder) worked() {
	if b.work++; b.work%restEvery == 0 && b.Rest != nil {
		b.Rest()
	}
}

// Add takes an expression with its value: 0 in plain sets. Of two that are the
// same the later value wins. An expression that no name can match is no error
// (mosdns knows no such error), but counted in Stats.Dead. Errors are a regular
// expression that does not compile, and ErrNames and ErrKeywords.
func (b *Builder) Add(e Expr, value uint32) error {
	return b.add(e.Kind, []byte(e.Pattern), value)
}

// add is Add. It does not keep the pattern.
func (b *Builder) add(kind Kind, pattern []byte, value uint32) error {
	switch kind {
	case Full:
		return b.addName(markFull, normal(kind, pattern), value)
	case Domain:
		return b.addName(markDomain, normal(kind, pattern), value)
	case Keyword:
		return b.addKeyword(bytes.ToLower(normal(kind, pattern)), value)
	case Regexp:
		return b.addRegexp(string(pattern), value)
	}
	return fmt.Errorf("adding expression %q: no such %v", pattern, kind)
}

func (b *Builder) addName(mark byte, pattern []byte, value uint32) error {
	labels, ok := appendLabels(b.labels[:0], pattern)
	if !ok {
		b.dead++
		return nil
	}
	return b.addRecord(mark, labels, value)
}

func (b *Builder) addRecord(mark byte, labels []byte, value uint32) error {
	chunk := &b.chunks[len(b.chunks)-1]
	if len(*chunk)+maxRecord > chunkSize {
		if len(b.chunks) == maxChunks {
			return ErrNames
		}
		b.chunks = append(b.chunks, make([]byte, 0, chunkSize))
		chunk = &b.chunks[len(b.chunks)-1]
	}
	if value != 0 {
		mark |= markValue
	}
	r := append(*chunk, byte(len(labels)), mark)
	r = append(r, labels...)
	if value != 0 {
		r = binary.LittleEndian.AppendUint32(r, value)
	}
	*chunk = r
	b.records++
	return nil
}

func (b *Builder) addKeyword(word []byte, value uint32) error {
	if !inText(word) {
		b.dead++
		return nil
	}
	if i, ok := b.keywordAt[string(word)]; ok {
		b.values[i] = value
		return nil
	}
	if b.keywordBytes += len(word); b.keywordBytes > maxKeywords {
		return ErrKeywords
	}
	b.keywordAt[string(word)] = len(b.keywords)
	b.keywords = append(b.keywords, string(word))
	b.values = append(b.values, value)
	return nil
}

func (b *Builder) addRegexp(expr string, value uint32) error {
	if i, ok := b.patternAt[expr]; ok {
		b.patterns[i].value = value
		return nil
	}
	p, err := newPattern(expr, value)
	if err != nil {
		return err
	}
	id := uint32(len(b.patterns))
	for _, t := range p.tails {
		if err := b.fileTail(t, id, p.inner != ""); err != nil {
			return err
		}
	}
	b.patternAt[expr] = int(id)
	b.patterns = append(b.patterns, p)
	return nil
}

// fileTail puts a regular expression on the list of what is filed under the labels
// that a tail of it ends in, or notes there that it is found by its inner text. A
// list has one record.
func (b *Builder) fileTail(t tail, id uint32, inner bool) error {
	labels, ok := appendLabels(b.labels[:0], []byte(t.labels()))
	if !ok { // no name ends so, and its text will tell: the root will do
		labels = nil
	}
	at, ok := b.listAt[string(labels)]
	if !ok {
		at = len(b.lists)
		if err := b.addRecord(markTail, labels, uint32(at)); err != nil {
			return err
		}
		b.listAt[string(labels)] = at
		b.lists = append(b.lists, list{})
	}
	switch l := &b.lists[at]; {
	case inner:
		l.inner = true
	case len(l.ids) == 0 || l.ids[len(l.ids)-1] != id: // several tails may end the same
		l.ids = append(l.ids, id)
	}
	return nil
}

// Build makes the set of what was added. It takes over the builder's memory: the
// builder is not to be used any more.
func (b *Builder) Build() *Set {
	s := &Set{}
	s.stats.Dead = b.dead
	if len(b.keywords) > 0 {
		s.keywords, s.values = newAutomaton(b.keywords), slices.Clone(b.values)
		s.stats.Keyword = len(b.keywords)
	}
	if len(b.patterns) > 0 {
		b.addPatterns(s)
	}
	if b.records > 0 {
		b.fill(s)
	}
	*b = Builder{}
	return s
}

// addPatterns gives the regular expressions to s.
func (b *Builder) addPatterns(s *Set) {
	ps := &s.patterns
	ps.all, ps.lists = b.patterns, b.lists
	s.stats.Regexp = len(ps.all)
	var words []string
	at := map[string]int{}
	for id := range ps.all {
		p := &ps.all[id]
		if p.always() {
			s.stats.Always++
		}
		if p.inner == "" {
			continue
		}
		i, ok := at[p.inner]
		if !ok {
			i = len(words)
			at[p.inner] = i
			words, ps.byInner = append(words, p.inner), append(ps.byInner, nil)
		}
		ps.byInner[i] = append(ps.byInner[i], uint32(id))
	}
	if len(words) > 0 {
		ps.inner = newAutomaton(words)
	}
}

// fill gives the table of s the records and files them. Two slots of three are in
// use: a probe that misses reads three on average, from one cache line mostly.
func (b *Builder) fill(s *Set) {
	last := &b.chunks[len(b.chunks)-1]
	*last = slices.Clone(*last) // without the room to grow
	t := &s.table
	t.chunks = b.chunks
	t.slots = make([]uint64, b.records+b.records/2+1)
	var l wire.Labels
	name := make(wire.Name, 0, wire.MaxName)
	for i, chunk := range t.chunks {
		at := 0
		if i == 0 {
			at = 1
		}
		for at < len(chunk) {
			b.worked()
			r := chunk[at:]
			name = append(append(name[:0], r[2:2+int(r[0])]...), 0)
			l.Scan(name)
			if t.insert(uint32(i<<chunkBits|at), l.Hash[0]) {
				s.count(r[1]&markKind, l.N)
			}
			at += sizeOf(r)
		}
	}
}

// count notes a new record of a name of n labels.
func (s *Set) count(mark byte, n int) {
	switch mark {
	case markFull:
		s.stats.Full++
		s.table.full.add(n)
	case markDomain:
		s.stats.Domain++
		s.table.domain.add(n)
	case markTail:
		s.table.tails.add(n)
	}
}
