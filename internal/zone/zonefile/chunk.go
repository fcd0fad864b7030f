package zonefile

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/waymark-dns/waymark/internal/wire"
)

// state is what lines hand down to later lines (RFC 1035 §5.1, RFC 2308 §4).
type state struct {
	file     string
	line     int       // of the next byte
	origin   wire.Name // never written to, replaced
	owner    wire.Name // last owner, nil before the first
	ttl      uint32    // of the last $TTL
	hasTTL   bool
	sameLine bool // all lines count as one: they were made by $GENERATE
}

// chunk is a piece of a file that ends at the end of a record, and what
// parsing made of it. It has one owner at a time: the splitter fills it, a
// parser parses it, the reader hands its records out and frees it.
type chunk struct {
	text  []byte
	start state
	done  chan struct{} // has a token when parsing is done

	records   []Record
	arena     []byte // holds owners and RDATA; a full one is left to the collector
	found     Findings
	tail      []Problem // the splitter's, behind the chunk
	pending   int       // that many records in front wait for a TTL stated before the chunk
	lastTTL   uint32    // last TTL stated in the chunk
	statedTTL bool
}

func (c *chunk) reset() {
	c.text = c.text[:0]
	clear(c.records)
	c.records, c.arena = c.records[:0], c.arena[:0]
	c.found = Findings{list: c.found.list[:0]}
	c.tail = c.tail[:0]
	c.pending, c.lastTTL, c.statedTTL = 0, 0, false
}

// maxArenaBlock bounds what a chunk's memory grows by.
const maxArenaBlock = 1 << 20

// keep copies b into the arena.
func (c *chunk) keep(b []byte) []byte {
	if cap(c.arena)-len(c.arena) < len(b) {
		c.arena = make([]byte, 0, max(min(2*cap(c.arena), maxArenaBlock), 2*len(c.text)+512, len(b)))
	}
	n := len(c.arena)
	c.arena = append(c.arena, b...)
	return c.arena[n:len(c.arena):len(c.arena)]
}

// parser parses chunks. It is owned by one goroutine.
type parser struct {
	tokens
	c    *chunk
	st   state
	apex wire.Name // nil accepts every owner
	max  int       // errors after which the rest of a chunk is left
	slow bool      // never take the direct path, for tests

	classes bool   // records may be of any class
	opaque  bool   // Options.Opaque
	class   uint16 // of the record at hand
	ttl     uint32
	ttlSet  bool
	rrtype  uint16
	inZone  bool // the last owner is in the zone
	name    nameBuf
	rd      []byte // RDATA being made
	scratch []byte // joined words
	types   []uint16
	rest    []byte // RDATA text for the slow path
}

// run parses all records of c.
func (p *parser) run(c *chunk) {
	p.c, p.st = c, c.start
	c.found.limit = p.max
	p.tokens = tokens{b: c.text, line: c.start.line}
	if p.st.owner != nil {
		p.inZone = p.apex == nil || p.st.owner.Under(p.apex)
	}
	for p.i < len(p.b) && !c.found.Full() {
		p.entry()
	}
}

// syntaxError is a problem at the last token.
type syntaxError struct{ text, mend string }

func (e *syntaxError) Error() string { return e.text }

// problem notes a problem at the last token.
func (p *parser) problem(level Level, text, mend string) {
	line, column := p.gotAt, p.column
	if p.st.sameLine {
		line, column = p.c.start.line, 0
	}
	p.c.found.Add(Problem{
		File: p.st.file, Line: line, Column: column, Text: text, Mend: mend, Level: level,
	})
}

// fail notes an error at the last token.
func (p *parser) fail(err error) {
	var s *syntaxError
	mend := ""
	if errors.As(err, &s) {
		mend = s.mend
	}
	p.problem(Error, err.Error(), mend)
}

// entry parses one entry: a blank line, a directive or a record.
func (p *parser) entry() {
	start, line, bol := p.i, p.line, p.bol
	var err error
	done := false
	switch p.b[start] {
	case '\n':
		p.i++
		p.newline(p.i)
		return
	case ';':
		done = p.special(start) == endToken
	case '$':
		p.next()
		done, err = true, p.directive()
	default:
		done, err = p.record()
	}
	if err == nil && done {
		return
	}
	if err != nil {
		p.fail(err)
	}
	p.skip(start, line, bol)
}

