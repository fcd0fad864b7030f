package zonefile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

// classIN is the only class a zone may have, and what a record has that names none.
const classIN = 1

// record parses a record or a line of blanks and comments. Done is false when
// the line's end was not reached; err may be nil then, if the problem has been
// noted already.
func (p *parser) record() (done bool, err error) {
	line := p.line
	if byteClass[p.b[p.i]] == delimiter {
		k := p.next()
		if k == endToken {
			return true, nil
		}
		if p.st.owner == nil {
			return false, &syntaxError{"record without an owner", "start the line with a name"}
		}
		if err := p.header(k); err != nil {
			return false, err
		}
	} else {
		p.word(p.i)
		if err := p.owner(); err != nil {
			return false, err
		}
		if err := p.header(p.next()); err != nil {
			return false, err
		}
	}
	if err := p.rdata(); err != nil {
		return false, err
	}
	p.add(line)
	return true, nil
}

// owner takes the last token as the owner of this and the next records.
func (p *parser) owner() error {
	if err := p.name.parse(p.tok, p.st.origin); err != nil {
		p.st.owner = nil
		return fmt.Errorf("owner %q %w", p.tok, err)
	}
	n := p.name.name()
	p.st.owner = p.c.keep(n)
	p.inZone = p.apex == nil || n.Under(p.apex)
	if !p.inZone {
		p.problem(Error, fmt.Sprintf("%s is out of the zone %s", n.String(), p.apex.String()),
			"move it to its own zone, or check $ORIGIN and the dot at the end of the name")
	}
	return nil
}

// header parses TTL, class and type, in any order that RFC 1035 §5.1 allows,
// of which the first token has been read.
func (p *parser) header(k kind) error {
	p.ttl, p.ttlSet = p.st.ttl, false
	p.class = classIN
	class := false
	for ; k == wordToken; k = p.next() {
		switch {
		case isDigit(p.tok[0]) && !p.ttlSet:
			ttl, ok := parseTTL(p.tok)
			if !ok {
				return badTTL(p.tok)
			}
			p.setTTL(ttl)
		case sameWord(p.tok, "IN") && !class:
			class = true
		case p.classes && !class && p.otherClass():
			class = true
		default:
			return p.rrType()
		}
	}
	return p.unfinished(k, "no type of record", "a record is: owner TTL IN type RDATA")
}

// otherClass takes the last token as the class, where it is one.
func (p *parser) otherClass() bool {
	upper := strings.ToUpper(string(p.tok))
	if number, ok := strings.CutPrefix(upper, "CLASS"); ok { // RFC 3597 §5
		n, err := strconv.ParseUint(number, 10, 16)
		p.class = uint16(n)
		return err == nil
	}
	n, ok := dns.StringToClass[upper]
	if upper == "ANY" || upper == "NONE" || !ok { // of questions and updates; ANY may be a type as well
		return false
	}
	p.class = n
	return true
}

// unfinished is the error for a record that ends with a token of kind k where
// more was due.
func (p *parser) unfinished(k kind, text, mend string) error {
	switch k {
	case quotedToken:
		return &syntaxError{fmt.Sprintf("%s before %q", text, p.tok), mend}
	case badToken:
		return &syntaxError{fmt.Sprintf("%q without its counterpart", p.tok), "balance parentheses and quotes"}
	}
	return &syntaxError{text, mend}
}

func (p *parser) setTTL(ttl uint32) {
	if ttl >= 1<<31 {
		p.problem(Warning, "TTL with the top bit set counts as 0", "write at most 2147483647")
	}
	p.ttl, p.ttlSet = clampTTL(ttl), true
	p.c.lastTTL, p.c.statedTTL = p.ttl, true
}

// rrType takes the last token as the type.
func (p *parser) rrType() error {
	t, ok := typeByName(p.tok)
	if !ok {
		return badType(p.tok)
	}
	if t == 0 || t == dns.TypeOPT || t >= 128 && t <= 255 {
		return &syntaxError{fmt.Sprintf("%s cannot be in a zone", typeName(t)), "remove it: it exists in messages only"}
	}
	p.rrtype = t
	return nil
}

func badType(tok []byte) error {
	upper := strings.ToUpper(string(tok))
	if _, class := dns.StringToClass[upper]; class || strings.HasPrefix(upper, "CLASS") {
		return &syntaxError{"class " + upper + " is not served", "use class IN"}
	}
	return &syntaxError{strconv.Quote(string(tok)) + " is neither TTL, class nor type",
		`types without a name are written TYPE65280 with RDATA \# length hex`}
}

// typeByName knows the names of types; the common ones first, without a look
// into the table of all.
func typeByName(tok []byte) (uint16, bool) {
	switch string(tok) {
	case "A":
		return dns.TypeA, true
	case "AAAA":
		return dns.TypeAAAA, true
	case "NS":
		return dns.TypeNS, true
	case "CNAME":
		return dns.TypeCNAME, true
	case "MX":
		return dns.TypeMX, true
	case "TXT":
		return dns.TypeTXT, true
	case "RRSIG":
		return dns.TypeRRSIG, true
	case "NSEC":
		return dns.TypeNSEC, true
	case "NSEC3":
		return dns.TypeNSEC3, true
	case "DS":
		return dns.TypeDS, true
	case "PTR":
		return dns.TypePTR, true
	case "SRV":
		return dns.TypeSRV, true
	}
	upper := strings.ToUpper(string(tok))
	if number, ok := strings.CutPrefix(upper, "TYPE"); ok {
		n, err := strconv.ParseUint(number, 10, 16)
		return uint16(n), err == nil
	}
	if t, ok := dns.StringToType[upper]; ok {
		return t, true
	}
	t, err := wire.ParseType(upper)
	return t, err == nil
}

// typeName is the name of a type, TYPE123 for one without.
func typeName(t uint16) string { return dns.Type(t).String() }

// add puts the record that was just parsed into the chunk.
func (p *parser) add(line int) {
	if !p.inZone {
		return
	}
	c := p.c
	if p.st.sameLine {
		line = c.start.line
	}
	known := p.ttlSet || p.st.hasTTL
	if !known && c.statedTTL {
		p.ttl, known = c.lastTTL, true
	}
	if !known {
		c.pending = len(c.records) + 1
	}
	c.records = append(c.records, Record{
		Owner: p.st.owner, Type: p.rrtype, Class: p.class, TTL: p.ttl,
		RDATA: c.keep(p.rd), File: p.st.file, Line: line,
	})
}
