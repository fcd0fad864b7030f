package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/waymark-dns/waymark/internal/wire"
)

// set is one RRset as the store keeps it. It points into memory of others: of the
// file while a transaction lasts, or of what was gathered.
type set struct {
	name wire.Name // relative to the apex, ended by the root label; letters as they came
	typ  uint16
	body []byte // each record's TTL (4 octets), length (2) and RDATA, ordered by RDATA
}

// compareSets orders sets by owner, canonically (RFC 4034 §6.1), then by type.
func compareSets(a, b *set) int {
	if c := wire.Compare(a.name, b.name); c != 0 {
		return c
	}
	return cmp.Compare(a.typ, b.typ)
}

// relative is owner without the labels of the apex, which it is at or below.
func relative(owner, apex wire.Name) wire.Name {
	rel := make(wire.Name, 0, len(owner)-len(apex)+1)
	return append(append(rel, owner[:len(owner)-len(apex)]...), 0)
}

// appendOwner appends the whole owner of a relative name.
func appendOwner(dst []byte, rel, apex wire.Name) wire.Name {
	return append(append(dst, rel[:len(rel)-1]...), apex...)
}

// nameKey makes octets of a relative name that order as the names do: labels from
// the apex down in small letters, each ended by a zero; zeros and ones in labels
// are escaped. The prefix keeps the key of the apex from being empty, which bbolt
// does not take.
func nameKey(dst []byte, name wire.Name) []byte {
	var starts [wire.MaxLabels + 1]uint8
	count := 0
	for off := 0; name[off] != 0; off += int(name[off]) + 1 {
		starts[count] = uint8(off)
		count++
	}
	dst = append(dst, '=')
	for i := count - 1; i >= 0; i-- {
		off := int(starts[i])
		for _, c := range name[off+1 : off+1+int(name[off])] {
			if c <= 1 {
				dst = append(dst, 1, c+1)
			} else {
				dst = append(dst, wire.FoldByte(c))
			}
		}
		dst = append(dst, 0)
	}
	return dst
}

// appendSet appends a set as chunks hold it.
func appendSet(dst []byte, s *set) []byte {
	dst = appendKey(dst, s.name, s.typ)
	return appendBody(dst, s.body)
}

func appendKey(dst []byte, name wire.Name, typ uint16) []byte {
	dst = append(append(dst, uint8(len(name))), name...)
	return binary.BigEndian.AppendUint16(dst, typ)
}

func appendBody(dst, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(body))), body...)
}

// readKey reads what appendKey wrote and returns the rest.
func readKey(b []byte) (name wire.Name, typ uint16, rest []byte, ok bool) {
	if len(b) < 1 {
		return nil, 0, nil, false
	}
	end := 1 + int(b[0])
	if end < 2 || end+2 > len(b) || wire.UncompressedEnd(b[:end], 1) != end {
		return nil, 0, nil, false
	}
	return b[1:end:end], binary.BigEndian.Uint16(b[end:]), b[end+2:], true
}

// readBody reads what appendBody wrote and returns the rest. An empty body is nil.
func readBody(b []byte) (body, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	size := uint64(binary.BigEndian.Uint32(b))
	if b = b[4:]; size > uint64(len(b)) {
		return nil, nil, false
	}
	if size > 0 {
		body = b[:size:size]
	}
	return body, b[size:], true
}

// record is one record of a body.
type record struct {
	ttl   uint32
	rdata []byte
}

func appendRecord(body []byte, ttl uint32, rdata []byte) []byte {
	body = binary.BigEndian.AppendUint32(body, ttl)
	body = binary.BigEndian.AppendUint16(body, uint16(len(rdata)))
	return append(body, rdata...)
}

// eachRecord calls do for the records of a body.
func eachRecord(body []byte, do func(r record) error) error {
	for len(body) > 0 {
		if len(body) < 6 || len(body) < 6+int(binary.BigEndian.Uint16(body[4:])) {
			return fmt.Errorf("reading an RRset: %w", ErrDamaged)
		}
		end := 6 + int(binary.BigEndian.Uint16(body[4:]))
		if err := do(record{binary.BigEndian.Uint32(body), body[6:end:end]}); err != nil {
			return err
		}
		body = body[end:]
	}
	return nil
}

// records is a body taken apart.
func records(body []byte) ([]record, error) {
	var all []record
	err := eachRecord(body, func(r record) error { all = append(all, r); return nil })
	return all, err
}

// countRecords is the records of a body that is sound.
func countRecords(body []byte) int {
	n := 0
	for len(body) >= 6 {
		body = body[min(len(body), 6+int(binary.BigEndian.Uint16(body[4:]))):]
		n++
	}
	return n
}

// change is what happened to one RRset. nil stands for one that is not there.
type change struct {
	name     wire.Name // relative
	typ      uint16
	old, new []byte // bodies
}

func (c *change) set(body []byte) *set { return &set{c.name, c.typ, body} }

// compareChanges orders changes as the sets they are about.
func compareChanges(a, b change) int { return compareSets(a.set(nil), b.set(nil)) }

// clone is a change in memory of its own.
func (c *change) clone() change {
	return change{bytes.Clone(c.name), c.typ, bytes.Clone(c.old), bytes.Clone(c.new)}
}

func appendChange(dst []byte, c *change) []byte {
	dst = appendKey(dst, c.name, c.typ)
	return appendBody(appendBody(dst, c.old), c.new)
}

// readChanges reads a whole difference. The changes point into b.
func readChanges(b []byte) ([]change, error) {
	var all []change
	for len(b) > 0 {
		var c change
		var ok [3]bool
		c.name, c.typ, b, ok[0] = readKey(b)
		c.old, b, ok[1] = readBody(b)
		c.new, b, ok[2] = readBody(b)
		if ok != [3]bool{true, true, true} {
			return nil, fmt.Errorf("reading a difference: %w", ErrDamaged)
		}
		all = append(all, c)
	}
	return all, nil
}
