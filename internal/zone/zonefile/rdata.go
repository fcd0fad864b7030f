package zonefile

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

// rdata parses the RDATA of the record at hand into p.rd, up to the record's
// end. The direct path below knows the plain text of common types only; what
// it does not know, right or wrong, is read again by miekg/dns.
func (p *parser) rdata() error {
	mark := p.tokens
	p.rd = p.rd[:0]
	if !p.slow && p.direct() && len(p.rd) <= maxRDATA && p.next() == endToken {
		return nil
	}
	p.tokens = mark
	return p.anyRDATA()
}

// direct parses RDATA of the common types. It tells whether it understood all
// of it; the record's end has not been read then.
func (p *parser) direct() bool {
	switch p.rrtype {
	case dns.TypeA:
		return p.wordIs() && p.ipv4()
	case dns.TypeAAAA:
		return p.wordIs() && p.ipv6()
	case dns.TypeNS, dns.TypeCNAME, dns.TypePTR, dns.TypeDNAME:
		return p.nameField()
	case dns.TypeMX:
		return p.number(2) && p.nameField()
	case dns.TypeSRV:
		return p.numbers(2, 2, 2) && p.nameField()
	case dns.TypeTXT, dns.TypeSPF, dns.TypeISDN, typeWALLET, typeCLA:
		return p.strings()
	case dns.TypeSOA:
		return p.nameFields(2) && p.number(4) && p.times()
	case dns.TypeDS, dns.TypeCDS:
		return p.numbers(2, 1, 1) && p.hexRest()
	case dns.TypeDNSKEY, dns.TypeCDNSKEY:
		return p.numbers(2, 1, 1) && p.base64Rest()
	case dns.TypeRRSIG, dns.TypeSIG:
		return p.typeField() && p.numbers(1, 1, 4) &&
			p.moment() && p.moment() && p.number(2) && p.nameField() && p.base64Rest()
	case dns.TypeNSEC:
		return p.nameField() && p.bitmap()
	case dns.TypeNSEC3:
		return p.numbers(1, 1, 2) && p.salt() && p.hash() && p.bitmap()
	case dns.TypeNSEC3PARAM:
		return p.numbers(1, 1, 2) && p.salt()
	case dns.TypeTLSA:
		return p.numbers(1, 1, 1) && p.hexRest()
	case dns.TypeSSHFP:
		return p.numbers(1, 1) && p.hexRest()
	}
	return p.directRare()
}

// generic is the word that starts RDATA in the form for unknown types.
const generic = `\#`

func (p *parser) wordIs() bool { return p.next() == wordToken }

// nameField writes the next word as a name.
func (p *parser) nameField() bool {
	if p.next() != wordToken || string(p.tok) == generic || p.name.parse(p.tok, p.st.origin) != nil {
		return false
	}
	p.rd = append(p.rd, p.name.name()...)
	return true
}

// nameFields writes the next n words as names.
func (p *parser) nameFields(n int) bool {
	for range n {
		if !p.nameField() {
			return false
		}
	}
	return true
}

// numbers writes the next words as numbers of that many octets each.
func (p *parser) numbers(octets ...int) bool {
	for _, n := range octets {
		if !p.number(n) {
			return false
		}
	}
	return true
}

// number writes the next word as an unsigned number of size octets.
func (p *parser) number(size int) bool {
	if p.next() != wordToken {
		return false
	}
	v, ok := decimal(p.tok)
	if !ok || v>>(8*size) != 0 {
		return false
	}
	p.putNumber(v, size)
	return true
}

func (p *parser) putNumber(v uint64, size int) {
	for shift := 8 * (size - 1); shift >= 0; shift -= 8 {
		p.rd = append(p.rd, byte(v>>shift))
	}
}

// decimal reads a number of at most 10 digits.
func decimal(b []byte) (v uint64, ok bool) {
	if len(b) == 0 || len(b) > 10 {
		return 0, false
	}
	for _, c := range b {
		if !isDigit(c) {
			return 0, false
		}
		v = v*10 + uint64(c-'0')
	}
	return v, true
}

// times writes the four times of an SOA record.
func (p *parser) times() bool {
	for range 4 {
		if p.next() != wordToken {
			return false
		}
		v, ok := parseTTL(p.tok)
		if !ok {
			return false
		}
		p.putNumber(uint64(v), 4)
	}
	return true
}

// typeField writes the next word, the name of a type, as its number.
func (p *parser) typeField() bool {
	if p.next() != wordToken {
		return false
	}
	t, ok := typeByName(p.tok)
	p.putNumber(uint64(t), 2)
	return ok
}

