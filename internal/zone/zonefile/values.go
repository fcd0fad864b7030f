package zonefile

import (
	"bytes"
	"encoding/binary"

	"github.com/waymark-dns/waymark/internal/wire"
)

// ipv4 writes the last token as an IPv4 address: four numbers without leading
// zeros.
func (p *parser) ipv4() bool {
	value, digits, dots := 0, 0, 0
	for _, c := range p.tok {
		switch {
		case isDigit(c):
			if digits > 0 && value == 0 {
				return false
			}
			value, digits = value*10+int(c-'0'), digits+1
			if value > 255 {
				return false
			}
		case c == '.' && digits > 0 && dots < 3:
			p.rd = append(p.rd, byte(value))
			value, digits, dots = 0, 0, dots+1
		default:
			return false
		}
	}
	p.rd = append(p.rd, byte(value))
	return dots == 3 && digits > 0
}

// ipv6 writes the last token as an IPv6 address of hexadecimal groups; those
// that end as IPv4 addresses do are left to the slow path.
func (p *parser) ipv6() bool {
	var groups [8]uint16
	head, tail, gap := bytes.Cut(p.tok, doubleColon)
	n, ok := hexGroups(&groups, 0, head, gap)
	if !gap {
		p.groups(groups[:])
		return ok && n == len(groups)
	}
	all, tailOK := hexGroups(&groups, n, tail, true)
	if !ok || !tailOK || all == len(groups) {
		return false
	}
	p.groups(groups[:n])
	for range 2 * (len(groups) - all) {
		p.rd = append(p.rd, 0)
	}
	p.groups(groups[n:all])
	return true
}

var doubleColon = []byte("::")

func (p *parser) groups(groups []uint16) {
	for _, g := range groups {
		p.rd = binary.BigEndian.AppendUint16(p.rd, g)
	}
}

// hexGroups reads groups with colons between into g, behind the n that are
// there.
func hexGroups(g *[8]uint16, n int, b []byte, mayBeEmpty bool) (int, bool) {
	if len(b) == 0 {
		return n, mayBeEmpty
	}
	for {
		value, width := hexGroup(b)
		if width == 0 || n == len(g) {
			return 0, false
		}
		g[n] = value
		n++
		if width == len(b) {
			return n, true
		}
		if b[width] != ':' {
			return 0, false
		}
		b = b[width+1:]
	}
}

// hexGroup reads one to four hexadecimal digits.
func hexGroup(b []byte) (value uint16, width int) {
	for width < len(b) && width < 5 {
		c := b[width]
		switch {
		case isDigit(c):
			c -= '0'
		case wire.FoldByte(c)-'a' < 6:
			c = wire.FoldByte(c) - 'a' + 10
		default:
			return value, width
		}
		if width == 4 {
			return 0, 0
		}
		value, width = value<<4|uint16(c), width+1
	}
	return value, width
}

// moment writes the next word as a moment of an RRSIG: YYYYMMDDHHmmSS or
// seconds (RFC 4034 §3.2).
func (p *parser) moment() bool {
	if p.next() != wordToken {
		return false
	}
	if len(p.tok) != 14 {
		v, ok := decimal(p.tok)
		if !ok || v>>32 != 0 {
			return false
		}
		p.putNumber(v, 4)
		return true
	}
	seconds, ok := calendar(p.tok)
	p.putNumber(uint64(uint32(seconds)), 4) // RFC 4034 §3.1.5: modulo 2^32
	return ok
}

// calendar is the seconds since 1970 that YYYYMMDDHHmmSS tells.
func calendar(text []byte) (seconds int64, ok bool) {
	var f [7]int
	for i := range f {
		a, b := text[2*i]-'0', text[2*i+1]-'0'
		if a > 9 || b > 9 {
			return 0, false
		}
		f[i] = int(a)*10 + int(b)
	}
	year, month, day, hour, minute, second := f[0]*100+f[1], f[2], f[3], f[4], f[5], f[6]
	if year < 1970 || month < 1 || month > 12 || day < 1 || day > monthDays(year, month) {
		return 0, false
	}
	ok = hour < 24 && minute < 60 && second < 60
	return int64(daysSince1970(year, month, day))*86400 + int64(hour*3600+minute*60+second), ok
}

func monthDays(year, month int) int {
	if month == 2 {
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 30 + (month+month/8)%2
}

// daysSince1970 counts in years that start in March, so that leap days come
// last.
func daysSince1970(year, month, day int) int {
	if month < 3 {
		year--
		month += 12
	}
	return 365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 719469
}
