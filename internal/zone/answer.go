package zone

import (
	"slices"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Limits of one answer.
const (
	maxChain  = 20           // CNAME and DNAME steps; Knot DNS stops at the same number
	maxProofs = maxChain + 4 // NSEC or NSEC3 RRsets: one for each alias at a wildcard, and those of a name error
)

// Answer answers r's Ask, whose class is IN, from the zone that its name is in:
// r.Reply is written, ready for Finish with the code that is returned. found is
// false where the name is in none of the zones; nothing is written then.
func (t *Table) Answer(r *serve.Request) (rcode wire.Rcode, found bool) {
	z := t.start(r.Ask.Name, r.Ask.Labels, r.Ask.Type)
	if z == nil {
		return 0, false
	}
	if z.Broken() {
		r.Note.Source = serve.SourceError
		return wire.ServFail, true
	}
	r.Note.Source = serve.SourceZone
	if z.quick(&r.Ask, &r.Reply) {
		return wire.NoError, true
	}
	w := work{t: t, z: z, b: &r.Reply, do: r.Ask.DO, stream: r.Peer.Proto.Stream(), typ: r.Ask.Type}
	return w.run(&r.Ask), true
}

// start is the zone to begin in: of the longest match, but for DS the parent's
// where both are here (RFC 4035 §3.1.4.1).
func (t *Table) start(name wire.Name, l *wire.Labels, typ uint16) *Zone {
	z := t.Find(name, l, 0)
	if typ == wire.TypeDS && z != nil && len(z.name) == len(name) && len(name) > 1 {
		if parent := t.Find(name, l, 1); parent != nil {
			return parent
		}
	}
	return z
}

// quick answers the commonest question, for an RRset that is there and needs
// nothing beside it. It is the same as what run would do, less the preparations.
func (z *Zone) quick(a *serve.Ask, b *wire.Builder) bool {
	n := none
	if a.Labels.N <= z.depth {
		n = z.find(a.Name, a.Labels.Hash[0])
	}
	if n == none {
		return false
	}
	nd := &z.nodes[n]
	if nd.above != none || nd.flags&(isCut|hasCNAME) != 0 || a.Type == wire.TypeANY || a.Type == wire.TypeRRSIG {
		return false
	}
	s := z.set(n, a.Type)
	if s == nil || s.extra != 0 {
		return false
	}
	b.Flags |= wire.FlagAA
	rr := z.rrset(s)
	if a.DO && s.sig != 0 {
		sigs := z.sigSet(s)
		b.Add(wire.Answer, a.Name, &rr, &sigs)
	} else {
		b.Add(wire.Answer, a.Name, &rr, nil)
	}
	return true
}

// work is one answer in the making.
type work struct {
	t      *Table
	z      *Zone
	b      *wire.Builder
	typ    uint16
	do     bool
	stream bool

	extra *set // whose targets go into the additional section

	dnames  [maxChain + 1]*set // that are in the answer: one that applies again is not repeated
	applied int

	proofs [maxProofs]proof
	proven int
}

// verdict is what one name of a CNAME chain came to.
type verdict uint8

const (
	final  verdict = iota // answered, or nothing more to say
	follow                // an alias: go on with its target
	noData
	noName
	tooLong // a DNAME made a name of more than 255 octets
)

// run is RFC 1034 §4.3.2: names along a chain of aliases, then what belongs into
// the other sections.
func (w *work) run(a *serve.Ask) wire.Rcode {
	w.b.Flags |= wire.FlagAA
	c := cursor{name: a.Name, labels: a.Labels}
	v := w.step(&c)
	if v == follow {
		v = w.chase(c)
	}
	rcode := wire.NoError
	switch v {
	case noName:
		rcode = wire.NXDomain
		w.negative()
	case noData:
		w.negative()
	case tooLong:
		rcode = wire.YXDomain
	}
	w.prove()
	w.additional()
	return rcode
}

// cursor is the name that is looked up now. Where step says follow, the next
// one is prefix octets of it and then the target of alias.
type cursor struct {
	name   wire.Name
	labels *wire.Labels
	alias  *set
	prefix int
}

// at is where label i of the name starts.
func (c *cursor) at(i int) int { return int(c.labels.Off[i]) }

// chase follows aliases through our zones until one is final, leads out of
// them, or comes back to a name that was there already.
func (w *work) chase(c cursor) verdict {
	var (
		labels wire.Labels
		rooms  [2][wire.MaxName]byte // of this name and the next
		seen   [maxChain]uint64
	)
	for i := range maxChain {
		seen[i] = c.labels.Hash[0]
		room := rooms[i&1][:]
		n := copy(room, c.name[:c.prefix])
		n += copy(room[n:], w.z.target(c.alias))
		c = cursor{name: room[:n], labels: &labels}
		labels.Scan(c.name)
		for _, h := range seen[:i+1] {
			if h == labels.Hash[0] {
				return final
			}
		}
		if w.z = w.t.start(c.name, c.labels, w.typ); w.z == nil || w.z.Broken() {
			return final
		}
		if v := w.step(&c); v != follow {
			return v
		}
	}
	return final
}

// step looks one name up.
func (w *work) step(c *cursor) verdict {
	z := w.z
	n, at := z.closest(c.name, c.labels)
	nd := &z.nodes[n]
	if nd.above != none {
		n, at = nd.above, c.labels.N-z.owner(nd.above).Labels()
		nd = &z.nodes[n]
	}
	switch {
	case nd.flags&isCut != 0:
		if at == 0 && w.typ == wire.TypeDS {
			return w.atNode(c, n)
		}
		return w.referral(n)
	case at == 0:
		return w.atNode(c, n)
	case nd.flags&hasDNAME != 0:
		return w.dname(c, n, at)
	case nd.wild != none:
		w.proveExpansion(c, at)
		return w.wildcard(c, nd.wild, at)
	}
	w.proveNoName(c, at)
	return noName
}

// atNode answers from a name that exists.
func (w *work) atNode(c *cursor, n uint32) verdict {
	v := w.data(c, n)
	if v == noData {
		w.proveNoData(c)
	}
	return v
}

// wildcard answers from a wildcard, as if its records were the name's own
// (RFC 4592 §3.3.3). The closest encloser starts at label at.
func (w *work) wildcard(c *cursor, wild uint32, at int) verdict {
	v := w.data(c, wild)
	if v == noData {
		w.proveWildNoData(c, wild, at)
	}
	return v
}

// data adds the records of node n that were asked for, owned by c's name.
func (w *work) data(c *cursor, n uint32) verdict {
	z := w.z
	switch w.typ {
	case wire.TypeANY:
		return w.any(c, n)
	case wire.TypeRRSIG:
		return w.allSigs(c, n)
	}
	if s := z.set(n, w.typ); s != nil {
		w.add(wire.Answer, c.name, s)
		if s.extra != 0 {
			w.extra = s
		}
		return final
	}
	if z.nodes[n].flags&hasCNAME != 0 {
		s := z.set(n, wire.TypeCNAME)
		w.add(wire.Answer, c.name, s)
		c.alias = s
		return follow
	}
	return noData
}

// any answers ANY with all RRsets over a stream and with one over UDP, where a
// long answer serves those who attack others (RFC 8482 §4.1).
func (w *work) any(c *cursor, n uint32) verdict {
	nd := &w.z.nodes[n]
	if nd.count == 0 {
		return noData
	}
	sets := w.z.sets[nd.first : nd.first+uint32(nd.count)]
	if !w.stream {
		i := 0
		if sets[0].typ == wire.TypeNSEC && len(sets) > 1 { // data tells more
			i = 1
		}
		sets = sets[i : i+1]
	}
	for i := range sets {
		w.add(wire.Answer, c.name, &sets[i])
	}
	return final
}

// allSigs answers RRSIG, over UDP with the signatures of one RRset.
func (w *work) allSigs(c *cursor, n uint32) verdict {
	nd := &w.z.nodes[n]
	v := noData
	for i := nd.first; i < nd.first+uint32(nd.count); i++ {
		s := &w.z.sets[i]
		if s.sig == 0 {
			continue
		}
		sigs := w.z.sigSet(s)
		w.b.Add(wire.Answer, c.name, &sigs, nil)
		v = final
		if !w.stream {
			break
		}
	}
	return v
}

// dname applies the DNAME at node n, the encloser of c's name (RFC 6672 §3.2).
func (w *work) dname(c *cursor, n uint32, at int) verdict {
	z := w.z
	s := z.set(n, wire.TypeDNAME)
	if !slices.Contains(w.dnames[:w.applied], s) {
		w.dnames[w.applied] = s
		w.applied++
		w.add(wire.Answer, c.name[c.at(at):], s)
	}
	target, prefix := z.target(s), c.name[:c.at(at)]
	if len(prefix)+len(target) > wire.MaxName {
		return tooLong
	}
	w.addAlias(c.name, prefix, target, s.ttl)
	if w.typ == wire.TypeCNAME {
		return final
	}
	c.alias, c.prefix = s, len(prefix)
	return follow
}

// addAlias adds the CNAME record that a DNAME makes of owner.
func (w *work) addAlias(owner, prefix, target wire.Name, ttl uint32) {
	var rdata [2 + wire.MaxName]byte
	n := 2 + copy(rdata[2:], prefix)
	n += copy(rdata[n:], target)
	rdata[1] = byte(n - 2)
	cname := wire.RRset{Type: wire.TypeCNAME, Class: wire.ClassIN, TTL: ttl, Count: 1, RDATA: rdata[:n]}
	w.b.Add(wire.Answer, owner, &cname, nil)
}

// referral points to the servers of a delegated zone: no AA unless an alias led
// here (RFC 1034 §6.2.6).
func (w *work) referral(n uint32) verdict {
	z := w.z
	if w.b.Count(wire.Answer) == 0 {
		w.b.Flags &^= wire.FlagAA
	}
	w.b.Referral = true
	ns := z.set(n, wire.TypeNS)
	owner := z.owner(n)
	w.add(wire.Authority, owner, ns)
	if w.do && z.Signed() {
		if ds := z.set(n, wire.TypeDS); ds != nil {
			w.add(wire.Authority, owner, ds)
		} else {
			w.proveInsecure(n)
		}
	}
	w.extra = ns
	return final
}

// negative adds the SOA record with the TTL of a negative answer (RFC 2308 §3).
func (w *work) negative() {
	z := w.z
	s := z.sets[z.soa]
	s.ttl = z.negTTL
	soa := z.rrset(&s)
	if w.do && s.sig != 0 {
		sigs := z.sigSet(&s)
		sigs.TTL = z.negTTL
		w.b.Add(wire.Authority, z.name, &soa, &sigs)
		return
	}
	w.b.Add(wire.Authority, z.name, &soa, nil)
}

// add adds a set, with its signatures where the client wants them. It is false
// where they do not fit.
func (w *work) add(section wire.Section, owner wire.Name, s *set) bool {
	rr := w.z.rrset(s)
	if w.do && s.sig != 0 {
		sigs := w.z.sigSet(s)
		return w.b.Add(section, owner, &rr, &sigs)
	}
	return w.b.Add(section, owner, &rr, nil)
}

// sigSet is the signatures of s as a Builder takes them.
func (z *Zone) sigSet(s *set) wire.RRset {
	g := z.sigs[s.sig-1]
	g.typ = wire.TypeRRSIG
	return z.rrset(&g)
}
