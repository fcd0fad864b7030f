package zonefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/wire"
)

// ReadText is Read of records that are in memory already; problems give them that
// name in place of a file's. $INCLUDE is an error there, and without an origin so
// is a relative name in front of an $ORIGIN.
func ReadText(name, text string, o Options, each func([]Record) error) error {
	o = o.withDefaults()
	r := newReader(o, each)
	return r.verdict(r.inline(&splitter{o: o}, strings.NewReader(text), state{file: name, line: 1, origin: o.Origin}))
}

// ReadStream is ReadText of what src hands out, such as the body of a request. It
// is parsed in parallel as it comes, and only some chunks of it are in memory at a
// time, whatever its length. An error of src ends the reading; so does one of each,
// once a Read of src that is under way has returned. Nobody reads src afterwards.
func ReadStream(name string, src io.Reader, o Options, each func([]Record) error) error {
	o = o.withDefaults()
	r := newReader(o, each)
	s, st := &splitter{o: o}, state{file: name, line: 1, origin: o.Origin}
	head := make([]byte, o.chunk)
	n, err := io.ReadFull(src, head)
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF: // all of it is here: other goroutines would only cost
		return r.verdict(r.inline(s, bytes.NewReader(head[:n]), st))
	case err != nil:
		return fmt.Errorf("reading zone file %s: %w", name, err)
	}
	src = io.MultiReader(bytes.NewReader(head), src)
	if o.Workers == 1 {
		return r.verdict(r.inline(s, src, st))
	}
	return r.verdict(r.parallel(s, src, st))
}

// verdict is the error of a whole reading, err being what ended it.
func (r *reader) verdict(err error) error {
	if errors.Is(err, errTooMany) {
		err = nil
	}
	if err == nil && r.found.count[Error] > 0 {
		err = &ProblemsError{Problems: r.found.list}
	}
	return err
}

// ParseRDATA reads the RDATA of one record in presentation format, without owner,
// TTL, class and type, into memory of its own. Relative names get the origin; it
// may be nil, then they are errors. The text is one record's: a line end outside
// parentheses is an error, and so is a comment, for a semicolon that someone forgot
// to quote would cut the text short without a word.
func ParseRDATA(typ uint16, text string, origin wire.Name) ([]byte, error) {
	b := append([]byte(text), '\n')
	p := &parser{max: 1, c: &chunk{text: b}, class: classIN, rrtype: typ}
	p.tokens = tokens{b: b, line: 1}
	p.st.origin = origin
	err := p.rdata()
	var bad *syntaxError
	switch {
	case hasComment(b):
		err = &syntaxError{"semicolon outside quotes", "put the string between quotes"}
	case err == nil && p.i < len(b):
		err = &syntaxError{"text behind the end of the line", "put RDATA on one line, or in parentheses"}
	}
	if errors.As(err, &bad) && bad.mend != "" {
		err = fmt.Errorf("%w (%s)", err, bad.mend)
	}
	if err != nil {
		return nil, err
	}
	return slices.Clone(p.rd), nil
}

// hasComment tells whether a comment begins in text.
func hasComment(text []byte) bool {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ';':
			if !quoted {
				return true
			}
		}
	}
	return false
}
