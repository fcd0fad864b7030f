package zone

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Errors of building a zone.
var (
	ErrNoSOA     = errors.New("no SOA record at the apex")
	ErrTwoSOA    = errors.New("more than one SOA record")
	ErrOutOfZone = errors.New("record outside the zone")
	ErrRDATA     = errors.New("RDATA does not have the layout of its type")
	ErrTooLarge  = errors.New("zone larger than 4 GiB")
	ErrLargeSet  = errors.New("more than 65,535 records of one type at one name")
	ErrHashing   = errors.New("more than 2,500 iterations of NSEC3 hashing (RFC 9276: use none)")
)

// Builder collects records, in any order, and makes a Zone of them. It belongs
// to one goroutine.
type Builder struct {
	z       Zone
	records []record
	nsec3   []nsec3Record
	seen    map[string]struct{} // records of a large set
	names   int                 // nodes entered in the index
	later   int                 // octets of nsec3 that will go into data
	last    uint32
	labels  wire.Labels
}

// record is one record on its way into a set.
type record struct {
	node   uint32
	off    uint32 // RDATA with its length, in data
	ttl    uint32
	size   uint16 // of RDATA
	typ    uint16
	covers uint16 // for RRSIG: the type that it covers
}

// NewBuilder starts a zone with that apex. records is about how many records
// will come, 0 where that is not known.
func NewBuilder(apex wire.Name, records int) *Builder {
	b := &Builder{records: make([]record, 0, records)}
	size := 16
	for size < records*3/2 {
		size *= 2
	}
	b.z.index = make([]uint64, size)
	b.z.nodes = make([]node, 0, records)
	b.z.data = make([]byte, 0, 40*records+64)
	b.z.name = apex.Fold()
	b.labels.Scan(b.z.name)
	b.z.data = append(b.z.data, b.z.name...)
	b.insert(b.create(0, 0), b.labels.Hash[0])
	return b
}

// Add takes one record, RDATA uncompressed. Nothing of it is kept. Records that
// are there already are dropped (RFC 2181 §5).
func (b *Builder) Add(owner wire.Name, typ uint16, ttl uint32, rdata []byte) error {
	if !wire.CheckRDATA(typ, rdata) {
		return fmt.Errorf("adding %s %s: %w", owner, wire.TypeString(typ), ErrRDATA)
	}
	if uint64(len(b.z.data)+b.later+len(rdata)+wire.MaxLabels*wire.MaxName) > math.MaxUint32 {
		return ErrTooLarge
	}
	covers := uint16(0)
	if typ == wire.TypeRRSIG {
		covers = binary.BigEndian.Uint16(rdata)
	}
	if typ == wire.TypeNSEC3 || covers == wire.TypeNSEC3 {
		return b.addNSEC3(owner, typ, ttl, rdata)
	}
	n, err := b.node(owner)
	if err != nil {
		return err
	}
	off := uint32(len(b.z.data))
	b.z.data = binary.BigEndian.AppendUint16(b.z.data, uint16(len(rdata)))
	b.z.data = append(b.z.data, rdata...)
	b.records = append(b.records, record{n, off, ttl, uint16(len(rdata)), typ, covers})
	return nil
}

// node is the node of owner, made where it is new, with all nodes above it.
func (b *Builder) node(owner wire.Name) (uint32, error) {
	if wire.EqualFold(b.z.owner(b.last), owner) {
		b.own(b.last, owner)
		return b.last, nil
	}
	b.labels.Scan(owner)
	apex := b.z.name.Labels()
	if b.labels.N < apex || !wire.EqualFold(owner[b.labels.Off[b.labels.N-apex]:], b.z.name) {
		return 0, fmt.Errorf("adding %s to zone %s: %w", owner, b.z.name, ErrOutOfZone)
	}
	n, at := b.z.closest(owner, &b.labels)
	base := len(b.z.data)
	if at > 0 { // new nodes share one name: an ancestor's is the end of its child's
		b.z.data = append(b.z.data, owner...)
	}
	for at > 0 {
		at--
		n = b.create(base+int(b.labels.Off[at]), n)
		b.insert(n, b.labels.Hash[at])
	}
	b.own(n, owner)
	b.last = n
	return n, nil
}

