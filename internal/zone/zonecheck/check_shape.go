package zonecheck

import (
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// apexRules: one SOA record, at the apex and nowhere else, and NS records
// there (RFC 1035 §5.2).
func (k *checker) apexRules() {
	apex := k.apexNode()
	name := k.apex.String()
	soa := apex.rrset(dns.TypeSOA)
	if len(soa) == 0 {
		k.report(zonefile.Error, nil, "add an SOA record with the owner "+name, "no SOA record at the apex %s", name)
	} else if distinct(soa) > 1 {
		k.report(zonefile.Error, &soa[1], "keep one of them", "more than one SOA record")
	}
	if !apex.has(dns.TypeNS) {
		k.report(zonefile.Error, nil, "add NS records with the owner "+name, "no NS record at the apex %s", name)
	}
	if ds := apex.rrset(dns.TypeDS); len(ds) > 0 {
		k.report(zonefile.Warning, &ds[0], "put it into the parent zone", "DS record at the apex")
	}
	for i := range k.nodes {
		if n := &k.nodes[i]; n.key != nameKey(k.apex) && n.has(dns.TypeSOA) {
			k.report(zonefile.Error, &n.rrset(dns.TypeSOA)[0], "remove it, or check the origin", "SOA record at %s, not at the apex %s", n.name.String(), name)
		}
	}
}

// setRules: an RRset has no duplicates (RFC 2181 §5) and one TTL (§5.2).
// Signatures are no RRset of their own (RFC 4034 §3).
func (k *checker) setRules(set []zonefile.Record) {
	seen := make(map[string]int, len(set))
	ttlTold := set[0].Type == dns.TypeRRSIG
	for i := range set {
		r := &set[i]
		if first, ok := seen[foldedRDATA(r)]; ok {
			k.report(zonefile.Warning, r, "remove one", "%s record is the same as in line %d", wire.TypeString(r.Type), set[first].Line)
		} else {
			seen[foldedRDATA(r)] = i
		}
		if r.TTL != set[0].TTL && !ttlTold {
			ttlTold = true
			k.report(zonefile.Warning, r, "give all records of the set one TTL", "TTL %d differs from %d of the first %s record of %s",
				r.TTL, set[0].TTL, wire.TypeString(r.Type), r.Owner.String())
		}
	}
}

// foldedRDATA is the same for records that are duplicates, see sameRDATA.
func foldedRDATA(r *zonefile.Record) string {
	switch r.Type {
	case dns.TypeNS, dns.TypeCNAME, dns.TypeDNAME, dns.TypePTR, dns.TypeMX, dns.TypeSRV, dns.TypeSOA:
		b := make([]byte, len(r.RDATA))
		for i, c := range r.RDATA {
			b[i] = wire.FoldByte(c)
		}
		return string(b)
	}
	return string(r.RDATA)
}

// aliasRules: CNAME stands alone but for DNSSEC (RFC 1034 §3.6.2, RFC 4035
// §2.5), there is one CNAME and one DNAME at most, and no DNAME with NS but at
// the apex (RFC 6672 §2.3).
func (k *checker) aliasRules(n *node) {
	name := n.name.String()
	if set := n.rrset(dns.TypeCNAME); len(set) > 0 {
		if distinct(set) > 1 {
			k.report(zonefile.Error, &set[1], "keep one of them", "more than one CNAME record at %s", name)
		}
		n.each(func(other []zonefile.Record) {
			switch t := other[0].Type; t {
			case dns.TypeCNAME, dns.TypeRRSIG, dns.TypeNSEC:
			default:
				k.report(zonefile.Error, &other[0], "remove the CNAME record or all other records of this name",
					"%s record beside the CNAME record of %s", wire.TypeString(t), name)
			}
		})
	}
	set := n.rrset(dns.TypeDNAME)
	if distinct(set) > 1 {
		k.report(zonefile.Error, &set[1], "keep one of them", "more than one DNAME record at %s", name)
	}
	if len(set) > 0 && n.status == atCut {
		k.report(zonefile.Error, &set[0], "remove the DNAME or the NS records", "DNAME record at the zone cut %s", name)
	}
}

// cutRules: at a zone cut only NS, DS, their proofs, and glue are served; DS
// needs a zone cut.
func (k *checker) cutRules(n *node) {
	if n.status != atCut {
		if ds := n.rrset(dns.TypeDS); len(ds) > 0 && n.key != nameKey(k.apex) {
			k.report(zonefile.Warning, &ds[0], "add NS records, or remove it", "DS record at %s, which is no zone cut", n.name.String())
		}
		return
	}
	n.each(func(set []zonefile.Record) {
		switch set[0].Type {
		case dns.TypeNS, dns.TypeDS, dns.TypeNSEC, dns.TypeRRSIG, dns.TypeA, dns.TypeAAAA, dns.TypeDNAME, dns.TypeCNAME:
			return // what is wrong with the last two is told elsewhere
		}
		k.report(zonefile.Warning, &set[0], "move it to the zone that is delegated",
			"%s record at the zone cut %s is never served", wire.TypeString(set[0].Type), n.name.String())
	})
}

// hiddenByDNAME: nothing may stand below a DNAME record (RFC 6672 §2.4).
func (k *checker) hiddenByDNAME(n *node) {
	k.report(zonefile.Error, &n.records[0], "remove it or the DNAME record", "%s is below a DNAME record", n.name.String())
}

// hiddenByCut: below a zone cut only address records are of use, as glue.
func (k *checker) hiddenByCut(n *node) {
	n.each(func(set []zonefile.Record) {
		if t := set[0].Type; t != dns.TypeA && t != dns.TypeAAAA {
			k.report(zonefile.Warning, &set[0], "move it to the zone that is delegated", "%s record of %s is below the zone cut %s and never served",
				wire.TypeString(t), n.name.String(), k.nodes[n.cut].name.String())
		}
	})
}

// targetRules: names that NS, MX and SRV records point at must have addresses
// if they are in the zone, and be no aliases (RFC 2181 §10.3).
func (k *checker) targetRules(n *node) {
	for i := range n.records {
		r := &n.records[i]
		switch r.Type {
		case dns.TypeNS:
			k.nameServer(n, r)
		case dns.TypeMX:
			k.target(r, r.RDATA[2:])
		case dns.TypeSRV:
			k.target(r, r.RDATA[6:])
		}
	}
}

// landing is where a name of the zone leads.
type landing uint8

const (
	elsewhere landing = iota // out of the zone
	addressed
	unaddressed
	delegated // below a zone cut, without glue
	aliased
)

// land finds out where a name leads.
func (k *checker) land(name wire.Name) landing {
	if !name.Under(k.apex) {
		return elsewhere
	}
	key := nameKey(name)
	n := k.find(key)
	if n.hasAddress() && n.status != belowDNAME {
		return addressed
	}
	if n.has(dns.TypeCNAME) && n.status == authoritative {
		return aliased
	}
	if n != nil && n.status == atCut {
		return delegated
	}
	if how := k.landBelow(key); how != unaddressed || n != nil {
		return how
	}
	if wild := k.find(k.encloser(key) + "*\x00"); wild != nil {
		return landWild(wild)
	}
	return unaddressed
}

// landBelow tells whether a name is below a DNAME record or a zone cut.
func (k *checker) landBelow(key string) landing {
	how := unaddressed
	for apexKey := nameKey(k.apex); key != apexKey; {
		key = parentKey(key)
		above := k.find(key)
		if above.has(dns.TypeDNAME) {
			how = aliased // what is nearer to the apex counts
		}
		if key != apexKey && above.has(dns.TypeNS) {
			how = delegated
		}
	}
	return how
}

// landWild is land for a name that a wildcard makes.
func landWild(wild *node) landing {
	switch {
	case wild.hasAddress():
		return addressed
	case wild.has(dns.TypeCNAME):
		return aliased
	}
	return unaddressed
}

// exists tells whether a name is in the zone, be it as an empty non-terminal.
func (k *checker) exists(key string) bool {
	i, found := slices.BinarySearchFunc(k.nodes, key, func(n node, key string) int { return strings.Compare(n.key, key) })
	return found || i < len(k.nodes) && strings.HasPrefix(k.nodes[i].key, key)
}

// encloser is the key of the closest encloser of a name.
func (k *checker) encloser(key string) string {
	for !k.exists(key) {
		key = parentKey(key)
	}
	return key
}

// nameServer judges the target of an NS record at n.
func (k *checker) nameServer(n *node, r *zonefile.Record) {
	target := wire.Name(r.RDATA).String()
	switch k.land(r.RDATA) {
	case unaddressed:
		k.report(zonefile.Error, r, "add an A or AAAA record for it", "name server %s has no address record", target)
	case aliased:
		k.report(zonefile.Error, r, "name the server that the alias points at", "name server %s is an alias", target)
	case delegated:
		if n.status == atCut && wire.Name(r.RDATA).Under(n.name) {
			k.report(zonefile.Error, r, "add an A or AAAA record for it", "name server %s has no glue", target)
		} else if n.status == atCut {
			k.report(zonefile.Warning, r, "add an A or AAAA record for it", "name server %s of a sibling domain has no glue", target)
		} else {
			k.report(zonefile.Error, r, "add an A or AAAA record for it", "name server %s is below a zone cut and has no glue", target)
		}
	}
}

// target judges the target of an MX or SRV record.
func (k *checker) target(r *zonefile.Record, target wire.Name) {
	switch k.land(target) {
	case unaddressed:
		k.report(zonefile.Warning, r, "add an A or AAAA record for it", "%s target %s has no address record", wire.TypeString(r.Type), target.String())
	case aliased:
		k.report(zonefile.Warning, r, "name the host that the alias points at", "%s target %s is an alias", wire.TypeString(r.Type), target.String())
	}
}
