// Package zonecheck judges zones: what a zone must hold as a whole, on top of the
// syntax that zonefile reads. It serves nothing and changes nothing; the
// subcommand that checks zones prints what Check finds.
package zonecheck

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// Check reads the zone at path and returns everything that is wrong with it,
// syntax and what a zone must hold as a whole, ordered by file and line. A
// zone is usable when no problem is an Error. The error is for a file that
// cannot be read at all.
func Check(path string, o zonefile.Options) ([]zonefile.Problem, error) {
	k := &checker{o: o, path: path, apex: o.Origin}
	found, err := zonefile.Scan(path, o, k.collect)
	if err != nil {
		return nil, err
	}
	k.found = found
	if !found.Full() && k.build() {
		k.rules()
	}
	problems := found.All()
	slices.SortStableFunc(problems, func(a, b zonefile.Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line)
	})
	if found.More() {
		problems = append(problems, zonefile.Problem{File: path, Level: zonefile.Warning, Text: "there are more problems than are told"})
	}
	return problems, nil
}

// errFound ends a reading that needs no more.
var errFound = errors.New("found")

// FindOrigin tells the apex of the zone at path from the owner of its first
// SOA record, nil if there is none or if it is written relative to an origin
// that the file does not state.
func FindOrigin(path string, o zonefile.Options) (wire.Name, error) {
	var apex wire.Name
	o.Origin = nil
	_, err := zonefile.Scan(path, o, func(batch []zonefile.Record) error {
		for _, r := range batch {
			if r.Type == dns.TypeSOA {
				apex = append(apex, r.Owner...)
				return errFound
			}
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	if len(apex) == 1 {
		apex = nil
	}
	return apex, err
}

// status is how a zone serves a name.
type status uint8

const (
	authoritative status = iota
	atCut                // delegated: has NS and is not the apex
	belowCut             // glue or hidden
	belowDNAME           // hidden
)

// node is a name of the zone with all its records.
type node struct {
	key     string // orders names canonically, see nameKey
	name    wire.Name
	records []zonefile.Record // by type
	status  status
	cut     int // index of the cut at or above, -1 for none
}

// checker holds a zone while it is judged.
type checker struct {
	o       zonefile.Options
	path    string
	apex    wire.Name
	records []zonefile.Record
	arena   arena // holds owners and RDATA
	nodes   []node
	index   map[string]int // key to place in nodes
	found   *zonefile.Findings
}

// arena copies octets into blocks, so that a record does not cost an allocation.
type arena struct{ block []byte }

// arenaBlock is the size of a block, larger than any RDATA.
const arenaBlock = 1 << 20

func (a *arena) keep(b []byte) []byte {
	if cap(a.block)-len(a.block) < len(b) {
		a.block = make([]byte, 0, arenaBlock)
	}
	n := len(a.block)
	a.block = append(a.block, b...)
	return a.block[n:len(a.block):len(a.block)]
}

// collect copies a batch.
func (k *checker) collect(batch []zonefile.Record) error {
	for _, r := range batch {
		r.Owner = k.arena.keep(r.Owner)
		r.RDATA = k.arena.keep(r.RDATA)
		k.records = append(k.records, r)
	}
	return nil
}

// report notes a problem at a record, or at the zone as a whole without one.
func (k *checker) report(level zonefile.Level, at *zonefile.Record, mend, format string, args ...any) {
	p := zonefile.Problem{File: k.path, Level: level, Text: fmt.Sprintf(format, args...), Mend: mend}
	if at != nil {
		p.File, p.Line = at.File, at.Line
	}
	k.found.Add(p)
}

// nameKey makes a string of a name so that keys compare as names do in
// canonical order (RFC 4034 §6.1) and the key of an ancestor is a prefix:
// labels from the root down in small letters, each ended by a zero octet; zeros
// in labels are escaped.
func nameKey(n wire.Name) string {
	var starts [wire.MaxLabels + 1]int
	count := 0
	for off := 0; n[off] != 0; off += int(n[off]) + 1 {
		starts[count] = off
		count++
	}
	key := make([]byte, 0, len(n)+8)
	for _, off := range slices.Backward(starts[:count]) {
		for _, c := range n[off+1 : off+1+int(n[off])] {
			if c <= 1 {
				key = append(key, 1, c+1)
			} else {
				key = append(key, wire.FoldByte(c))
			}
		}
		key = append(key, 0)
	}
	return string(key)
}

// parentKey is the key of the name one label shorter; key is not the root's.
func parentKey(key string) string {
	return key[:strings.LastIndexByte(key[:len(key)-1], 0)+1]
}

// build groups records by name and finds the apex. It tells whether there is
// anything to judge.
func (k *checker) build() bool {
	if k.apex == nil {
		i := slices.IndexFunc(k.records, func(r zonefile.Record) bool { return r.Type == dns.TypeSOA })
		if i < 0 {
			k.report(zonefile.Error, nil, "add an SOA record, or state the origin", "no SOA record tells the apex")
			return false
		}
		k.apex = k.records[i].Owner
	}
	k.index = make(map[string]int)
	for i := range k.records {
		r := &k.records[i]
		if !r.Owner.Under(k.apex) {
			k.report(zonefile.Error, r, "move it to its own zone", "%s is out of the zone %s", r.Owner.String(), k.apex.String())
			continue
		}
		key := nameKey(r.Owner)
		at, ok := k.index[key]
		if !ok {
			at = len(k.nodes)
			k.index[key] = at
			k.nodes = append(k.nodes, node{key: key, name: r.Owner, cut: -1})
		}
		k.nodes[at].records = append(k.nodes[at].records, *r)
	}
	slices.SortFunc(k.nodes, func(a, b node) int { return strings.Compare(a.key, b.key) })
	for i := range k.nodes {
		n := &k.nodes[i]
		k.index[n.key] = i
		slices.SortStableFunc(n.records, func(a, b zonefile.Record) int { return int(a.Type) - int(b.Type) })
	}
	k.records = nil
	return true
}

// rrset is the records of a type at a name; without records it is empty.
func (n *node) rrset(t uint16) []zonefile.Record {
	if n == nil {
		return nil
	}
	start := slices.IndexFunc(n.records, func(r zonefile.Record) bool { return r.Type == t })
	if start < 0 {
		return nil
	}
	end := start
	for end < len(n.records) && n.records[end].Type == t {
		end++
	}
	return n.records[start:end]
}

func (n *node) has(t uint16) bool { return len(n.rrset(t)) > 0 }

// hasAddress tells whether a name has an address record.
func (n *node) hasAddress() bool { return n.has(dns.TypeA) || n.has(dns.TypeAAAA) }

// each calls f with every RRset of a name.
func (n *node) each(f func(set []zonefile.Record)) {
	for i := 0; i < len(n.records); {
		end := i
		for end < len(n.records) && n.records[end].Type == n.records[i].Type {
			end++
		}
		f(n.records[i:end])
		i = end
	}
}

// find is the node of a name, nil for none.
func (k *checker) find(key string) *node {
	if i, ok := k.index[key]; ok {
		return &k.nodes[i]
	}
	return nil
}

func (k *checker) apexNode() *node { return k.find(nameKey(k.apex)) }

// rules applies all rules, from the shape of the zone to its signatures.
func (k *checker) rules() {
	k.place()
	k.apexRules()
	for i := range k.nodes {
		n := &k.nodes[i]
		n.each(k.setRules)
		switch n.status {
		case belowDNAME:
			k.hiddenByDNAME(n)
		case belowCut:
			k.hiddenByCut(n)
		default:
			k.aliasRules(n)
			k.cutRules(n)
			k.targetRules(n)
		}
	}
	k.dnssecRules()
}

// place finds out how each name is served. Names below another follow it
// directly in order.
func (k *checker) place() {
	cut, dname := -1, -1
	apexKey := nameKey(k.apex)
	for i := range k.nodes {
		n := &k.nodes[i]
		if !k.isBelow(n, cut) {
			cut = -1
		}
		if !k.isBelow(n, dname) {
			dname = -1
		}
		if n.status, n.cut = statusBelow(n, cut, dname), cut; n.status != authoritative {
			continue
		}
		if n.has(dns.TypeNS) && n.key != apexKey {
			n.status, n.cut, cut = atCut, i, i
		}
		if n.has(dns.TypeDNAME) {
			dname = i
		}
	}
}

// isBelow tells whether a name is below that of the node at index above, which
// may be -1.
func (k *checker) isBelow(n *node, above int) bool {
	return above >= 0 && strings.HasPrefix(n.key, k.nodes[above].key)
}

// statusBelow is the status of a name that is below a cut or a DNAME record if
// those are not -1.
func statusBelow(n *node, cut, dname int) status {
	switch {
	case cut >= 0:
		return belowCut
	case dname >= 0 && !onlyNSEC3(n):
		return belowDNAME
	}
	return authoritative
}

// onlyNSEC3 tells whether a name is that of an NSEC3 record: those stand below
// the apex even if that has a DNAME record (RFC 5155 §7.1).
func onlyNSEC3(n *node) bool {
	return n.has(dns.TypeNSEC3) && !slices.ContainsFunc(n.records, func(r zonefile.Record) bool {
		return r.Type != dns.TypeNSEC3 && r.Type != dns.TypeRRSIG
	})
}

// distinct is the number of records of a set without duplicates.
func distinct(set []zonefile.Record) int {
	count := 0
	for i, r := range set {
		if !slices.ContainsFunc(set[:i], func(o zonefile.Record) bool { return sameRDATA(&o, &r) }) {
			count++
		}
	}
	return count
}

// sameRDATA tells whether two records of a type are duplicates. Names in RDATA
// compare without case (RFC 4343).
func sameRDATA(a, b *zonefile.Record) bool {
	if bytes.Equal(a.RDATA, b.RDATA) {
		return true
	}
	switch a.Type {
	case dns.TypeNS, dns.TypeCNAME, dns.TypeDNAME, dns.TypePTR, dns.TypeMX, dns.TypeSRV, dns.TypeSOA:
		return len(a.RDATA) == len(b.RDATA) && wire.EqualFold(a.RDATA, b.RDATA)
	}
	return false
}
