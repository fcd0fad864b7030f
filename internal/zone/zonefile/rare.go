package zonefile

import (
	"bytes"
	"net/netip"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Types that miekg/dns does not know.
const (
	typeDSYNC  = 66
	typeWALLET = 262
	typeCLA    = 263
)

// directRare is direct for types that miekg/dns does not know, or not to the last
// octet.
func (p *parser) directRare() bool {
	switch p.rrtype {
	case dns.TypeCSYNC:
		return p.numbers(4, 2) && p.bitmap()
	case dns.TypeLOC:
		return p.location()
	case dns.TypeURI:
		return p.numbers(2, 2) && p.octets()
	case dns.TypeCAA:
		return p.number(1) && p.tag() && p.octets()
	case dns.TypeAMTRELAY:
		return p.relay()
	case typeDSYNC:
		return p.typeField() && p.numbers(1, 2) && p.nameField()
	}
	return false
}

// octets writes the next token without a length in front.
func (p *parser) octets() bool {
	if k := p.next(); k != wordToken && k != quotedToken {
		return false
	}
	for i := 0; i < len(p.tok); i++ {
		c := p.tok[i]
		if c == '\\' {
			v, width := unescape(p.tok[i:])
			if width == 0 {
				return false
			}
			c, i = v, i+width-1
		}
		p.rd = append(p.rd, c)
	}
	return true
}

// tag writes the next word as a character string of letters and digits (RFC 8659
// §4.1).
func (p *parser) tag() bool {
	if p.next() != wordToken || len(p.tok) > 255 {
		return false
	}
	for _, c := range p.tok {
		if folded := wire.FoldByte(c); !isDigit(c) && (folded < 'a' || folded > 'z') {
			return false
		}
	}
	p.rd = append(append(p.rd, byte(len(p.tok))), p.tok...)
	return true
}

// relay writes RDATA of AMTRELAY (RFC 8777 §4.3).
func (p *parser) relay() bool {
	if !p.numbers(1, 1, 1) {
		return false
	}
	flag, kind := p.rd[1], p.rd[2]
	if flag > 1 {
		return false
	}
	p.rd = append(p.rd[:1], flag<<7|kind)
	switch kind {
	case 0:
		return p.wordIs() && string(p.tok) == "."
	case 1:
		return p.wordIs() && p.ipv4()
	case 2:
		if !p.wordIs() {
			return false
		}
		a, err := netip.ParseAddr(string(p.tok))
		p.rd = append(p.rd, a.AsSlice()...)
		return err == nil && a.Is6() && a.Zone() == ""
	case 3:
		return p.nameField()
	}
	return false
}

// location writes RDATA of LOC whose text is complete: degrees, minutes, seconds
// and direction, twice, altitude, size and two precisions (RFC 1876 §3). The
// slow path, to which shorter text is left, loses thousandths of seconds.
func (p *parser) location() bool {
	var sizes [3]byte
	p.rd = append(p.rd, 0, 0, 0, 0) // version, sizes
	if !p.angle(90, 'N', 'S') || !p.angle(180, 'E', 'W') {
		return false
	}
	altitude, ok := p.metres()
	const below, most = 100_000 * 100, 1<<32 - 1 // altitudes start below the reference
	if altitude += below; !ok || altitude < 0 || altitude > most {
		return false
	}
	p.putNumber(uint64(altitude), 4)
	for i := range sizes {
		cm, ok := p.metres()
		if !ok || cm < 0 {
			return false
		}
		exponent := byte(0)
		for ; cm > 9 && cm%10 == 0; cm /= 10 {
			exponent++
		}
		if cm > 9 || exponent > 9 {
			return false
		}
		p.rd[1+i] = byte(cm)<<4 | exponent
	}
	return true
}

// angle writes the next four words as thousandths of seconds of arc from the
// equator or the prime meridian.
func (p *parser) angle(most int64, plus, minus byte) bool {
	var parts [3]int64
	for i, decimals := range [3]int{0, 0, 3} {
		if p.next() != wordToken {
			return false
		}
		v, ok := fixedPoint(p.tok, decimals)
		if parts[i] = v; !ok {
			return false
		}
	}
	if p.next() != wordToken || len(p.tok) != 1 || parts[1] > 59 || parts[2] > 59_999 {
		return false
	}
	off := (parts[0]*60+parts[1])*60_000 + parts[2]
	if off > most*3_600_000 {
		return false
	}
	switch p.tok[0] {
	case plus:
	case minus:
		off = -off
	default:
		return false
	}
	p.putNumber(uint64(1<<31+off), 4)
	return true
}

// metres reads the next word as a length in centimetres.
func (p *parser) metres() (cm int64, ok bool) {
	if p.next() != wordToken {
		return 0, false
	}
	text, negative := bytes.CutPrefix(p.tok, []byte("-"))
	text = bytes.TrimSuffix(text, []byte("m"))
	cm, ok = fixedPoint(text, 2)
	if negative {
		cm = -cm
	}
	return cm, ok
}

// fixedPoint reads digits and at most so many decimals, in units of the last one.
func fixedPoint(text []byte, decimals int) (v int64, ok bool) {
	whole, fraction, _ := bytes.Cut(text, []byte("."))
	if len(whole) == 0 || len(whole) > 10 || len(fraction) > decimals {
		return 0, false
	}
	for i := range len(whole) + decimals {
		c := byte('0')
		switch at := i - len(whole); {
		case at < 0:
			c = whole[i]
		case at < len(fraction):
			c = fraction[at]
		}
		if !isDigit(c) {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return v, true
}
