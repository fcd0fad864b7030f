package xfr

import (
	"bytes"
	"fmt"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// sequence follows the records of an AXFR response from the SOA record that opens
// it to the same one that closes it (RFC 5936 §2.2).
type sequence struct {
	apex    wire.Name
	file    string // where the records are from
	most    int    // records
	records int    // handed out
	serial  uint32
	soa     []byte // RDATA of the opening SOA record, nil before it
	ended   bool   // the closing SOA record was seen

	batch []zonefile.Record
	arena []byte // owners and RDATA of the batch
}

// message reads the records of one message. They are valid until the next call.
// The closing SOA record is not among them. cursor stands in front of the first
// record of msg.
func (s *sequence) message(cursor *wire.Response, msg []byte) ([]zonefile.Record, error) {
	s.batch, s.arena = s.batch[:0], s.arena[:0] // nobody holds the batch before
	var rec wire.Record
	found := false
	for cursor.Next(&rec) {
		if rec.Section != wire.Answer {
			if rec.Section == wire.Authority || rec.Type != wire.TypeOPT { // RFC 5936 §2.2.4, §2.2.5
				return nil, fmt.Errorf("reading a record outside the answer section: %w", ErrRecord)
			}
			continue
		}
		found = true
		if err := s.record(&rec, msg); err != nil {
			return nil, err
		}
	}
	if !cursor.Whole() {
		return nil, ErrMalformed
	}
	if !found {
		return nil, ErrEmpty
	}
	return s.batch, nil
}

// arenaBlock is what the memory of a batch grows by; the longest owner and RDATA
// fit.
const arenaBlock = 256 << 10

// record takes the next record of the answer section.
func (s *sequence) record(rec *wire.Record, msg []byte) error {
	if s.ended {
		return ErrAfterEnd
	}
	if cap(s.arena)-len(s.arena) < arenaBlock/2 {
		s.arena = make([]byte, 0, arenaBlock) // the batch keeps the old block alive
	}
	start := len(s.arena)
	room := s.arena[start : start+wire.MaxName]
	name, _, ok := wire.ReadName(room[:0], msg, rec.Start)
	if !ok {
		return ErrMalformed
	}
	owner := name[:len(name):len(name)]
	s.arena = s.arena[:start+len(owner)]
	rdata, ok := rec.AppendRDATA(s.arena, msg)
	if !ok || len(rdata)-len(s.arena) > wire.MaxMessage {
		return fmt.Errorf("reading %s %s: %w", owner, wire.TypeString(rec.Type), ErrMalformed)
	}
	r := zonefile.Record{Owner: owner, Type: rec.Type, Class: rec.Class, TTL: rec.TTL, RDATA: rdata[len(s.arena):len(rdata):len(rdata)], File: s.file}
	s.arena = rdata
	if err := s.admit(&r); err != nil {
		return fmt.Errorf("reading %s %s: %w", owner, wire.TypeString(rec.Type), err)
	}
	return nil
}

// admit decides whether the record may come here, and puts it into the batch.
func (s *sequence) admit(r *zonefile.Record) error {
	atApex := wire.EqualFold(r.Owner, s.apex)
	switch {
	case s.soa == nil && (r.Type != wire.TypeSOA || !atApex):
		return ErrNoSOA
	case r.Class != wire.ClassIN || !inZones(r.Type) || !wire.CheckRDATA(r.Type, r.RDATA):
		return ErrRecord
	case r.Type == wire.TypeSOA && !atApex:
		return ErrExtraSOA
	case s.soa != nil && r.Type == wire.TypeSOA:
		return s.close(r)
	case !atApex && !r.Owner.Under(s.apex):
		return ErrOutOfZone
	case s.records == s.most:
		return ErrTooMany
	}
	if s.soa == nil {
		s.soa, s.serial = bytes.Clone(r.RDATA), serialOf(r.RDATA)
	}
	if r.TTL >= 1<<31 { // RFC 2181 §8
		r.TTL = 0
	}
	s.records++
	r.Line = s.records
	s.batch = append(s.batch, *r)
	return nil
}

// close takes the closing SOA record.
func (s *sequence) close(r *zonefile.Record) error {
	if serialOf(r.RDATA) != s.serial {
		return ErrSerial
	}
	s.ended = true
	return nil
}

// inZones tells whether records of that type may be in a zone: those from 128 to
// 255 are of queries and messages only (RFC 6895 §3.1).
func inZones(typ uint16) bool {
	return typ != 0 && typ != wire.TypeOPT && (typ < 128 || typ > 255)
}
