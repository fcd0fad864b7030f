package nameset

import (
	"bytes"
	"fmt"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Kind is how the pattern of an expression is meant.
type Kind uint8

// The kinds of expressions.
const (
	Full    Kind = iota // the name itself
	Domain              // the name and all below it; the empty pattern is the root, so every name
	Keyword             // text anywhere in the name
	Regexp              // RE2 syntax, unanchored, over the name in lower case without final dot
)

var kinds = [...]string{Full: "full", Domain: "domain", Keyword: "keyword", Regexp: "regexp"}

// String is the kind as expressions spell it.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Expr is an expression: a pattern and how it is meant. Names in patterns of the
// kinds Full and Domain are in presentation format (RFC 1035 §5.1). Keywords and
// regular expressions see the text of a name: its presentation format in lower
// case and without final dot, where a dot within a label is \046, so that each
// dot parts two labels.
type Expr struct {
	Kind    Kind
	Pattern string
}

// String is the expression as ParseExpr reads it.
func (e Expr) String() string { return e.Kind.String() + ":" + e.Pattern }

// ParseExpr reads "kind:pattern", or a pattern alone of the kind def. What stands
// before the first colon is the kind; where nothing stands there it is def too.
// Patterns are not looked into: Builder.Add does that.
func ParseExpr(text string, def Kind) (Expr, error) {
	kind, pattern, err := splitExpr([]byte(text), def)
	if err != nil {
		return Expr{}, err
	}
	return Expr{kind, string(pattern)}, nil
}

// splitExpr is ParseExpr without copies: the pattern is part of text.
func splitExpr(text []byte, def Kind) (Kind, []byte, error) {
	colon := bytes.IndexByte(text, ':')
	if colon < 0 {
		return def, text, nil
	}
	word, pattern := text[:colon], text[colon+1:]
	if colon == 0 {
		return def, pattern, nil
	}
	for kind, name := range kinds {
		if string(word) == name {
			return Kind(kind), pattern, nil
		}
	}
	shown := string(word[:min(len(word), 32)])
	return 0, nil, fmt.Errorf("unknown kind of expression %q: the nearest is %q (there are full, domain, keyword and regexp)",
		shown, nearest(shown))
}

// nearest is the kind whose name takes the fewest edits to become word.
func nearest(word string) string {
	best, least := "", 1<<30
	for _, name := range kinds {
		if d := distance(name, word); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is Levenshtein's, upper case counted as lower.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if wire.FoldByte(a[i]) != wire.FoldByte(b[j]) {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// trimDot cuts one final dot, as long as no backslash makes it part of a label.
func trimDot(p []byte) []byte {
	n := len(p)
	if n == 0 || p[n-1] != '.' {
		return p
	}
	slashes := 0
	for slashes < n-1 && p[n-2-slashes] == '\\' {
		slashes++
	}
	if slashes%2 == 1 {
		return p
	}
	return p[:n-1]
}

// normal is the pattern of a name as appendLabels takes it. mosdns cuts a dot in
// front of a suffix, and up to two behind it.
func normal(kind Kind, p []byte) []byte {
	p = trimDot(p)
	if kind == Domain {
		if p = trimDot(p); len(p) > 1 && p[0] == '.' {
			p = p[1:]
		}
	}
	return p
}

// appendLabels appends the labels of a name in presentation format to dst, which
// must be empty: folded, in wire format, without the root label. ok is false
// where no name is written so: a label is empty, something is too long (RFC 1035
// §2.3.4), or an escape is malformed.
func appendLabels(dst, p []byte) (labels []byte, ok bool) {
	if len(p) == 0 {
		return dst, true
	}
	start := 0
	dst = append(dst, 0)
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c == '.' {
			if !closeLabel(dst, start) {
				return nil, false
			}
			start = len(dst)
			dst = append(dst, 0)
			continue
		}
		if c == '\\' {
			var size int
			if c, size = unescape(p[i:]); size == 0 {
				return nil, false
			}
			i += size - 1
		}
		if len(dst) >= wire.MaxName-1 {
			return nil, false
		}
		dst = append(dst, wire.FoldByte(c))
	}
	return dst, closeLabel(dst, start)
}

// closeLabel sets the length of the label that starts at start and runs to the
// end of labels.
func closeLabel(labels []byte, start int) bool {
	n := len(labels) - start - 1
	labels[start] = byte(n)
	return n > 0 && n <= wire.MaxLabel
}

// unescape reads the escape that p begins with: the octet, and how many octets
// of text it took, or 0 where it is malformed.
func unescape(p []byte) (octet byte, size int) {
	if len(p) < 2 {
		return 0, 0
	}
	if p[1] < '0' || p[1] > '9' {
		return p[1], 2
	}
	if len(p) < 4 {
		return 0, 0
	}
	v := 0
	for _, c := range p[1:4] {
		if c < '0' || c > '9' {
			return 0, 0
		}
		v = 10*v + int(c-'0')
	}
	if v > 255 {
		return 0, 0
	}
	return byte(v), 4
}