// own gives a node with records the letters of its first owner, where it was
// made as the parent of another.
func (b *Builder) own(n uint32, owner wire.Name) {
	nd := &b.z.nodes[n]
	if nd.count > 0 {
		return
	}
	nd.count = 1 // counted anew in group
	if string(b.z.owner(n)) != string(owner) {
		nd.name = uint32(len(b.z.data))
		b.z.data = append(b.z.data, owner...)
	}
}

// create adds a node without records, whose name ends the data and starts at off.
func (b *Builder) create(off int, parent uint32) uint32 {
	n := uint32(len(b.z.nodes))
	name := b.z.data[off:]
	b.z.nodes = append(b.z.nodes, node{name: uint32(off), size: uint8(len(name)), above: none, wild: none, parent: parent})
	if n > 0 && isWild(name) {
		b.z.nodes[parent].wild = n
	}
	b.z.depth = max(b.z.depth, b.labels.N)
	return n
}

// isWild tells whether the leftmost label is * (RFC 4592 §2.1.1).
func isWild(name wire.Name) bool { return name[0] == 1 && name[1] == '*' }

// insert enters a node in the index and grows it beyond two thirds.
func (b *Builder) insert(n uint32, hash uint64) {
	if b.names++; b.names*3 > len(b.z.index)*2 {
		old := b.z.index
		b.z.index = make([]uint64, 2*len(old))
		for i := range b.z.nodes[:n] {
			b.put(uint32(i), wire.HashName(b.z.owner(uint32(i))))
		}
	}
	b.put(n, hash)
}

func (b *Builder) put(n uint32, hash uint64) {
	mask := uint64(len(b.z.index) - 1)
	i := hash & mask
	for b.z.index[i] != 0 {
		i = (i + 1) & mask
	}
	b.z.index[i] = hash>>32<<32 | uint64(n+1)
}

// Zone makes the zone. The Builder is not to be used afterwards.
func (b *Builder) Zone() (*Zone, error) {
	if err := b.group(); err != nil {
		return nil, err
	}
	soa := b.z.set(0, wire.TypeSOA)
	if soa == nil {
		return nil, fmt.Errorf("building zone %s: %w", b.z.name, ErrNoSOA)
	}
	if soa.count > 1 {
		return nil, fmt.Errorf("building zone %s: %w", b.z.name, ErrTwoSOA)
	}
	rdata := b.z.data[soa.off : soa.off+soa.size]
	b.z.serial = binary.BigEndian.Uint32(rdata[len(rdata)-20:])
	b.z.negTTL = min(soa.ttl, binary.BigEndian.Uint32(rdata[len(rdata)-4:]))
	for i := range b.z.sets {
		if &b.z.sets[i] == soa {
			b.z.soa = uint32(i)
		}
	}
	b.occlude()
	b.link()
	b.sortChain()
	if err := b.buildNSEC3(); err != nil {
		return nil, err
	}
	b.z.trim()
	z := b.z
	return &z, nil
}

// occlude notes for each node the topmost zone cut or DNAME above it. Parents come
// before their children.
func (b *Builder) occlude() {
	nodes := b.z.nodes
	for i := 1; i < len(nodes); i++ {
		parent := nodes[i].parent
		if nodes[i].above = nodes[parent].above; nodes[i].above == none && nodes[parent].flags&(isCut|hasDNAME) != 0 {
			nodes[i].above = parent
		}
	}
}

// trim gives back what the slices hold far beyond their length, and counts.
func (z *Zone) trim() {
	z.nodes, z.sets, z.sigs = tight(z.nodes), tight(z.sets), tight(z.sigs)
	z.extras, z.data = tight(z.extras), tight(z.data)
	z.records = len(z.nsec3.links)
	for i := range z.sets {
		z.records += int(z.sets[i].count)
	}
	for i := range z.sigs {
		z.records += int(z.sigs[i].count)
	}
}

// tight is s, copied where an eighth or more of it is empty.
func tight[T any](s []T) []T {
	if cap(s)-len(s) < cap(s)/8 {
		return s
	}
	return slices.Clone(s)
}
