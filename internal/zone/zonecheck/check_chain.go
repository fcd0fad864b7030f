package zonecheck

import (
	"bytes"
	"encoding/base32"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/dnssec"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// chainRules judges the proofs of absence of a signed zone: NSEC records (RFC
// 4034 §4) or NSEC3 records (RFC 5155).
func (k *checker) chainRules() {
	apex := k.apexNode()
	params := apex.rrset(dns.TypeNSEC3PARAM)
	switch {
	case len(params) > 0:
		for i := range params {
			k.nsec3Chain(&params[i])
		}
	case slices.ContainsFunc(k.nodes, func(n node) bool { return n.has(dns.TypeNSEC) }):
		k.nsecChain()
	default:
		k.report(zonefile.Error, nil, "sign the zone again", "signed zone has neither NSEC records nor an NSEC3PARAM record")
	}
}

// served tells whether a name has a place in the proofs of absence.
func (n *node) served() bool {
	return (n.status == authoritative || n.status == atCut) && !onlyNSEC3(n)
}

// nsecChain: every name has one NSEC record, which tells the next name and the
// types at the name.
func (k *checker) nsecChain() {
	var names []*node
	for i := range k.nodes {
		if k.nodes[i].served() {
			names = append(names, &k.nodes[i])
		}
	}
	for i, n := range names {
		set := n.rrset(dns.TypeNSEC)
		if len(set) == 0 {
			k.report(zonefile.Error, &n.records[0], "sign the zone again", "%s has no NSEC record", n.name.String())
			continue
		}
		if distinct(set) > 1 {
			k.report(zonefile.Error, &set[1], "sign the zone again", "%s has more than one NSEC record", n.name.String())
		}
		next, want := wire.Name(set[0].RDATA[:nameLen(set[0].RDATA)]), names[(i+1)%len(names)].name
		if len(next) != len(want) || !wire.EqualFold(next, want) {
			k.report(zonefile.Error, &set[0], "sign the zone again", "NSEC record of %s has %s for the next name, which is %s",
				n.name.String(), next.String(), want.String())
		}
		k.bitmap(&set[0], set[0].RDATA[len(next):], n)
	}
}

// provenTypes is the types that the type bitmap for a name must have, sorted.
func provenTypes(n *node) []uint16 {
	var types []uint16
	n.each(func(set []zonefile.Record) {
		t := set[0].Type
		if n.status == atCut && t != dns.TypeNS && t != dns.TypeDS && t != dns.TypeRRSIG && t != dns.TypeNSEC {
			return
		}
		types = append(types, t)
	})
	return types
}

// bitmap compares the type bitmap of the record at with the types at a name,
// nil for an empty non-terminal.
func (k *checker) bitmap(at *zonefile.Record, bitmap []byte, n *node) {
	var want []uint16
	if n != nil {
		want = provenTypes(n)
	}
	got := parseBitmap(bitmap)
	var texts []string
	for _, t := range want {
		if !slices.Contains(got, t) {
			texts = append(texts, "lacks "+wire.TypeString(t))
		}
	}
	for _, t := range got {
		if !slices.Contains(want, t) {
			texts = append(texts, "has "+wire.TypeString(t)+" too much")
		}
	}
	if len(texts) > 0 {
		k.report(zonefile.Error, at, "sign the zone again", "type bitmap of the %s record of %s %s", wire.TypeString(at.Type), at.Owner.String(), strings.Join(texts, ", "))
	}
}

// parseBitmap is the types of a well-formed type bitmap.
func parseBitmap(b []byte) (types []uint16) {
	for len(b) >= 2 && len(b) >= 2+int(b[1]) {
		for i, octet := range b[2 : 2+b[1]] {
			for bit := range 8 {
				if octet&(0x80>>bit) != 0 {
					types = append(types, uint16(b[0])<<8|uint16(8*i+bit))
				}
			}
		}
		b = b[2+b[1]:]
	}
	return types
}

// link is an NSEC3 record in its chain.
type link struct {
	hash   string
	next   string
	optOut bool
	bitmap []byte
	record *zonefile.Record
	used   bool // stands for a name
}

// maxIterations bounds the work of judging a chain. Servers give up on more
// than a hundred or so (RFC 9276 §3.2).
const maxIterations = 500

// nsec3Chain judges the chain of one NSEC3PARAM record.
func (k *checker) nsec3Chain(param *zonefile.Record) {
	if iterations := binary.BigEndian.Uint16(param.RDATA[2:]); iterations > maxIterations {
		k.report(zonefile.Warning, param, "use 0 iterations", "chain of %d iterations is not judged (RFC 9276 §3.1)", iterations)
		return
	} else if iterations > 0 {
		k.report(zonefile.Warning, param, "use 0 iterations", "NSEC3 with %d iterations (RFC 9276 §3.1)", iterations)
	}
	chain := k.links(param.RDATA)
	if len(chain) == 0 {
		k.report(zonefile.Error, param, "sign the zone again", "no NSEC3 record for this NSEC3PARAM record")
		return
	}
	for i := range chain {
		if next := &chain[(i+1)%len(chain)]; chain[i].next != next.hash {
			k.report(zonefile.Error, chain[i].record, "sign the zone again", "NSEC3 record of %s does not name that of %s as next",
				chain[i].record.Owner.String(), next.record.Owner.String())
		}
	}
	k.nsec3Names(param, chain)
	for i := range chain {
		if !chain[i].used {
			k.report(zonefile.Warning, chain[i].record, "sign the zone again", "NSEC3 record of %s stands for no name", chain[i].record.Owner.String())
		}
	}
}

// links is the NSEC3 records with the parameters of an NSEC3PARAM record, in
// order of their hashes.
func (k *checker) links(param []byte) []link {
	var chain []link
	for i := range k.nodes {
		n := &k.nodes[i]
		if n.status != authoritative || len(n.name) != len(k.apex)+1+int(n.name[0]) {
			continue
		}
		set := n.rrset(dns.TypeNSEC3)
		for j := range set {
			d := set[j].RDATA
			head := 5 + int(d[4])
			if d[0] != param[0] || !bytes.Equal(d[2:head], param[2:]) {
				continue
			}
			length := int(d[head])
			chain = append(chain, link{
				hash:   strings.ToUpper(string(n.name[1 : 1+n.name[0]])),
				next:   base32.HexEncoding.EncodeToString(d[head+1 : head+1+length]),
				optOut: d[1]&1 != 0,
				bitmap: d[head+1+length:],
				record: &set[j],
			})
		}
	}
	slices.SortFunc(chain, func(a, b link) int { return strings.Compare(a.hash, b.hash) })
	return chain
}

// covered is a name that a chain must prove, be it an empty non-terminal.
type covered struct {
	name     wire.Name
	node     *node // nil for an empty non-terminal
	insecure bool  // an insecure delegation, or above such only: may be left out with opt-out
}

// nsec3Names: every name and empty non-terminal has its link in the chain,
// except for insecure delegations that an opt-out link spans (RFC 5155 §7.1).
func (k *checker) nsec3Names(param *zonefile.Record, chain []link) {
	hashing, ok := dnssec.ReadNSEC3(param.RDATA)
	if !ok { // an algorithm that nobody knows: nothing can be said
		return
	}
	for _, c := range k.nsec3Covered() {
		sum := hashing.HashName(c.name)
		hash := base32.HexEncoding.EncodeToString(sum[:])
		i, found := slices.BinarySearchFunc(chain, hash, func(l link, h string) int { return strings.Compare(l.hash, h) })
		if found {
			chain[i].used = true
			k.bitmap(chain[i].record, chain[i].bitmap, c.node)
			continue
		}
		if spanning := &chain[(i+len(chain)-1)%len(chain)]; c.insecure && spanning.optOut {
			continue
		}
		at := param
		if c.node != nil {
			at = &c.node.records[0]
		}
		k.report(zonefile.Error, at, "sign the zone again", "%s has no NSEC3 record", c.name.String())
	}
}

// nsec3Covered lists what a chain must prove, empty non-terminals behind the
// names.
func (k *checker) nsec3Covered() []covered {
	var list []covered
	empty := make(map[string]int)
	apexKey := nameKey(k.apex)
	for i := range k.nodes {
		n := &k.nodes[i]
		if !n.served() {
			continue
		}
		insecure := n.status == atCut && !n.has(dns.TypeDS)
		list = append(list, covered{n.name, n, insecure})
		name, key := n.name, n.key
		for key != apexKey {
			key, name = parentKey(key), name[1+name[0]:]
			if k.find(key) != nil {
				break
			}
			at, ok := empty[key]
			if !ok {
				at = len(list)
				empty[key] = at
				list = append(list, covered{name, nil, true})
			}
			list[at].insecure = list[at].insecure && insecure
		}
	}
	return list
}
