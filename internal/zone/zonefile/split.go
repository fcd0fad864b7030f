package zonefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/waymark-dns/waymark/internal/wire"
)

// chunkSize is what a chunk holds of a large file: with 128 KiB (some 4,000
// records) the cost of handing chunks over is lost in that of parsing them,
// and all chunks in flight stay within a few megabytes.
const chunkSize = 128 << 10

// errStopped tells the splitter that nobody wants chunks any more.
var errStopped = errors.New("reading stopped")

// splitter walks over a file and the files it includes, cuts them into chunks
// and follows what lines hand down to later lines. Only it reads files.
type splitter struct {
	o     Options
	root  string // folder that includes stay in, links resolved
	take  func() *chunk
	give  func(*chunk) error // in file order
	carry []byte             // read but not in a chunk yet
	spent int64              // bytes of text read
	made  int                // records made by $GENERATE
}

// source is one open file on its way through the splitter.
type source struct {
	r     io.Reader
	size  int // of its chunks
	depth int // of inclusion
	eof   bool
	st    state

	begun  bool // something was read
	inLine bool // what is read next begins inside a line that is dropped
}

// byteOrderMark is what some editors put in front of a text (RFC 3629 §6).
var byteOrderMark = []byte("\xef\xbb\xbf")

// file splits the text of f, a file or one in memory, whose first line gets st.
func (s *splitter) file(f io.Reader, st state, depth int) error {
	size := s.o.chunk
	if n := lengthOf(f); n < int64(size) {
		size = max(int(n)+2, 64) // for a last newline, and to see the end
	}
	src := &source{r: f, size: size, depth: depth, st: st}
	saved := s.carry
	s.carry = nil
	defer func() { s.carry = saved }()
	for !src.eof || len(s.carry) > 0 {
		if err := s.chunk(src); err != nil {
			return err
		}
	}
	return nil
}

// lengthOf is the octets of f, or very many where that is not known.
func lengthOf(f io.Reader) int64 {
	switch f := f.(type) {
	case *os.File:
		if info, err := f.Stat(); err == nil {
			return info.Size()
		}
	case interface{ Size() int64 }: // in memory
		return f.Size()
	}
	return math.MaxInt64
}

// chunk cuts the next chunk of src and does what comes behind it.
func (s *splitter) chunk(src *source) error {
	c := s.take()
	if c == nil {
		return errStopped
	}
	c.text = append(c.text, s.carry...)
	if err := s.fill(c, src); err != nil {
		return err
	}
	if src.inLine {
		c.text = append(c.text[:0], src.restOfLine(c.text)...)
	}
	if !src.begun {
		src.begun = true
		c.text = append(c.text[:0], bytes.TrimPrefix(c.text, byteOrderMark)...)
	}
	c.start = src.st
	end, next := s.scan(c.text, src)
	s.carry = append(s.carry[:0], c.text[end:]...)
	c.text = c.text[:end]
	if next == stopOpen {
		s.unclosed(c, src)
	}
	if err := s.give(c); err != nil {
		return err
	}
	if next == stopDirective {
		return s.directive(src)
	}
	return nil
}

// fill reads from src until c is full. A last line without a newline gets one.
func (s *splitter) fill(c *chunk, src *source) error {
	want := max(src.size, 2*len(c.text))
	if len(c.text) < src.size {
		want = src.size
	}
	if cap(c.text) < want {
		c.text = append(make([]byte, 0, want), c.text...)
	}
	for !src.eof && len(c.text) < want {
		n, err := src.r.Read(c.text[len(c.text):want])
		c.text = c.text[:len(c.text)+n]
		if s.spent += int64(n); s.spent > s.o.Limits.Bytes {
			return fmt.Errorf("reading zone file %s: more than %d bytes of text", src.st.file, s.o.Limits.Bytes)
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("reading zone file %s: %w", src.st.file, err)
		}
		src.eof = err == io.EOF
	}
	if n := len(c.text); src.eof && n > 0 && c.text[n-1] != '\n' {
		c.text = append(c.text, '\n')
	}
	return nil
}

// stop is why scan stopped.
type stop uint8

const (
	stopEnd       stop = iota // no further whole record in the text
	stopDirective             // in front of $INCLUDE or $GENERATE
	stopOpen                  // in front of a record that never closes its quotes or parentheses
)

// scan finds the end of the last whole record of text and moves src.st over
// all records before it.
func (s *splitter) scan(text []byte, src *source) (end int, why stop) {
	last := -1 // start of the last record with an owner that src.st does not know yet
	i := 0
	for i < len(text) {
		first := text[i]
		e := recordEnd(text, i)
		if !e.closed {
			if src.eof || len(text)-i > s.o.Limits.Record {
				why = stopOpen
			}
			break
		}
		if first == '$' {
			s.learnOwner(text, last, src)
			last = -1
			t := tokens{b: text[i:e.end], line: src.st.line}
			t.next()
			if k := kindOf(t.tok); k == includeDirective || k == generateDirective {
				return i, stopDirective
			}
			_ = src.st.directive(&t) // the parser tells what is wrong with it
		} else if byteClass[first] != delimiter {
			last = i
		}
		i = e.end
		src.st.line += e.lines
	}
	s.learnOwner(text, last, src)
	return i, why
}

