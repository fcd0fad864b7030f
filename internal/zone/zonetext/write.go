package zonetext

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/waymark-dns/waymark/internal/wire"
)

// RRset is records of one owner and type that have one TTL. Records of RRSIG may
// have several: they come as several RRsets.
type RRset struct {
	Owner wire.Name // absolute, well formed
	Type  uint16
	TTL   uint32   // seconds; 2^31 and more count as 0 (RFC 2181 §8)
	RDATA [][]byte // uncompressed
}

// Errors of Write.
var (
	ErrNoSOA = errors.New("zone does not begin with the SOA record of its apex")
	ErrOrder = errors.New("records do not come in canonical order")
)

// Columns of a line, from 0. Owners of 23 octets and most types leave them
// straight; what is longer moves the rest of its line.
const (
	ttlColumn   = 24
	classColumn = 32
	typeColumn  = 35
	rdataColumn = 43
)

// flushSize is the octets that are gathered before they are written. Larger makes
// no difference to a file.
const flushSize = 64 << 10

// Write writes a whole zone: $ORIGIN, $TTL, which is the TTL of the SOA record,
// and the records in the order they come, in columns, names relative to the apex.
// The SOA record comes first, else ErrNoSOA; the others follow by owner in
// canonical order (RFC 4034 §6.1), then by type, else ErrOrder. An RRset is used
// until the next is asked for. The first error of sets or of w ends it; some of the
// zone has been written then.
func Write(w io.Writer, apex wire.Name, sets iter.Seq2[RRset, error]) error {
	z := writer{w: w, apex: apex, line: make([]byte, 0, flushSize+4<<10)}
	for set, err := range sets {
		if err == nil {
			err = z.add(&set)
		}
		if err != nil {
			return fmt.Errorf("writing zone %s: %w", apex, err)
		}
	}
	err := ErrNoSOA
	if z.begun {
		_, err = w.Write(z.line)
	}
	if err != nil {
		return fmt.Errorf("writing zone %s: %w", apex, err)
	}
	return nil
}

// writer is a zone being written.
type writer struct {
	w     io.Writer
	apex  wire.Name
	line  []byte // what is not written yet
	begun bool
	ttl   uint32 // of $TTL

	owner wire.Name // of the last record
	typ   uint16
}

func (z *writer) add(s *RRset) error {
	switch {
	case !z.begun:
		if s.Type != wire.TypeSOA || !wire.EqualFold(s.Owner, z.apex) || len(s.RDATA) == 0 {
			return ErrNoSOA
		}
		z.begin(s)
		return nil
	case z.outOfOrder(s):
		return fmt.Errorf("adding %s %s: %w", s.Owner, wire.TypeString(s.Type), ErrOrder)
	}
	for _, rdata := range s.RDATA {
		z.header(s)
		z.line = append(AppendRDATA(z.line, s.Type, rdata, z.apex), '\n')
		if len(z.line) < flushSize {
			continue
		}
		if _, err := z.w.Write(z.line); err != nil {
			return err
		}
		z.line = z.line[:0]
	}
	return nil
}

// outOfOrder tells whether a set belongs in front of the last one. The SOA record
// stands in front of its place.
func (z *writer) outOfOrder(s *RRset) bool {
	order := wire.Compare(z.owner, s.Owner)
	return order > 0 || order == 0 && z.typ > s.Type && z.typ != wire.TypeSOA
}

// begin writes the directives and the SOA record.
func (z *writer) begin(s *RRset) {
	z.begun, z.ttl = true, effectiveTTL(s.TTL)
	z.line = append(AppendName(append(z.line, "$ORIGIN "...), z.apex, nil), '\n')
	z.line = strconv.AppendUint(append(z.line, "$TTL "...), uint64(z.ttl), 10)
	z.line = append(z.line, '\n')
	for _, rdata := range s.RDATA {
		z.header(s)
		if !z.soa(rdata) {
			z.line = append(AppendRDATA(z.line, s.Type, rdata, z.apex), '\n')
		}
	}
}

// header writes what stands in front of RDATA: an owner only where it is not that
// of the line above, a TTL only where it is not that of $TTL.
func (z *writer) header(s *RRset) {
	start := len(z.line)
	if string(z.owner) != string(s.Owner) {
		z.line = AppendName(z.line, s.Owner, z.apex)
		z.owner = append(z.owner[:0], s.Owner...)
	}
	z.typ = s.Type
	if ttl := effectiveTTL(s.TTL); ttl != z.ttl {
		z.pad(start + ttlColumn)
		z.line = strconv.AppendUint(z.line, uint64(ttl), 10)
	}
	z.pad(start + classColumn)
	z.line = append(z.line, "IN"...)
	z.pad(start + typeColumn)
	z.line = append(z.line, wire.TypeString(s.Type)...)
	z.pad(start + rdataColumn)
}

// pad appends blanks up to a place in z.line, one at least.
func (z *writer) pad(to int) {
	z.line = append(z.line, ' ')
	for len(z.line) < to {
		z.line = append(z.line, ' ')
	}
}

// soaNotes are the numbers of an SOA record (RFC 1035 §3.3.13), as people note
// them.
var soaNotes = [...]string{"serial", "refresh", "retry", "expire", "minimum"}

// soa writes the RDATA of an SOA record, a number a line. It writes nothing, and
// tells so, where RDATA is not of that form.
func (z *writer) soa(rdata []byte) bool {
	if !wire.CheckRDATA(wire.TypeSOA, rdata) {
		return false
	}
	t := text{dst: z.line, start: len(z.line), rest: rdata, origin: z.apex}
	if !t.fields("nn") {
		return false
	}
	z.line = append(t.dst, " ("...)
	for i, note := range soaNotes {
		z.line = append(z.line, '\n')
		start := len(z.line)
		z.pad(start + rdataColumn)
		z.line = strconv.AppendUint(z.line, bigEndian(t.rest[4*i:4*i+4]), 10)
		if i == len(soaNotes)-1 {
			z.line = append(z.line, " )"...)
		}
		const longest = len("4294967295 ) ")
		z.pad(start + rdataColumn + longest)
		z.line = append(append(z.line, "; "...), note...)
	}
	z.line = append(z.line, '\n')
	return true
}
