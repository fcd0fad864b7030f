package zone

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/waymark-dns/waymark/internal/wire"
)

// group sorts the records into sets and copies their RDATA together, in the
// order of the nodes.
func (b *Builder) group() error {
	less := func(x, y record) int {
		switch {
		case x.node != y.node:
			return cmp.Compare(x.node, y.node)
		case x.typ != y.typ:
			return cmp.Compare(x.typ, y.typ)
		case x.covers != y.covers:
			return cmp.Compare(x.covers, y.covers)
		}
		return cmp.Compare(x.off, y.off)
	}
	if !slices.IsSortedFunc(b.records, less) {
		slices.SortFunc(b.records, less)
	}
	for i := range b.z.nodes {
		b.z.nodes[i].count = 0
	}
	b.z.sets = make([]set, 0, len(b.z.nodes))
	old := b.z.data
	b.z.data = make([]byte, 0, len(old))
	node, kept := 0, 0
	place := func() {
		if node == kept {
			kept = b.keepNames(node, old)
		}
		b.z.nodes[node].first = uint32(len(b.z.sets))
		node++
	}
	for i := 0; i < len(b.records); {
		for node <= int(b.records[i].node) {
			place()
		}
		var err error
		if i, err = b.groupSet(i, old); err != nil {
			return err
		}
	}
	for node < len(b.z.nodes) {
		place()
	}
	b.records = nil
	b.attachSigs()
	return nil
}

// keepNames copies the name of node n to the new data, and with it those of the
// nodes that follow and share it. It returns the index behind them.
func (b *Builder) keepNames(n int, old []byte) int {
	nodes := b.z.nodes
	end := func(i int) uint32 { return nodes[i].name + uint32(nodes[i].size) }
	last := n
	for last+1 < len(nodes) && end(last+1) == end(n) {
		last++
	}
	deepest := &nodes[last]
	b.z.data = append(b.z.data, old[deepest.name:deepest.name+uint32(deepest.size)]...)
	for i := n; i <= last; i++ {
		nodes[i].name = uint32(len(b.z.data)) - uint32(nodes[i].size)
	}
	return last + 1
}

// groupSet makes one set of the records from i on that belong together and
// returns the index behind them.
func (b *Builder) groupSet(i int, old []byte) (int, error) {
	first := b.records[i]
	s := set{off: uint32(len(b.z.data)), ttl: first.ttl, typ: first.typ}
	for ; i < len(b.records); i++ {
		r := b.records[i]
		if r.node != first.node || r.typ != first.typ || r.covers != first.covers {
			break
		}
		rdata := old[r.off : r.off+2+uint32(r.size)]
		if b.repeated(&s, rdata[2:]) {
			continue
		}
		if s.count == math.MaxUint16 { // no message could hold more
			return 0, fmt.Errorf("building zone %s: %s %s: %w", b.z.name, b.z.owner(r.node), wire.TypeString(r.typ), ErrLargeSet)
		}
		b.z.data = append(b.z.data, rdata...)
		s.size = uint32(len(b.z.data)) - s.off
		s.ttl = min(s.ttl, r.ttl) // RFC 2181 §5.2: one TTL for all
		s.count++
	}
	nd := &b.z.nodes[first.node]
	if first.typ == wire.TypeRRSIG {
		s.typ = first.covers
		s.extra = first.node // until attachSigs
		b.z.sigs = append(b.z.sigs, s)
		return i, nil
	}
	b.z.sets = append(b.z.sets, s)
	nd.count++
	switch first.typ {
	case wire.TypeCNAME:
		nd.flags |= hasCNAME
	case wire.TypeDNAME:
		nd.flags |= hasDNAME
	case wire.TypeNS:
		if first.node != 0 {
			nd.flags |= isCut
		}
	}
	return i, nil
}

// fewRecords is where comparing a record with all others of its set becomes dearer
// than remembering them.
const fewRecords = 32

// repeated tells whether s, which is at the end of data, has that record already.
func (b *Builder) repeated(s *set, rdata []byte) bool {
	if s.count < fewRecords {
		return b.z.holds(s, rdata)
	}
	if s.count == fewRecords {
		b.seen = map[string]struct{}{}
		for have := b.z.data[s.off:]; len(have) > 0; {
			n := 2 + int(binary.BigEndian.Uint16(have))
			b.seen[string(foldRDATA(s.typ, have[2:n]))] = struct{}{}
			have = have[n:]
		}
	}
	folded := foldRDATA(s.typ, rdata)
	_, ok := b.seen[string(folded)]
	b.seen[string(folded)] = struct{}{}
	return ok
}

// holds is repeated for a set of few records, and for signatures.
func (z *Zone) holds(s *set, rdata []byte) bool {
	folded := foldRDATA(s.typ, rdata)
	for have := z.data[s.off:]; len(have) > 0; {
		n := 2 + int(binary.BigEndian.Uint16(have))
		if n == 2+len(rdata) && bytes.Equal(foldRDATA(s.typ, have[2:n]), folded) {
			return true
		}
		have = have[n:]
	}
	return false
}

// foldRDATA is rdata with its names folded, where it is of a type whose names are
// equal whatever their letters (RFC 4343); else rdata itself.
func foldRDATA(typ uint16, rdata []byte) []byte {
	switch typ {
	case wire.TypeNS, wire.TypeCNAME, wire.TypePTR, wire.TypeDNAME:
		return wire.Name(rdata).Fold()
	case wire.TypeMX:
		return append(bytes.Clone(rdata[:2]), wire.Name(rdata[2:]).Fold()...)
	}
	return rdata
}

// attachSigs gives each set the signatures that cover it. Signatures of types
// that are not there are left out of answers.
func (b *Builder) attachSigs() {
	for i := range b.z.sigs {
		g := &b.z.sigs[i]
		if s := b.z.set(g.extra, g.typ); s != nil {
			s.sig = uint32(i + 1)
		}
		g.extra = 0
	}
}
