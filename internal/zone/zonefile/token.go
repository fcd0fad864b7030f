package zonefile

import "bytes"

// kind is what tokens.next found.
type kind uint8

const (
	endToken    kind = iota // end of the record, newline consumed
	wordToken               // bare text, escapes kept
	quotedToken             // text between quotes, escapes kept
	badToken                // a parenthesis or quote that does not match
)

// Classes of bytes that end a bare word.
const (
	plain = iota
	delimiter
	backslash
)

var byteClass = [256]uint8{
	' ': delimiter, '\t': delimiter, '\n': delimiter, '\r': delimiter,
	'(': delimiter, ')': delimiter, ';': delimiter, '"': delimiter,
	'\\': backslash,
}

// tokens walks over the tokens of presentation format (RFC 1035 §5.1). Its text
// ends with a newline.
type tokens struct {
	b     []byte
	i     int // next byte
	line  int // line of b[i]
	bol   int // offset of the first byte of that line
	depth int // open parentheses

	// the last token
	tok    []byte
	at     int  // offset of its first byte, quote included
	glued  bool // no blank between it and the token before it
	gotAt  int  // line of the token
	column int
}

// next steps to the next token. Parentheses, comments and the line ends
// within parentheses are blank space.
func (t *tokens) next() kind {
	b, i := t.b, t.i
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	if i < len(b) && byteClass[b[i]] == plain {
		return t.word(i)
	}
	return t.special(i)
}

// word reads the bare word that starts at offset start.
func (t *tokens) word(start int) kind {
	b, i := t.b, start
	for i < len(b) && byteClass[b[i]] != delimiter {
		if b[i] == '\\' && i+1 < len(b) && b[i+1] != '\n' && b[i+1] != '\r' {
			i++
		}
		i++
	}
	t.got(start)
	t.tok, t.i = b[start:i], i
	return wordToken
}

// got notes where a token starts.
func (t *tokens) got(at int) {
	t.glued = at == t.i
	t.at, t.gotAt, t.column = at, t.line, at-t.bol+1
}

// special handles everything that is not the first byte of a plain word.
func (t *tokens) special(i int) kind {
	b := t.b
	for i < len(b) {
		switch b[i] {
		case ' ', '\t', '\r':
			i++
		case '\n':
			i++
			t.newline(i)
			if t.depth == 0 {
				t.i = i
				return endToken
			}
		case ';':
			i = min(lineEnd(b, i), len(b))
		case '(', ')':
			if !t.paren(i) {
				return badToken
			}
			i++
		case '"':
			return t.quoted(i)
		default:
			return t.word(i)
		}
	}
	t.i = i
	if t.depth > 0 {
		return badToken
	}
	return endToken
}

func (t *tokens) newline(next int) {
	t.line++
	t.bol = next
}

// paren counts a parenthesis and tells whether it may stand there.
func (t *tokens) paren(i int) bool {
	if t.b[i] == '(' {
		t.depth++
		return true
	}
	t.depth--
	if t.depth < 0 {
		t.got(i)
		t.tok = t.b[i : i+1]
		return false
	}
	return true
}

// quoted reads the quoted string whose first quote is at offset start.
func (t *tokens) quoted(start int) kind {
	t.got(start)
	end := quoteEnd(t.b, start)
	if end < 0 {
		t.tok = t.b[start : start+1]
		return badToken
	}
	t.tok = t.b[start+1 : end]
	if n := bytes.Count(t.tok, newlineByte); n > 0 {
		t.line += n
		t.bol = start + 1 + bytes.LastIndexByte(t.tok, '\n') + 1
	}
	t.i = end + 1
	return quotedToken
}

var newlineByte = []byte{'\n'}

// quoteEnd is the offset of the quote that closes the one at start, or -1.
func quoteEnd(b []byte, start int) int {
	for i := start + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// special bytes for the search of a record's end.
var endClass = [256]bool{'\n': true, '\\': true, '"': true, '(': true, ')': true, ';': true}

// extent is what is known of a record's text without parsing it.
type extent struct {
	end    int  // offset behind the newline that ends the record
	lines  int  // newlines up to there
	split  bool // a quoted string goes over a line end
	closed bool // all quotes and parentheses are closed; without it end is len(b)
}

// recordEnd finds the end of the record that starts at offset i.
func recordEnd(b []byte, i int) extent {
	var e extent
	depth := 0
	for ; i < len(b); i++ {
		if !endClass[b[i]] {
			continue
		}
		switch b[i] {
		case '\n':
			e.lines++
			if depth == 0 {
				e.end, e.closed = i+1, true
				return e
			}
		case '\\':
			if i+1 < len(b) && b[i+1] != '\n' {
				i++
			}
		case '(':
			depth++
		case ')':
			depth = max(0, depth-1)
		case ';':
			i = lineEnd(b, i) - 1
		case '"':
			i = e.quote(b, i)
		}
	}
	e.end = len(b)
	return e
}

// lineEnd is the offset of the next newline, or behind the end.
func lineEnd(b []byte, i int) int {
	if nl := bytes.IndexByte(b[i:], '\n'); nl >= 0 {
		return i + nl
	}
	return len(b) + 1
}

// quote takes the quoted string at start into e. It returns the offset of the
// closing quote, that of the end without one.
func (e *extent) quote(b []byte, start int) int {
	end := quoteEnd(b, start)
	if end < 0 {
		e.split = true
		return len(b)
	}
	if n := bytes.Count(b[start:end], newlineByte); n > 0 {
		e.lines += n
		e.split = true
	}
	return end
}
