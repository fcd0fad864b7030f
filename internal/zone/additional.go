package zone

import (
	"encoding/binary"
	"slices"

	"github.com/waymark-dns/waymark/internal/wire"
)

// link resolves the targets of NS, MX, SRV, SVCB and HTTPS records.
func (b *Builder) link() {
	for n := range b.z.nodes {
		nd := &b.z.nodes[n]
		for i := nd.first; i < nd.first+uint32(nd.count); i++ {
			if off, ok := wire.Target(b.z.sets[i].typ); ok {
				b.linkSet(uint32(n), &b.z.sets[i], uint32(off))
			}
		}
	}
}

// linkSet resolves the targets of one set; they stand skip octets into RDATA.
func (b *Builder) linkSet(n uint32, s *set, skip uint32) {
	z := &b.z
	start := len(z.extras)
	var seen map[string]bool // names, where there are several
	if s.count > 1 {
		seen = map[string]bool{}
	}
	for off := s.off; off < s.off+s.size; {
		size := uint32(binary.BigEndian.Uint16(z.data[off:]))
		e := b.target(n, s.typ, off+2+skip)
		off += 2 + size
		if e.node == none {
			continue
		}
		if seen != nil {
			name := string(z.extraName(&e).Fold())
			if seen[name] {
				continue
			}
			seen[name] = true
		}
		e.glue = s.typ == wire.TypeNS && z.nodes[n].flags&isCut != 0 && z.extraName(&e).Under(z.owner(n))
		z.extras = append(z.extras, e)
	}
	if len(z.extras) > start {
		s.extra = uint32(start + 1)
		// Glue that has to fit comes first: a response is cut from its end.
		slices.SortStableFunc(z.extras[start:], func(x, y extra) int { return boolInt(y.glue) - boolInt(x.glue) })
		z.extras[len(z.extras)-1].last = true
	}
}

// target is where the name at at leads, in RDATA of that type at node n.
func (b *Builder) target(n uint32, typ uint16, at uint32) extra {
	z := &b.z
	name := wire.Name(z.data[at:wire.UncompressedEnd(z.data, int(at))])
	if len(name) == 1 && (typ == wire.TypeSVCB || typ == wire.TypeHTTPS) {
		alias := z.data[at-2] == 0 && z.data[at-1] == 0
		at, name = z.nodes[n].name, z.owner(n) // RFC 9460 §2.5.2: the owner itself
		if alias || isWild(name) {             // AliasMode to nothing (§2.5.1), or an owner that is made only when asked
			return extra{node: none}
		}
	}
	if !name.Under(z.name) {
		return extra{node: none}
	}
	return extra{node: b.resolve(name), name: at, size: uint8(len(name))}
}

func (z *Zone) extraName(e *extra) wire.Name { return z.data[e.name : e.name+uint32(e.size)] }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// resolve is the node whose addresses a name in the zone has: its own, or a
// wildcard's.
func (b *Builder) resolve(name wire.Name) uint32 {
	b.labels.Scan(name)
	n, at := b.z.closest(name, &b.labels)
	nd := &b.z.nodes[n]
	if nd.above != none && b.z.nodes[nd.above].flags&isCut == 0 {
		return none // RFC 6672 §2.4: nothing exists below a DNAME
	}
	if at == 0 {
		return n
	}
	if nd.flags&hasDNAME != 0 {
		return none
	}
	return nd.wild // below a zone cut too, as glue: Knot DNS and NSD do the same
}

// additional adds the addresses of the names that the answer or the delegation
// points to (RFC 1035 §3.3.11, 2782, 9460 §4.1), glue that has to fit first.
func (w *work) additional() {
	if w.extra == nil {
		return
	}
	z := w.z
	for i := w.extra.extra; i != 0; i++ {
		e := &z.extras[i-1]
		owner := z.extraName(e)
		fits := w.addExtra(owner, e, wire.TypeA) && w.addExtra(owner, e, wire.TypeAAAA)
		if fits && (w.typ == wire.TypeSVCB || w.typ == wire.TypeHTTPS) {
			fits = w.addExtra(owner, e, w.typ)
		}
		if e.last || !fits { // glue comes first, so that nothing after it is needed
			break
		}
	}
}

// addExtra adds the records of that type, where there are any. It is false where
// they do not fit.
func (w *work) addExtra(owner wire.Name, e *extra, typ uint16) bool {
	z := w.z
	s := z.set(e.node, typ)
	if s == nil || s == w.extra {
		return true
	}
	if w.add(wire.Additional, owner, s) {
		return true
	}
	if e.glue {
		w.b.Truncate()
	}
	return false
}
