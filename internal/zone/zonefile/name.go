package zonefile

import (
	"errors"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Reasons why text is not a name (RFC 1035 §2.3.4, §5.1).
var (
	errEmptyLabel = errors.New("has an empty label")
	errLongLabel  = errors.New("has a label of more than 63 octets")
	errLongName   = errors.New("is longer than 255 octets")
	errEscape     = errors.New(`has an escape that is not \X or \DDD up to \255`)
	errRelative   = errors.New("is relative, and there is no $ORIGIN: end it with a dot")
)

// nameBuf holds one name in wire format while it is made.
type nameBuf struct {
	b [wire.MaxName + 1]byte
	n int
}

func (n *nameBuf) name() wire.Name { return n.b[:n.n] }

// parse makes the wire format of a name in presentation format. A name
// without a dot at its end gets the origin; @ alone is the origin. Without an
// origin neither is a name.
func (n *nameBuf) parse(text []byte, origin wire.Name) error {
	n.n = 0
	if len(text) == 1 && text[0] == '@' {
		return n.take(origin)
	}
	if len(text) == 1 && text[0] == '.' {
		n.b[0], n.n = 0, 1
		return nil
	}
	label, at := 0, 1 // offset of the length octet, of the next octet
	for i := 0; i < len(text); i++ {
		if at > wire.MaxName {
			return errLongName
		}
		c := text[i]
		switch c {
		case '.':
			if err := labelError(at - label - 1); err != nil {
				return err
			}
			n.b[label] = byte(at - label - 1)
			label, at = at, at+1
			continue
		case '\\':
			v, width := unescape(text[i:])
			if width == 0 {
				return errEscape
			}
			c, i = v, i+width-1
		}
		n.b[at] = c
		at++
	}
	return n.finish(label, at, origin)
}

// take makes n the origin.
func (n *nameBuf) take(origin wire.Name) error {
	if len(origin) == 0 {
		return errRelative
	}
	n.n = copy(n.b[:], origin)
	return nil
}

// finish ends a name whose last label starts at offset label and ends at at.
func (n *nameBuf) finish(label, at int, origin wire.Name) error {
	if at == label+1 {
		if label >= wire.MaxName {
			return errLongName
		}
		n.b[label], n.n = 0, at
		return nil
	}
	if err := labelError(at - label - 1); err != nil {
		return err
	}
	switch {
	case len(origin) == 0:
		return errRelative
	case at+len(origin) > wire.MaxName:
		return errLongName
	}
	n.b[label] = byte(at - label - 1)
	n.n = at + copy(n.b[at:], origin)
	return nil
}

func labelError(length int) error {
	if length == 0 {
		return errEmptyLabel
	}
	if length > wire.MaxLabel {
		return errLongLabel
	}
	return nil
}

// unescape reads the escape at the start of text: \DDD or \X. Width is the
// number of bytes it takes, 0 if it is none.
func unescape(text []byte) (value byte, width int) {
	if len(text) < 2 {
		return 0, 0
	}
	if !isDigit(text[1]) {
		return text[1], 2
	}
	if len(text) < 4 || !isDigit(text[2]) || !isDigit(text[3]) {
		return 0, 0
	}
	v := int(text[1]-'0')*100 + int(text[2]-'0')*10 + int(text[3]-'0')
	if v > 255 {
		return 0, 0
	}
	return byte(v), 4
}

func isDigit(c byte) bool { return c-'0' <= 9 }
