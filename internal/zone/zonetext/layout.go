package zonetext

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"net/netip"
	"strconv"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// layouts is the fields of RDATA by type, a letter each:
//
//	1 2 4  a number of that many octets
//	n      a name
//	a A    an IPv4, an IPv6 address
//	s      a character string
//	t      character strings up to the end, one at least
//	q      octets up to the end as one string
//	d      a character string of digits
//	f      a character string that is a decimal number
//	w      a character string of letters and digits
//	h b    octets up to the end, one at least, in hexadecimal, in base64
//	e      octets up to the end in hexadecimal with dashes between
//	x      eight octets in hexadecimal, in four groups
//	T      a type
//	D      a moment, in seconds since 1970
//	m      a type bitmap up to the end
//	S H    the salt, the hashed next owner of NSEC3
//	G R    type, algorithm and gateway of IPSECKEY; flag, type and relay of AMTRELAY
//	L P V  what LOC, APL and SVCB have
//	K      what HIP has
//
// A type without a row has no presentation format of its own. Types at the end
// of the numbers are in layoutOf.
var layouts = [...]string{
	wire.TypeA: "a", wire.TypeNS: "n", 3: "n", 4: "n", wire.TypeCNAME: "n", wire.TypeSOA: "nn44444",
	7: "n", 8: "n", 9: "n", wire.TypePTR: "n", 13: "ss", 14: "nn", wire.TypeMX: "2n", wire.TypeTXT: "t",
	17: "nn", 18: "2n", 19: "d", 20: "t", 21: "2n", 23: "n", 24: "T114DD2nb", 25: "211b", 26: "2nn", 27: "fff",
	wire.TypeAAAA: "A", 29: "L", 31: "h", 32: "h", wire.TypeSRV: "222n", 35: "22sssn", 36: "2n", 37: "221b",
	wire.TypeDNAME: "n", 42: "P", wire.TypeDS: "211h", 44: "11h", 45: "1Gb", wire.TypeRRSIG: "T114DD2nb",
	wire.TypeNSEC: "nm", wire.TypeDNSKEY: "211b", 49: "b", wire.TypeNSEC3: "112SHm", wire.TypeNSEC3PARAM: "112S",
	52: "111h", 53: "111h", 55: "K", 56: "t", 57: "211b", 58: "nn", 59: "211h", 60: "211b", 61: "b", 62: "42m",
	63: "411h", wire.TypeSVCB: "2nV", wire.TypeHTTPS: "2nV", 66: "T12n", 99: "t", 100: "s", 101: "4", 102: "4",
	104: "2x", 105: "2a", 106: "2x", 107: "2n", 108: "e", 109: "e", 256: "22q", 257: "1wq", 258: "t",
	260: "1R", 261: "t", 262: "t", 263: "t",
}

func layoutOf(typ uint16) string {
	switch {
	case int(typ) < len(layouts):
		return layouts[typ]
	case typ == 32768, typ == 32769: // TA and DLV are as DS
		return layouts[wire.TypeDS]
	}
	return ""
}

// text is RDATA on its way into presentation format.
type text struct {
	dst    []byte
	start  int    // of the text in dst
	rest   []byte // RDATA that is still to be written
	origin wire.Name
}

// fields writes the fields of a layout. It tells whether there is one and RDATA
// has all of it.
func (t *text) fields(layout string) bool {
	for i := range len(layout) {
		if !t.field(layout[i]) {
			return false
		}
	}
	return layout != ""
}

func (t *text) field(letter byte) bool {
	switch letter {
	case '1', '2', '4':
		return t.number(int(letter - '0'))
	case 'n':
		return t.name()
	case 'a', 'A':
		return t.address(letter)
	case 's', 'd', 'f', 'w':
		return t.string(letter)
	case 't':
		return t.strings()
	case 'q', 'h', 'b', 'e':
		return t.octets(letter)
	case 'x':
		return t.groups()
	case 'T':
		return t.rrType()
	case 'D':
		return t.moment()
	case 'm':
		return t.bitmap()
	case 'S', 'H':
		return t.nsec3(letter)
	}
	return t.rare(letter)
}

func (t *text) rare(letter byte) bool {
	switch letter {
	case 'G':
		return t.gateway()
	case 'R':
		return t.relay()
	case 'L':
		return t.location()
	case 'P':
		return t.prefixes()
	case 'V':
		return t.parameters()
	case 'K':
		return t.hostIdentity()
	}
	return false
}

// take is the next n octets of RDATA; ok is false where there are fewer.
func (t *text) take(n int) (b []byte, ok bool) {
	if n > len(t.rest) {
		return nil, false
	}
	b, t.rest = t.rest[:n], t.rest[n:]
	return b, true
}

// takeString is the next character string.
func (t *text) takeString() (b []byte, ok bool) {
	if len(t.rest) == 0 {
		return nil, false
	}
	n := int(t.rest[0])
	t.rest = t.rest[1:]
	return t.take(n)
}

// blank parts a word from the one in front.
func (t *text) blank() {
	if len(t.dst) > t.start {
		t.dst = append(t.dst, ' ')
	}
}

