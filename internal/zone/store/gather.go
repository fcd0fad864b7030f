package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// block is the octets of a block of gathered records. The longest record fits, and
// a place in it fits in blockBits.
const (
	blockBits = 20
	block     = 1 << blockBits
)

// gathered is one record of a zone that is being imported.
type gathered struct {
	prefix uint64 // first octets of the owner's key: most comparisons end here
	at     uint64 // block and place in it
	line   uint32
	typ    uint16
}

// gatherer collects the records of a whole zone in any order and hands them out
// as sets in order. One copy of each is kept, without the apex.
type gatherer struct {
	apex    wire.Name
	blocks  [][]byte // per record: owner's length and owner, TTL, RDATA's length and RDATA
	records []gathered
	file    string // of the last record
	key     []byte
}

// add takes a copy of a record that is in the zone.
func (g *gatherer) add(r *zonefile.Record) {
	need := 1 + len(r.Owner) - len(g.apex) + 1 + 6 + len(r.RDATA)
	last := len(g.blocks) - 1
	if last < 0 || cap(g.blocks[last])-len(g.blocks[last]) < need {
		g.blocks = append(g.blocks, make([]byte, 0, block))
		last++
	}
	b := g.blocks[last]
	at := uint64(last)<<blockBits | uint64(len(b))
	cut := len(r.Owner) - len(g.apex)
	b = append(append(append(b, uint8(cut+1)), r.Owner[:cut]...), 0)
	name := wire.Name(b[len(b)-cut-1:])
	b = appendRecord(b, r.TTL, r.RDATA)
	g.blocks[last] = b
	g.key = append(nameKey(g.key[:0], name), 0, 0, 0, 0, 0, 0, 0, 0)
	g.records = append(g.records, gathered{binary.BigEndian.Uint64(g.key[1:]), at, uint32(r.Line), r.Type})
	g.file = r.File
}

// name is the relative owner of a record, and body the record as sets hold it.
func (g *gatherer) name(r *gathered) (name wire.Name, body []byte) {
	b := g.blocks[r.at>>blockBits][r.at&(block-1):]
	end := 1 + int(b[0])
	size := 6 + int(binary.BigEndian.Uint16(b[end+4:]))
	return b[1:end:end], b[end : end+size : end+size]
}

// sort orders the records by owner, type and RDATA.
func (g *gatherer) sort() {
	slices.SortFunc(g.records, func(a, b gathered) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		an, ab := g.name(&a)
		bn, bb := g.name(&b)
		if c := wire.Compare(an, bn); c != 0 {
			return c
		}
		if a.typ != b.typ {
			return cmp.Compare(a.typ, b.typ)
		}
		if c := bytes.Compare(ab[6:], bb[6:]); c != 0 {
			return c
		}
		return cmp.Compare(a.line, b.line)
	})
}

// each calls do with the sets in order, once sort was called, and the line of the
// first record of each. Duplicates are dropped, and the records of a set get the
// least of their TTLs (RFC 2181 §5). A set is valid until do returns.
func (g *gatherer) each(do func(s *set, line int) error) error {
	var body []byte
	var s set
	for i := 0; i < len(g.records); {
		first := &g.records[i]
		name, one := g.name(first)
		s = set{name: name, typ: first.typ, body: one}
		end := i + 1
		for ; end < len(g.records); end++ {
			r := &g.records[end]
			if r.prefix != first.prefix || r.typ != first.typ {
				break
			}
			if n, _ := g.name(r); !wire.EqualFold(n, name) {
				break
			}
		}
		if end > i+1 {
			body = g.body(body[:0], g.records[i:end])
			s.body = body
		}
		if err := do(&s, int(first.line)); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// body joins records of one set.
func (g *gatherer) body(dst []byte, rs []gathered) []byte {
	least := ^uint32(0)
	var before []byte
	for i := range rs {
		_, b := g.name(&rs[i])
		if i > 0 && bytes.Equal(b[6:], before[6:]) {
			continue
		}
		before = b
		dst = append(dst, b...)
		least = min(least, binary.BigEndian.Uint32(b))
	}
	if rs[0].typ != wire.TypeRRSIG { // those have the TTLs of what they cover
		level(dst, least)
	}
	return dst
}

// level gives all records of a body one TTL.
func level(body []byte, ttl uint32) {
	for len(body) > 0 {
		binary.BigEndian.PutUint32(body, ttl)
		body = body[6+int(binary.BigEndian.Uint16(body[4:])):]
	}
}
