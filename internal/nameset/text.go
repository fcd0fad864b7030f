package nameset

import (
	"strings"

	"github.com/waymark-dns/waymark/internal/wire"
)

// maxText is room for the text of any name: at most 250 octets of labels, four
// octets of text each, and the dots.
const maxText = 1024

// odd marks the octets that stand in the text of a name as escapes.
var odd = oddOctets()

func oddOctets() (marks [256]bool) {
	for c := range marks {
		marks[c] = c <= ' ' || c > '~' || strings.IndexByte(`.'@;()"\`, byte(c)) >= 0
	}
	return marks
}

// appendText appends the text of name, as keywords and regular expressions see it.
func appendText(dst []byte, name wire.Name) []byte {
	for i := 0; i < len(name) && name[i] != 0; {
		end := i + 1 + int(name[i])
		if i > 0 {
			dst = append(dst, '.')
		}
		for _, c := range name[i+1 : end] {
			if odd[c] {
				dst = appendEscape(dst, c)
			} else {
				dst = append(dst, wire.FoldByte(c))
			}
		}
		i = end
	}
	return dst
}

// appendEscape appends an odd octet: \DDD where it has no shape, or the shape of
// the dot that parts labels; otherwise a backslash before it (RFC 1035 §5.1).
func appendEscape(dst []byte, c byte) []byte {
	if c < ' ' || c > '~' || c == '.' {
		return append(dst, '\\', '0'+c/100, '0'+c/10%10, '0'+c%10)
	}
	return append(dst, '\\', c)
}
