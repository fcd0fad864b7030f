// Package wire is the ground floor of Waymark: the DNS wire format and nothing
// else. It reads queries in place, writes responses into buffers it does not
// own, and knows every RR type's layout. It imports nothing of the project and
// opens no socket; every other package stands on it.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits of RFC 1035 §2.3.4.
const (
	MaxName    = 255 // octets of a name in wire format, root label counted
	MaxLabel   = 63  // octets of a label
	MaxLabels  = 127 // labels of a name, root label not counted
	MaxMessage = 65535
)

// Errors of names in presentation format.
var (
	ErrEmptyLabel = errors.New("empty label")
	ErrLongLabel  = errors.New("label longer than 63 octets")
	ErrLongName   = errors.New("name longer than 255 octets")
	ErrEscape     = errors.New(`bad escape: write \DDD (000 to 255) or \X`)
)

// Name is a domain name in uncompressed wire format: length-prefixed labels,
// ended by the root label. Letters keep the case they came with. A Name is a
// view; who keeps one copies it.
type Name []byte

// Root is the name of the root. It is never written to.
var Root = Name{0}

// ParseName reads a name in presentation format (RFC 1035 §5.1, RFC 4343 §2.1).
// A missing final dot is taken as there; "." and "" are the root.
func ParseName(s string) (Name, error) {
	n := make(Name, 0, len(s)+2)
	if s == "." || s == "" {
		return append(n, 0), nil
	}
	start := 0
	n = append(n, 0)
	for i := 0; i < len(s); {
		c := s[i]
		if c == '.' {
			if err := closeLabel(n, start); err != nil {
				return nil, fmt.Errorf("reading name %q: %w", s, err)
			}
			start = len(n)
			n = append(n, 0)
			i++
			continue
		}
		c, size, err := unescape(s[i:])
		if err != nil {
			return nil, fmt.Errorf("reading name %q: %w", s, err)
		}
		n = append(n, c)
		i += size
	}
	if len(n)-start > 1 { // no final dot: end the label and add the root
		if err := closeLabel(n, start); err != nil {
			return nil, fmt.Errorf("reading name %q: %w", s, err)
		}
		n = append(n, 0)
	}
	if len(n) > MaxName {
		return nil, fmt.Errorf("reading name %q: %w", s, ErrLongName)
	}
	return n, nil
}

// closeLabel sets the length octet of the label that starts at start and runs
// to the end of n.
func closeLabel(n Name, start int) error {
	switch size := len(n) - start - 1; {
	case size == 0:
		return ErrEmptyLabel
	case size > MaxLabel:
		return ErrLongLabel
	default:
		n[start] = byte(size)
		return nil
	}
}

// unescape reads one octet of presentation format and tells how many octets of
// text it took.
func unescape(s string) (byte, int, error) {
	if s[0] != '\\' {
		return s[0], 1, nil
	}
	if len(s) >= 4 && s[1] >= '0' && s[1] <= '9' {
		v, err := strconv.ParseUint(s[1:4], 10, 8)
		if err != nil {
			return 0, 0, ErrEscape
		}
		return byte(v), 4, nil
	}
	if len(s) < 2 || s[1] >= '0' && s[1] <= '9' {
		return 0, 0, ErrEscape
	}
	return s[1], 2, nil
}

// String is the presentation format, with a final dot, escaped so that
// ParseName gives the same name back.
func (n Name) String() string {
	if len(n) <= 1 {
		return "."
	}
	var b strings.Builder
	for i := 0; i < len(n) && n[i] != 0; i += int(n[i]) + 1 {
		end := min(i+1+int(n[i]), len(n))
		for _, c := range n[i+1 : end] {
			switch {
			case strings.IndexByte(`.\"();@$`, c) >= 0:
				b.WriteByte('\\')
				b.WriteByte(c)
			case c > ' ' && c < 0x7f:
				b.WriteByte(c)
			default:
				fmt.Fprintf(&b, "\\%03d", c)
			}
		}
		b.WriteByte('.')
	}
	return b.String()
}

// Fold is a copy of n with the letters A to Z in lower case (RFC 4343).
func (n Name) Fold() Name {
	f := make(Name, len(n))
	for i, c := range n {
		f[i] = FoldByte(c)
	}
	return f
}

// Labels is the number of labels, the root label not counted.
func (n Name) Labels() int {
	count := 0
	for i := 0; i < len(n) && n[i] != 0; i += int(n[i]) + 1 {
		count++
	}
	return count
}