// learnOwner makes the owner of the record at offset at, if any, the last
// owner.
func (s *splitter) learnOwner(text []byte, at int, src *source) {
	if at < 0 {
		return
	}
	t := tokens{b: text}
	t.word(at)
	var n nameBuf
	if n.parse(t.tok, src.st.origin) != nil {
		src.st.owner = nil
		return
	}
	src.st.owner = append(wire.Name(nil), n.name()...)
}

// unclosed tells that the record at the start of s.carry is never closed, or is
// longer than a record may be, and drops its first line.
func (s *splitter) unclosed(c *chunk, src *source) {
	t := tokens{b: s.carry, line: src.st.line}
	k := t.next()
	for k == wordToken || k == quotedToken {
		k = t.next()
	}
	p := Problem{File: src.st.file, Line: src.st.line, Column: t.column, Level: Error}
	switch {
	case !src.eof:
		p.Text, p.Mend = fmt.Sprintf("record of more than %d bytes", s.o.Limits.Record), "shorten it, or close its quotes and parentheses"
	case k == badToken && len(t.tok) == 1 && t.tok[0] == '"':
		p.Line, p.Text, p.Mend = t.gotAt, "quote is never closed", "close it at the end of the string"
	default:
		p.Text, p.Mend = "parenthesis is never closed", "close it behind the last field of the record"
	}
	c.tail = append(c.tail, p)
	s.carry = append(s.carry[:0], src.restOfLine(s.carry)...)
}

// restOfLine is text without its first line. Where that goes on in what is not
// read yet, nothing is left, and the next text begins with the rest of it.
func (src *source) restOfLine(text []byte) []byte {
	e := firstLine(text, 0)
	src.st.line += e.lines
	src.inLine = e.lines == 0 && !src.eof
	return text[e.end:]
}

// directive does the $INCLUDE or $GENERATE at the start of s.carry.
func (s *splitter) directive(src *source) error {
	e := recordEnd(s.carry, 0)
	text := append([]byte(nil), s.carry[:e.end]...)
	s.carry = append(s.carry[:0], s.carry[e.end:]...)
	t := &tokens{b: text, line: src.st.line}
	t.next()
	var err error
	if kindOf(t.tok) == includeDirective {
		err = s.include(t, src)
	} else {
		err = s.generate(t, src)
	}
	src.st.line += e.lines
	var bad *syntaxError
	if errors.As(err, &bad) {
		return s.tell(Problem{
			File: src.st.file, Line: t.gotAt, Column: t.column, Text: bad.text, Mend: bad.mend, Level: Error,
		}, src)
	}
	return err
}

// tell puts a problem in its place among the chunks.
func (s *splitter) tell(p Problem, src *source) error {
	c := s.take()
	if c == nil {
		return errStopped
	}
	c.start = src.st
	c.tail = append(c.tail, p)
	return s.give(c)
}

// include splits the file that an $INCLUDE directive names.
func (s *splitter) include(t *tokens, src *source) error {
	const mend = "write $INCLUDE file, or $INCLUDE file origin."
	k := t.next()
	if k != wordToken && k != quotedToken {
		return &syntaxError{"$INCLUDE without a file", mend}
	}
	path := unescapeText(t.tok)
	st := src.st
	st.line = 1
	inner := *t
	if k = t.next(); k == wordToken {
		var n nameBuf
		if err := n.parse(t.tok, st.origin); err != nil {
			return &syntaxError{fmt.Sprintf("origin %q %v", t.tok, err), mend}
		}
		st.origin = append(wire.Name(nil), n.name()...)
		k = t.next()
	}
	if k != endToken {
		return &syntaxError{fmt.Sprintf("%q behind $INCLUDE", t.tok), mend}
	}
	*t = inner // problems below are about the file
	if s.root == "" {
		return &syntaxError{"$INCLUDE is not taken here", "put the records in its place"}
	}
	if src.depth >= s.o.Limits.Depth {
		return &syntaxError{fmt.Sprintf("files include each other more than %d deep", s.o.Limits.Depth), "look for a file that includes itself"}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(src.st.file), path)
	}
	f, err := s.open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st.file = path
	return s.file(f, st, src.depth+1)
}

// open opens a file to include, if it is in the root folder after all links
// are resolved.
func (s *splitter) open(path string) (*os.File, error) {
	refuse := func(reason any) error {
		return &syntaxError{fmt.Sprintf("cannot include %s: %v", path, reason), "included files must be in " + s.root}
	}
	outside := func(p string) bool {
		rel, err := filepath.Rel(s.root, p)
		return err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator))
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, refuse(err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		// Whether a file outside exists is not told.
		if outside(abs) {
			return nil, refuse("it is outside the root folder")
		}
		return nil, refuse(underlying(err))
	}
	if outside(real) {
		return nil, refuse("it is outside the root folder")
	}
	rel, err := filepath.Rel(s.root, real)
	if err != nil {
		return nil, refuse(err)
	}
	// Opening a pipe would wait for its writer.
	if info, err := os.Stat(real); err == nil && !info.Mode().IsRegular() {
		return nil, refuse("it is not a regular file")
	}
	f, err := os.OpenInRoot(s.root, rel) // a link that was put there since is refused here
	if err != nil {
		return nil, refuse(underlying(err))
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, refuse("it is not a regular file")
	}
	return f, nil
}

// underlying is the cause of a file error, without the path, which the problem
// names already.
func underlying(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// unescapeText takes escapes out of a token.
func unescapeText(text []byte) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if v, width := unescape(text[i:]); c == '\\' && width > 0 {
			c, i = v, i+width-1
		}
		b.WriteByte(c)
	}
	return b.String()
}
