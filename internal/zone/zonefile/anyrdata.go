package zonefile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

// anyRDATA parses RDATA of any type, through miekg/dns.
func (p *parser) anyRDATA() error {
	k := p.next()
	if k == wordToken && string(p.tok) == generic {
		return p.unknownRDATA()
	}
	if k == endToken && p.rrtype == dns.TypeAPL {
		p.rd = p.rd[:0]
		return nil // RFC 3123 §4: a list may be empty
	}
	if k != wordToken && k != quotedToken {
		return p.unfinished(k, typeName(p.rrtype)+" record without RDATA", rdataMend(p.rrtype))
	}
	first := p.tokens
	if err := p.collect(k); err != nil {
		return err
	}
	end := p.tokens
	if err := p.parseRest(); err != nil {
		p.tokens = first // the problem points at the RDATA's start
		return err
	}
	p.tokens = end
	return nil
}

// collect puts the tokens up to the record's end into p.rest, on one line,
// without comments and parentheses. The first, of kind k, has been read.
func (p *parser) collect(k kind) error {
	p.rest = p.rest[:0]
	for ; k != endToken; k = p.next() {
		if !p.glued && len(p.rest) > 0 {
			p.rest = append(p.rest, ' ')
		}
		switch k {
		case wordToken:
			p.rest = appendWord(p.rest, p.tok)
		case quotedToken:
			p.rest = append(append(append(p.rest, '"'), p.tok...), '"')
		default:
			return p.unfinished(k, "", "")
		}
	}
	return nil
}