func (t *text) number(octets int) bool {
	b, ok := t.take(octets)
	if !ok {
		return false
	}
	t.blank()
	t.dst = strconv.AppendUint(t.dst, bigEndian(b), 10)
	return true
}

// bigEndian is the number in b, of at most eight octets.
func bigEndian(b []byte) (v uint64) {
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

func (t *text) name() bool {
	end := wire.UncompressedEnd(t.rest, 0)
	if end < 0 {
		return false
	}
	t.blank()
	t.dst = AppendName(t.dst, t.rest[:end], t.origin)
	t.rest = t.rest[end:]
	return true
}

func (t *text) address(letter byte) bool {
	size := 4
	if letter == 'A' {
		size = 16
	}
	b, ok := t.take(size)
	if !ok {
		return false
	}
	t.blank()
	t.dst = appendAddress(t.dst, b)
	return true
}

// appendAddress appends an address of 4 or 16 octets.
func appendAddress(dst, b []byte) []byte {
	a, _ := netip.AddrFromSlice(b)
	return a.AppendTo(dst)
}

// string writes a character string, between quotes, or bare where its letter says
// what octets it has.
func (t *text) string(letter byte) bool {
	b, ok := t.takeString()
	if !ok {
		return false
	}
	t.blank()
	if letter == 's' {
		t.dst = appendQuoted(t.dst, b)
		return true
	}
	t.dst = append(t.dst, b...)
	return len(b) > 0 && isWord(b, letter)
}

// isWord tells whether b is of digits (d), a decimal number (f), or of letters
// and digits (w).
func isWord(b []byte, letter byte) bool {
	digits, dots := 0, 0
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case letter == 'w' && wire.FoldByte(c) >= 'a' && wire.FoldByte(c) <= 'z':
		case letter == 'f' && c == '-' && i == 0:
		case letter == 'f' && c == '.' && dots == 0:
			dots++
		default:
			return false
		}
	}
	return letter == 'w' || digits > 0
}

func (t *text) strings() bool {
	for first := true; first || len(t.rest) > 0; first = false {
		if !t.string('s') {
			return false
		}
	}
	return true
}

// octets writes all that is left.
func (t *text) octets(letter byte) bool {
	b := t.rest
	t.rest = nil
	t.blank()
	switch letter {
	case 'q':
		t.dst = appendQuoted(t.dst, b)
		return true
	case 'h':
		t.dst = appendHex(t.dst, b)
	case 'b':
		t.dst = base64.StdEncoding.AppendEncode(t.dst, b)
	case 'e':
		for i := range b {
			if i > 0 {
				t.dst = append(t.dst, '-')
			}
			t.dst = appendHex(t.dst, b[i:i+1])
		}
	}
	return len(b) > 0
}

// groups writes an identifier of ILNP (RFC 6742 §2.1.1).
func (t *text) groups() bool {
	b, ok := t.take(8)
	if !ok {
		return false
	}
	t.blank()
	for i := 0; i < 8; i += 2 {
		if i > 0 {
			t.dst = append(t.dst, ':')
		}
		t.dst = appendHex(t.dst, b[i:i+2])
	}
	return true
}

func (t *text) rrType() bool {
	b, ok := t.take(2)
	if !ok {
		return false
	}
	t.blank()
	t.dst = append(t.dst, wire.TypeString(binary.BigEndian.Uint16(b))...)
	return true
}

// moment writes a time of RRSIG (RFC 4034 §3.2), taken to be between 1970 and
// 2106.
func (t *text) moment() bool {
	b, ok := t.take(4)
	if !ok {
		return false
	}
	t.blank()
	at := time.Unix(int64(binary.BigEndian.Uint32(b)), 0).UTC()
	t.dst = at.AppendFormat(t.dst, "20060102150405")
	return true
}

// bitmap writes the types of a type bitmap (RFC 4034 §4.1.2): windows in order,
// none empty, none with zeros at its end. Others would not come back as they are.
func (t *text) bitmap() bool {
	for before := -1; len(t.rest) > 0; {
		head, ok := t.take(2)
		if !ok || int(head[0]) <= before || head[1] > 32 {
			return false
		}
		before = int(head[0])
		bits, ok := t.take(int(head[1]))
		if !ok || len(bits) == 0 || bits[len(bits)-1] == 0 {
			return false
		}
		t.window(before<<8, bits)
	}
	return true
}

func (t *text) window(first int, bits []byte) {
	for i := range 8 * len(bits) {
		if bits[i/8]&(0x80>>(i%8)) != 0 {
			t.blank()
			t.dst = append(t.dst, wire.TypeString(uint16(first+i))...)
		}
	}
}

// nsec3 writes the salt (S), a dash for none, or the hash of the next owner (H),
// for which there is one hash function only (RFC 5155 §3.3).
func (t *text) nsec3(letter byte) bool {
	b, ok := t.takeString()
	if !ok {
		return false
	}
	t.blank()
	switch {
	case letter == 'H':
		const sha1Size = 20
		t.dst = base32.HexEncoding.WithPadding(base32.NoPadding).AppendEncode(t.dst, b)
		return len(b) == sha1Size
	case len(b) == 0:
		t.dst = append(t.dst, '-')
	default:
		t.dst = appendHex(t.dst, b)
	}
	return true
}
