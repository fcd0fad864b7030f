// Package zone holds zones as immutable snapshots in wire form and answers from
// them as an authoritative name server does (RFC 1034 §4.3.2 as updated). It
// reads no files (zonefile does), opens no socket and knows no policy; the
// policy's zone action calls Table.Answer.
//
// Files in the order a query meets them: table.go (which zone), zone.go (which
// node), answer.go (what to say), proof.go, nsec.go, nsec3.go (how to prove it),
// additional.go (what helps beside it).
package zone

import (
	"encoding/binary"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Zone is one version of a zone. It never changes, so any number of goroutines
// may read it at once. Everything bulky stands in a few slices without pointers,
// which the garbage collector does not scan (DESIGN decision 6).
type Zone struct {
	name   wire.Name // apex, letters folded
	serial uint32
	soa    uint32 // set index of the SOA record
	negTTL uint32 // min(TTL of the SOA, MINIMUM): RFC 2308 §3
	depth  int    // most labels that a node's name has

	records int

	nodes  []node   // node 0 is the apex
	sets   []set    // of each node together, by type
	sigs   []set    // RRSIG records, grouped by the type they cover
	extras []extra  // targets of NS, MX, SRV, SVCB and HTTPS records
	data   []byte   // names, and RDATA with lengths
	index  []uint64 // open-addressed: upper half of the hash, node + 1
	chain  []uint32 // nodes with an NSEC record, in canonical order
	nsec3  nsec3Chain
}

// node is a name that exists, empty non-terminals included (RFC 8020).
type node struct {
	name   uint32 // offset in data
	first  uint32 // its sets
	above  uint32 // topmost zone cut or DNAME above it, or none
	wild   uint32 // its child *, or none
	parent uint32
	count  uint16 // of its sets
	size   uint8  // octets of the name
	flags  uint8
}

// Flags of a node.
const (
	isCut uint8 = 1 << iota // delegated: NS below the apex
	hasCNAME
	hasDNAME
)

// set is one RRset.
type set struct {
	off   uint32 // RDATA in data
	size  uint32
	ttl   uint32
	sig   uint32 // index in sigs + 1, 0 where unsigned
	extra uint32 // index in extras + 1 of its first target, 0 where there is none
	typ   uint16
	count uint16
}

// extra is one target of an RRset: a name whose records go into the additional
// section. The list of a set ends with an entry whose last is set.
type extra struct {
	node uint32 // where its records stand; may be a wildcard
	name uint32 // offset in data of the name to own them
	size uint8
	last bool
	glue bool // an address below the delegation's own cut: it has to fit (RFC 9471)
}

const none = ^uint32(0)

// Name is the apex, letters folded. The caller does not change it.
func (z *Zone) Name() wire.Name { return z.name }

// Serial is the serial number of the SOA record.
func (z *Zone) Serial() uint32 { return z.serial }

// Records is the number of resource records.
func (z *Zone) Records() int { return z.records }

// Signed tells whether the zone has NSEC or NSEC3 records to prove what does
// not exist.
func (z *Zone) Signed() bool { return len(z.chain) > 0 || z.nsec3.in() }

// closest finds the node of the name that l describes, or of its closest
// encloser (RFC 4592 §3.3.1). at is the label where the node's name starts: 0
// where the name itself exists. The name is at or below the apex.
func (z *Zone) closest(name wire.Name, l *wire.Labels) (n uint32, at int) {
	for at = max(0, l.N-z.depth); ; at++ {
		if n = z.find(name[l.Off[at]:], l.Hash[at]); n != none {
			return n, at
		}
	}
}

// find is the node of exactly that name.
func (z *Zone) find(name wire.Name, hash uint64) uint32 {
	mask := uint64(len(z.index) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := z.index[i]
		if e == 0 {
			return none
		}
		if e>>32 == hash>>32 {
			n := uint32(e) - 1
			if wire.EqualFold(z.owner(n), name) {
				return n
			}
		}
	}
}

// owner is the name of a node, letters as in the zone file.
func (z *Zone) owner(n uint32) wire.Name {
	nd := &z.nodes[n]
	return z.data[nd.name : nd.name+uint32(nd.size)]
}

// set finds the RRset of that type at a node.
func (z *Zone) set(n uint32, typ uint16) *set {
	nd := &z.nodes[n]
	for i := nd.first; i < nd.first+uint32(nd.count); i++ {
		if s := &z.sets[i]; s.typ >= typ {
			if s.typ == typ {
				return s
			}
			return nil
		}
	}
	return nil
}

// rrset is s as a Builder takes it.
func (z *Zone) rrset(s *set) wire.RRset {
	return wire.RRset{Type: s.typ, Class: wire.ClassIN, TTL: s.ttl, Count: int(s.count), RDATA: z.data[s.off : s.off+s.size]}
}

// target is the name in the RDATA of a set with one record, such as CNAME.
func (z *Zone) target(s *set) wire.Name {
	return z.data[s.off+2 : s.off+2+uint32(binary.BigEndian.Uint16(z.data[s.off:]))]
}