// appendWord appends a word with its escapes of marks as \DDD: miekg/dns does not see
// the end of a word that is nothing else.
func appendWord(dst, word []byte) []byte {
	for i := 0; i < len(word); i++ {
		c := word[i]
		dst = append(dst, c)
		if c != '\\' || i+1 == len(word) {
			continue
		}
		i++
		switch c = word[i]; c {
		case '\\', '"', '(', ')', ';':
			dst = append(dst, '0'+c/100, '0'+c/10%10, '0'+c%10)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// parseRest turns p.rest into RDATA.
func (p *parser) parseRest() error {
	bad := func(reason string) error {
		return &syntaxError{fmt.Sprintf("RDATA of %s record: %s", typeName(p.rrtype), reason), rdataMend(p.rrtype)}
	}
	if dns.TypeToRR[p.rrtype] == nil {
		return bad("has no presentation format that is known")
	}
	// collect put one blank between two words; one inside a string counts too much.
	if bytes.Count(p.rest, []byte{' '})+1 < fewestWords(p.rrtype) {
		return bad("it ends too early")
	}
	text := ". 0 IN " + typeName(p.rrtype) + " " + string(p.rest) + "\n"
	origin := ""
	if len(p.st.origin) > 0 {
		origin = p.st.origin.String()
	}
	zp := dns.NewZoneParser(strings.NewReader(text), origin, "")
	rr, _ := zp.Next()
	if err := zp.Err(); err != nil {
		return bad(reasonOf(err))
	}
	if rr == nil {
		return bad("is empty")
	}
	wireText, err := packRDATA(rr, len(p.rest))
	if err != nil {
		return bad(reasonOf(err))
	}
	p.rd = append(p.rd[:0], wireText...)
	return p.wellFormed()
}

// fewestWords is how many words RDATA of a type has at least. miekg/dns takes
// some that are cut short and makes zeros of what is missing.
func fewestWords(t uint16) int {
	switch t {
	case dns.TypeSIG, dns.TypeRRSIG:
		return 9
	case dns.TypeSOA:
		return 7
	case dns.TypeNAPTR:
		return 6
	case dns.TypeNSEC3: // without a type at an empty non-terminal
		return 5
	case dns.TypeDS, dns.TypeCDS, dns.TypeDLV, dns.TypeTA, dns.TypeKEY, dns.TypeDNSKEY, dns.TypeCDNSKEY, dns.TypeTLSA,
		dns.TypeSMIMEA, dns.TypeCERT, dns.TypeNSEC3PARAM, dns.TypeSRV, dns.TypeZONEMD, dns.TypeIPSECKEY:
		return 4
	case dns.TypeSSHFP, dns.TypePX, dns.TypeCAA, dns.TypeURI, dns.TypeHIP, dns.TypeGPOS:
		return 3
	case dns.TypeMX, dns.TypeRP, dns.TypeMINFO, dns.TypeHINFO, dns.TypeKX, dns.TypeAFSDB, dns.TypeRT, dns.TypeNID, dns.TypeL32,
		dns.TypeL64, dns.TypeLP, dns.TypeSVCB, dns.TypeHTTPS, dns.TypeCSYNC, dns.TypeTALINK:
		return 2
	}
	return 1
}

// packRDATA is the RDATA of rr in wire format, names uncompressed. Size is a
// guess from the length of the text.
func packRDATA(rr dns.RR, size int) ([]byte, error) {
	buf := make([]byte, min(maxRDATA+300, 2*size+1024))
	end, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil && len(buf) < maxRDATA {
		buf = make([]byte, maxRDATA+300)
		end, err = dns.PackRR(rr, buf, 0, nil, false)
	}
	if err != nil {
		return nil, err
	}
	const fixed = 10 // type, class, TTL, length
	_, off, err := dns.UnpackDomainName(buf, 0)
	if err != nil {
		return nil, err
	}
	return buf[off+fixed : end], nil
}

// reasonOf takes the position and prefix of miekg/dns off an error: they are
// those of the line that was made for it.
func reasonOf(err error) string {
	s := strings.TrimPrefix(err.Error(), "dns: ")
	if i := strings.LastIndex(s, " at line: "); i >= 0 {
		s = s[:i]
	}
	if what, token, ok := strings.Cut(s, ": "); ok && strings.HasPrefix(what, "bad ") {
		if token == `"\n"` {
			return "it ends too early"
		}
		return token + " is not understood"
	}
	return s
}

// unknownRDATA parses the generic form \# length hex (RFC 3597 §5), of which
// the first word has been read. It is allowed for known types too, and must be
// RDATA of that type then.
func (p *parser) unknownRDATA() error {
	first := p.tokens
	const mend = `write \# length hex, as \# 4 c0000201`
	if p.next() != wordToken {
		return &syntaxError{`\# without a length`, mend}
	}
	length, ok := decimal(p.tok)
	if !ok || length > maxRDATA {
		return &syntaxError{fmt.Sprintf("length %q of RDATA", p.tok), mend}
	}
	p.rd = p.rd[:0]
	if !p.words() && (length > 0 || len(p.scratch) > 0) {
		return &syntaxError{"RDATA is missing", mend}
	}
	var err error
	if p.rd, err = hex.AppendDecode(p.rd, p.scratch); err != nil {
		return &syntaxError{"RDATA is not hexadecimal digits in pairs", mend}
	}
	if len(p.rd) != int(length) {
		return &syntaxError{fmt.Sprintf("RDATA of %d octets where %d are announced", len(p.rd), length), mend}
	}
	if p.next() != endToken {
		return &syntaxError{fmt.Sprintf("%q behind RDATA", p.tok), mend}
	}
	end := p.tokens
	p.tokens = first
	if err := p.wellFormed(); err != nil && (!p.opaque || !wire.CheckRDATA(p.rrtype, p.rd)) {
		return err
	}
	p.tokens = end
	return nil
}

// wellFormed checks p.rd against the layout of its type: read and written
// again it must be the same. That also refuses compressed names (RFC 3597 §4).
func (p *parser) wellFormed() error {
	bad := &syntaxError{fmt.Sprintf("RDATA of %d octets is not that of a %s record", len(p.rd), typeName(p.rrtype)), rdataMend(p.rrtype)}
	if dns.TypeToRR[p.rrtype] == nil || changed(p.rrtype) {
		if !wire.CheckRDATA(p.rrtype, p.rd) {
			return bad
		}
		return nil
	}
	if len(p.rd) == 0 {
		if p.rrtype == dns.TypeAPL {
			return nil
		}
		return bad
	}
	rr, off, err := dns.UnpackRRWithHeader(dns.RR_Header{
		Name: ".", Rrtype: p.rrtype, Class: dns.ClassINET, Rdlength: uint16(len(p.rd)),
	}, p.rd, 0)
	if err != nil || off != len(p.rd) {
		return bad
	}
	again, err := packRDATA(rr, len(p.rd))
	if err != nil || !bytes.Equal(again, p.rd) {
		return bad
	}
	return nil
}

// changed tells whether miekg/dns makes other RDATA of sound RDATA of a type: it
// adds the subaddress of ISDN that may be left out (RFC 1183 §3.2), loses the relay
// behind the flag of AMTRELAY, and takes backslashes in CAA and URI for escapes.
func changed(t uint16) bool {
	switch t {
	case dns.TypeNULL, dns.TypeISDN, dns.TypeAMTRELAY, dns.TypeCAA, dns.TypeURI:
		return true
	}
	return false
}

// rdataMend says what RDATA of a type looks like.
func rdataMend(t uint16) string {
	switch t {
	case dns.TypeA:
		return "write an IPv4 address, as 192.0.2.1"
	case dns.TypeAAAA:
		return "write an IPv6 address, as 2001:db8::1"
	case dns.TypeNS, dns.TypeCNAME, dns.TypePTR, dns.TypeDNAME:
		return "write one name"
	case dns.TypeMX:
		return "write preference and name, as 10 mail"
	case dns.TypeSRV:
		return "write priority, weight, port and name, as 0 5 5060 sip"
	case dns.TypeTXT:
		return `write one or more strings, as "text"`
	case dns.TypeSOA:
		return "write primary, mailbox, serial, refresh, retry, expire and minimum"
	case dns.TypeCAA:
		return `write flags, tag and value, as 0 issue "ca.example.net"`
	case dns.TypeDS, dns.TypeCDS:
		return "write key tag, algorithm, digest type and digest in hexadecimal"
	case dns.TypeDNSKEY, dns.TypeCDNSKEY:
		return "write flags, protocol 3, algorithm and key in base64"
	case dns.TypeRRSIG:
		return "write type, algorithm, labels, TTL, expiration, inception, key tag, signer and signature in base64"
	case dns.TypeSVCB, dns.TypeHTTPS:
		return "write priority, target and parameters, as 1 . alpn=h2"
	}
	return ""
}

// soaMinimum is the last field of an SOA record.
func soaMinimum(rec *Record) (uint32, bool) {
	if rec.Type != dns.TypeSOA || len(rec.RDATA) < 22 {
		return 0, false
	}
	return binary.BigEndian.Uint32(rec.RDATA[len(rec.RDATA)-4:]), true
}