// skip goes to where parsing resumes after a record that could not be parsed:
// behind it, or, when a quote that was perhaps never closed swallowed lines, at
// its second line.
func (p *parser) skip(start, line, bol int) {
	p.i, p.line, p.bol, p.depth = start, line, bol, 0
	e := recordEnd(p.b, start)
	if e.split || !e.closed {
		e = firstLine(p.b, start)
	}
	p.i, p.line, p.bol = e.end, line+e.lines, e.end
}

// directive applies the directive whose word is the last token.
func (p *parser) directive() error {
	return p.st.directive(&p.tokens)
}

// directive applies $ORIGIN or $TTL, whose word is the last token of t. The
// splitter has taken the other directives out, if they were well formed.
func (st *state) directive(t *tokens) error {
	word := string(t.tok)
	switch kindOf(t.tok) {
	case originDirective:
		var n nameBuf
		if t.next() != wordToken {
			return &syntaxError{"$ORIGIN without a name", "write $ORIGIN example.org."}
		}
		if err := n.parse(t.tok, st.origin); err != nil {
			return fmt.Errorf("name %q %w", t.tok, err)
		}
		st.origin = append(wire.Name(nil), n.name()...)
	case ttlDirective:
		if t.next() != wordToken {
			return &syntaxError{"$TTL without a time", "write $TTL 3600 or $TTL 1h"}
		}
		ttl, ok := parseTTL(t.tok)
		if !ok {
			return badTTL(t.tok)
		}
		st.ttl, st.hasTTL = clampTTL(ttl), true
	case includeDirective, generateDirective:
		return nil // told by the splitter
	default:
		return &syntaxError{fmt.Sprintf("unknown directive %q", word), "directives are $ORIGIN, $TTL, $INCLUDE and $GENERATE"}
	}
	if t.next() != endToken {
		return &syntaxError{fmt.Sprintf("%q behind %s", t.tok, word), "end the line there"}
	}
	return nil
}

// directiveKind is one of the directives, or none.
type directiveKind uint8

const (
	noDirective directiveKind = iota
	originDirective
	ttlDirective
	includeDirective
	generateDirective
)

func kindOf(word []byte) directiveKind {
	switch {
	case sameWord(word, "$ORIGIN"):
		return originDirective
	case sameWord(word, "$TTL"):
		return ttlDirective
	case sameWord(word, "$INCLUDE"):
		return includeDirective
	case sameWord(word, "$GENERATE"):
		return generateDirective
	}
	return noDirective
}

// sameWord compares a word with an upper-case one, without case.
func sameWord(word []byte, upper string) bool {
	if len(word) != len(upper) {
		return false
	}
	for i, c := range word {
		if wire.FoldByte(c) != wire.FoldByte(upper[i]) {
			return false
		}
	}
	return true
}

// firstLine is the extent of the rest of the line at offset i alone.
func firstLine(b []byte, i int) extent {
	for ; i < len(b); i++ {
		if b[i] == '\n' {
			return extent{end: i + 1, lines: 1, closed: true}
		}
	}
	return extent{end: len(b)}
}

// parseTTL reads a time: digits, or digits with units as 1h30m.
func parseTTL(text []byte) (uint32, bool) {
	var sum, n uint64
	digits := false
	for _, c := range text {
		if isDigit(c) {
			n, digits = n*10+uint64(c-'0'), true
		} else {
			unit := unitSeconds(c)
			if unit == 0 || !digits {
				return 0, false
			}
			sum, n, digits = sum+n*unit, 0, false
		}
		if n > 1<<32 || sum > 1<<32 {
			return 0, false
		}
	}
	sum += n
	return uint32(sum), sum < 1<<32 && len(text) > 0
}

func unitSeconds(c byte) uint64 {
	switch wire.FoldByte(c) {
	case 's':
		return 1
	case 'm':
		return 60
	case 'h':
		return 3600
	case 'd':
		return 86400
	case 'w':
		return 604800
	}
	return 0
}

// clampTTL takes a TTL with the top bit set as 0 (RFC 2181 §8).
func clampTTL(ttl uint32) uint32 {
	if ttl >= 1<<31 {
		return 0
	}
	return ttl
}

func badTTL(text []byte) error {
	return &syntaxError{strconv.Quote(string(text)) + " is not a TTL", "write seconds, or units as in 1h30m"}
}
