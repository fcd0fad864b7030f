package zone

import (
	"bytes"
	"cmp"
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