// words joins the words up to the record's end in p.scratch, of which there
// must be one at least. The end is read but can be read again.
func (p *parser) words() bool {
	p.scratch = p.scratch[:0]
	for {
		mark := p.tokens
		switch p.next() {
		case wordToken:
			p.scratch = append(p.scratch, p.tok...)
		case endToken:
			p.tokens = mark
			return len(p.scratch) > 0
		default:
			return false
		}
	}
}

func (p *parser) hexRest() bool {
	if !p.words() {
		return false
	}
	var err error
	p.rd, err = hex.AppendDecode(p.rd, p.scratch)
	return err == nil
}

func (p *parser) base64Rest() bool {
	if !p.words() {
		return false
	}
	var err error
	p.rd, err = base64.StdEncoding.AppendDecode(p.rd, p.scratch)
	return err == nil
}

// salt writes the next word as an NSEC3 salt with its length, - for none.
func (p *parser) salt() bool {
	if p.next() != wordToken {
		return false
	}
	if string(p.tok) == "-" {
		p.rd = append(p.rd, 0)
		return true
	}
	if len(p.tok) > 510 {
		return false
	}
	var err error
	p.rd = append(p.rd, byte(len(p.tok)/2))
	p.rd, err = hex.AppendDecode(p.rd, p.tok)
	return err == nil
}

var base32Hex = base32.HexEncoding.WithPadding(base32.NoPadding)

// hash writes the next word as the hash of the next owner of an NSEC3 record,
// with its length.
func (p *parser) hash() bool {
	if p.next() != wordToken || len(p.tok) != 32 {
		return false
	}
	p.scratch = p.scratch[:0]
	for _, c := range p.tok {
		if wire.FoldByte(c)-'a' < 26 {
			c = wire.FoldByte(c) - 32
		}
		p.scratch = append(p.scratch, c)
	}
	var err error
	p.rd = append(p.rd, 20)
	start := len(p.rd)
	p.rd, err = base32Hex.AppendDecode(p.rd, p.scratch)
	return err == nil && len(p.rd) == start+20 // encoding/base32 takes a byte 255 for padding
}

// bitmap writes the names of types up to the record's end as a type bitmap
// (RFC 4034 §4.1.2).
func (p *parser) bitmap() bool {
	p.types = p.types[:0]
	for {
		mark := p.tokens
		switch p.next() {
		case wordToken:
			t, ok := typeByName(p.tok)
			if !ok {
				return false
			}
			p.types = append(p.types, t)
		case endToken:
			p.tokens = mark
			slices.Sort(p.types)
			p.rd = appendBitmap(p.rd, p.types)
			return true
		default:
			return false
		}
	}
}

// appendBitmap writes sorted types as a type bitmap.
func appendBitmap(dst []byte, types []uint16) []byte {
	for i := 0; i < len(types); {
		window, start := types[i]>>8, len(dst)
		dst = append(dst, byte(window), 0)
		for ; i < len(types) && types[i]>>8 == window; i++ {
			at := int(types[i]&0xff) / 8
			for len(dst)-start-2 <= at {
				dst = append(dst, 0)
			}
			dst[start+2+at] |= 0x80 >> (types[i] % 8)
		}
		dst[start+1] = byte(len(dst) - start - 2)
	}
	return dst
}

// strings writes the tokens up to the record's end as character strings.
func (p *parser) strings() bool {
	count := 0
	for {
		mark := p.tokens
		switch p.next() {
		case wordToken, quotedToken:
			if string(p.tok) == generic || !p.charString(p.tok) {
				return false
			}
			count++
		case endToken:
			p.tokens = mark
			return count > 0
		default:
			return false
		}
	}
}

// charString writes text as character strings: one, or, as text of more than
// 255 octets cannot be one, as many as it takes.
func (p *parser) charString(text []byte) bool {
	start := len(p.rd)
	p.rd = append(p.rd, 0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' {
			v, width := unescape(text[i:])
			if width == 0 {
				return false
			}
			c, i = v, i+width-1
		}
		if len(p.rd)-start == 256 {
			p.rd[start] = 255
			start = len(p.rd)
			p.rd = append(p.rd, 0)
			p.warnSplit()
		}
		p.rd = append(p.rd, c)
	}
	p.rd[start] = byte(len(p.rd) - start - 1)
	return true
}

// warnSplit warns once per string of more than 255 octets.
func (p *parser) warnSplit() {
	list := p.c.found.list
	if n := len(list); n > 0 && list[n-1].Text == longString && list[n-1].Line == p.gotAt && list[n-1].Column == p.column {
		return
	}
	p.problem(Warning, longString, "split it into strings of at most 255 octets")
}

const longString = "string of more than 255 octets is split"

// maxRDATA is the most that the length field of a record can tell (RFC 1035
// §3.2.1).
const maxRDATA = 65535