// Under tells whether n is at or below parent, letters folded.
func (n Name) Under(parent Name) bool {
	for i := 0; i < len(n); i += int(n[i]) + 1 {
		if len(n)-i == len(parent) {
			return EqualFold(n[i:], parent)
		}
		if n[i] == 0 {
			break
		}
	}
	return false
}

// SkipName is the offset behind the name that starts at off in msg, compressed
// or not, or -1 where there is none (RFC 1035 §4.1.4). Pointers are not
// followed.
func SkipName(msg []byte, off int) int {
	for start := off; off < len(msg); {
		c := int(msg[off])
		switch {
		case c == 0:
			return off + 1
		case c >= 0xc0:
			if off+2 > len(msg) {
				return -1
			}
			return off + 2
		case c > MaxLabel || off+1+c-start > MaxName-1:
			return -1
		}
		off += c + 1
	}
	return -1
}

// UncompressedEnd is the offset behind the uncompressed name that starts at
// off in b, or -1.
func UncompressedEnd(b []byte, off int) int {
	for start := off; off < len(b) && off-start < MaxName; {
		c := int(b[off])
		if c == 0 {
			return off + 1
		}
		if c > MaxLabel {
			return -1
		}
		off += c + 1
	}
	return -1
}

// ReadName decompresses the name at off in msg into dst and returns it with the
// offset behind it in msg. Pointers must point backwards (RFC 9267 §2), so that
// a loop cannot be, and there are no more of them than a name can have labels, so
// that a long chain of pointers costs no more than a long name. ok is false where
// the name is malformed.
func ReadName(dst Name, msg []byte, off int) (name Name, end int, ok bool) {
	name = dst[:0]
	limit, hops := off, 0
	for off < len(msg) {
		c := int(msg[off])
		switch {
		case c == 0:
			if hops == 0 {
				end = off + 1
			}
			return append(name, 0), end, len(name) < MaxName
		case c >= 0xc0:
			if hops == 0 {
				end = off + 2
			}
			hops++
			if off = pointee(msg, off); off >= limit || hops > MaxLabels {
				return nil, 0, false
			}
			limit = off
		case c > MaxLabel || off+1+c > len(msg) || len(name)+c+2 > MaxName:
			return nil, 0, false
		default:
			name = append(name, msg[off:off+1+c]...)
			off += 1 + c
		}
	}
	return nil, 0, false
}

// pointee is where the compression pointer at off points to; behind the message
// where the pointer is cut.
func pointee(msg []byte, off int) int {
	if off+2 > len(msg) {
		return len(msg)
	}
	return int(binary.BigEndian.Uint16(msg[off:]) & maxOffset)
}

// EqualFold compares two names or labels, letters folded.
func EqualFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for len(a) >= 8 {
		if fold8(binary.LittleEndian.Uint64(a)) != fold8(binary.LittleEndian.Uint64(b)) {
			return false
		}
		a, b = a[8:], b[8:]
	}
	for i := range a {
		if FoldByte(a[i]) != FoldByte(b[i]) {
			return false
		}
	}
	return true
}

// Compare orders names canonically (RFC 4034 §6.1): by labels from the root
// down, letters folded. It is negative where a comes first.
func Compare(a, b Name) int {
	var la, lb [MaxLabels + 1]uint8
	i, j := offsets(a, &la), offsets(b, &lb)
	for i > 0 && j > 0 {
		i, j = i-1, j-1
		if c := compareFold(labelAt(a, la[i]), labelAt(b, lb[j])); c != 0 {
			return c
		}
	}
	return i - j
}

func labelAt(n Name, off uint8) []byte {
	o := int(off)
	return n[o+1 : o+1+int(n[o])]
}

// offsets notes where each label of n starts and returns their number.
func offsets(n Name, into *[MaxLabels + 1]uint8) int {
	count := 0
	for i := 0; n[i] != 0; i += int(n[i]) + 1 {
		into[count] = uint8(i)
		count++
	}
	return count
}

func compareFold(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if x, y := FoldByte(a[i]), FoldByte(b[i]); x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// FoldByte is c in lower case, where it is a letter A to Z (RFC 4343 §3).
func FoldByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// fold8 folds eight octets at once: those from A to Z get bit 0x20. Length
// octets of labels are at most 63 and so never touched.
func fold8(w uint64) uint64 {
	const ones = 0x0101010101010101
	low := w & (0x7f * ones)
	geA := low + (0x80-'A')*ones
	gtZ := low + (0x7f-'Z')*ones
	upper := ^w & (geA ^ gtZ) & (0x80 * ones)
	return w | upper>>2
}
