package store

import (
	"bytes"
	"fmt"

	"github.com/waymark-dns/waymark/internal/wire"
)

// maxFaults is the most faults that are told of one zone.
const maxFaults = 100

// fault is one thing that a zone as a whole must not have.
type fault struct {
	line int // of the name's first record, 0 where there is none
	text string
	mend string
}

// rules judges a zone whose sets come in order. The zero value is ready once apex
// is set.
type rules struct {
	apex   wire.Name
	faults []fault
	more   bool // there are more than are kept

	name    wire.Name // at hand
	line    int
	started bool
	alias   bool // it has CNAME
	other   bool // it has what may not stand beside CNAME
	apexNS  bool
}

func (r *rules) fault(text, mend string) {
	if len(r.faults) == maxFaults {
		r.more = true
		return
	}
	r.faults = append(r.faults, fault{r.line, text, mend})
}

// take judges the next set. Nothing of it is kept.
func (r *rules) take(s *set, line int) {
	if !r.started || !wire.EqualFold(r.name, s.name) {
		r.leave()
		r.started, r.line = true, line
		r.name = append(r.name[:0], s.name...)
		r.alias, r.other = false, false
	}
	atApex := len(s.name) == 1
	switch s.typ {
	case wire.TypeSOA:
		r.other = true
		if !atApex {
			r.fault(r.text("has an SOA record but is not the apex"), "make it a zone of its own")
		}
	case wire.TypeNS:
		r.apexNS = r.apexNS || atApex
		r.other = true
	case wire.TypeCNAME:
		r.alias = true
		r.single(s, "RFC 2181 section 10.1")
	case wire.TypeDNAME:
		r.other = true
		r.single(s, "RFC 6672 section 2.4")
	case wire.TypeRRSIG, wire.TypeNSEC: // RFC 4034 §2.5: these may stand beside CNAME
	default:
		r.other = true
	}
}

// single judges a type of which a name has one record.
func (r *rules) single(s *set, rfc string) {
	if countRecords(s.body) > 1 {
		r.fault(r.text("has more than one "+wire.TypeString(s.typ)+" record"), "keep one ("+rfc+")")
	}
}

func (r *rules) text(what string) string {
	return fmt.Sprintf("%s %s", appendOwner(nil, r.name, r.apex), what)
}

// leave judges the name at hand as a whole.
func (r *rules) leave() {
	if r.started && r.alias && r.other {
		r.fault(r.text("has a CNAME record and others beside it"), "keep either (RFC 1034 section 3.6.2)")
	}
}

// end judges the last name, and the zone. It tells whether all is well.
func (r *rules) end() bool {
	r.leave()
	if !r.apexNS {
		r.line, r.name = 0, append(r.name[:0], 0)
		r.fault(r.text("has no NS record"), "name the zone's servers at its apex")
	}
	return len(r.faults) == 0
}

// inZones tells whether records of that type may be in a zone: those from 128 to
// 255 are of queries and messages only (RFC 6895 §3.1).
func inZones(typ uint16) bool {
	return typ != 0 && typ != wire.TypeOPT && (typ < 128 || typ > 255)
}

// sameFolded tells whether two RDATA are the same record where letters in names do
// not count.
func sameFolded(typ uint16, a, b []byte) bool {
	switch typ {
	case wire.TypeNS, wire.TypeCNAME, wire.TypePTR, wire.TypeDNAME, wire.TypeMX, wire.TypeSRV, wire.TypeSOA:
		return wire.EqualFold(a, b)
	}
	return bytes.Equal(a, b)
}
