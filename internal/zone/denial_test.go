package zone_test

import (
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/testkit"
)

// denial is the NSEC or NSEC3 records of one zone in a response, to judge what
// they prove as a validator does: RFC 4035 section 5.4, RFC 5155 section 8. It
// shares no code with what it judges.
type denial struct {
	apex  string
	names map[string]bool // that exist
	nsec  []*dns.NSEC
	nsec3 []*dns.NSEC3
}

// proves is what a proof came to.
type proves struct {
	ok     bool
	optOut bool // what the name is has been left open (RFC 5155 section 6)
}

func has(types []uint16, typ uint16) bool { return slices.Contains(types, typ) }

// allows tells whether the types at a name deny typ there. At a zone cut the
// parent denies nothing but DS, and at the apex the child does not deny DS.
func allows(types []uint16, typ uint16) bool {
	switch {
	case has(types, typ) || has(types, dns.TypeCNAME):
		return false
	case has(types, dns.TypeNS) && !has(types, dns.TypeSOA):
		return typ == dns.TypeDS
	}
	return true
}

// above tells whether types are those of a name below which the zone says nothing.
func above(types []uint16) bool {
	return has(types, dns.TypeNS) && !has(types, dns.TypeSOA) || has(types, dns.TypeDNAME)
}

// coverNSEC is the record that proves that name does not exist.
func (d *denial) coverNSEC(name string) *dns.NSEC {
	for _, n := range d.nsec {
		owner, next := n.Hdr.Name, n.NextDomain
		after := testkit.CompareNames(owner, name) < 0
		before := testkit.CompareNames(name, next) < 0 || strings.EqualFold(next, d.apex)
		if after && before && !(dns.IsSubDomain(owner, name) && above(n.TypeBitMap)) {
			return n
		}
	}
	return nil
}

func (d *denial) matchNSEC(name string) *dns.NSEC {
	for _, n := range d.nsec {
		if strings.EqualFold(n.Hdr.Name, name) {
			return n
		}
	}
	return nil
}

// commonEncloser is the closest encloser that a covering record tells.
func commonEncloser(n *dns.NSEC, name string) string {
	labels := max(dns.CompareDomainName(n.Hdr.Name, name), dns.CompareDomainName(n.NextDomain, name))
	for dns.CountLabel(name) > labels {
		name = testkit.Parent(name)
	}
	return name
}

func star(name string) string { return "*." + strings.TrimPrefix(name, ".") }

// noName judges a proof that name does not exist and no wildcard stands for it.
func (d *denial) noName(name string) proves {
	if len(d.nsec3) == 0 {
		n := d.coverNSEC(name)
		// An empty non-terminal is covered, and exists (RFC 8020).
		if n == nil || dns.IsSubDomain(name, n.NextDomain) {
			return proves{}
		}
		wild := star(commonEncloser(n, name))
		w := d.coverNSEC(wild)
		return proves{ok: w != nil && !dns.IsSubDomain(wild, w.NextDomain)}
	}
	encloser, p := d.encloser(name)
	wild := d.coverNSEC3(star(encloser)) != nil
	// Under opt-out an empty non-terminal above insecure delegations has no
	// record. Where its parent has a wildcard, nothing can prove that the wildcard
	// does not apply below it.
	if p.optOut && d.names[star(encloser)] {
		wild = true
	}
	return proves{ok: p.ok && wild, optOut: p.optOut}
}

// noData judges a proof that name has no records of that type.
func (d *denial) noData(name string, typ uint16) proves {
	if len(d.nsec3) == 0 {
		return proves{ok: d.noDataNSEC(name, typ)}
	}
	if n := d.matchNSEC3(name); n != nil {
		return proves{ok: allows(n.TypeBitMap, typ)}
	}
	encloser, p := d.encloser(name)
	if !p.ok {
		return proves{}
	}
	if wild := d.matchNSEC3(star(encloser)); wild != nil {
		return proves{ok: allows(wild.TypeBitMap, typ), optOut: p.optOut}
	}
	return proves{ok: p.optOut, optOut: p.optOut} // section 8.6
}

func (d *denial) noDataNSEC(name string, typ uint16) bool {
	if n := d.matchNSEC(name); n != nil {
		return allows(n.TypeBitMap, typ)
	}
	n := d.coverNSEC(name)
	if n == nil {
		return false
	}
	if dns.IsSubDomain(name, n.NextDomain) { // empty non-terminal
		return true
	}
	wild := star(commonEncloser(n, name))
	if m := d.matchNSEC(wild); m != nil {
		return allows(m.TypeBitMap, typ)
	}
	n = d.coverNSEC(wild) // the wildcard may be an empty non-terminal too
	return n != nil && dns.IsSubDomain(wild, n.NextDomain)
}

// expanded judges a proof that name came of a wildcard whose parent has that
// many labels: the name one label below it does not exist.
func (d *denial) expanded(name string, labels int) bool {
	if len(d.nsec3) == 0 {
		n := d.coverNSEC(name)
		return n != nil && dns.CountLabel(commonEncloser(n, name)) == labels
	}
	for dns.CountLabel(name) > labels+1 {
		name = testkit.Parent(name)
	}
	return d.coverNSEC3(name) != nil
}

// insecure judges a proof that a delegation has no DS record.
func (d *denial) insecure(name string) bool {
	var types []uint16
	if len(d.nsec3) == 0 {
		n := d.matchNSEC(name)
		if n == nil {
			return false
		}
		types = n.TypeBitMap
	} else {
		n := d.matchNSEC3(name)
		if n == nil {
			_, p := d.encloser(name)
			return p.ok && p.optOut
		}
		types = n.TypeBitMap
	}
	return has(types, dns.TypeNS) && !has(types, dns.TypeDS) && !has(types, dns.TypeSOA)
}

func (d *denial) matchNSEC3(name string) *dns.NSEC3 {
	for _, n := range d.nsec3 {
		if strings.EqualFold(n.Hdr.Name, dns.HashName(name, n.Hash, n.Iterations, n.Salt)+"."+strings.TrimPrefix(d.apex, ".")) {
			return n
		}
	}
	return nil
}

func (d *denial) coverNSEC3(name string) *dns.NSEC3 {
	for _, n := range d.nsec3 {
		hash := dns.HashName(name, n.Hash, n.Iterations, n.Salt)
		owner := strings.ToUpper(n.Hdr.Name[:32])
		next := strings.ToUpper(n.NextDomain)
		if owner < hash && (hash < next || next <= owner) || hash < next && next <= owner {
			return n
		}
	}
	return nil
}

// encloser judges a closest encloser proof (section 8.3).
func (d *denial) encloser(name string) (string, proves) {
	next := name
	for name != d.apex && !strings.EqualFold(name, d.apex) {
		next, name = name, testkit.Parent(name)
		n := d.matchNSEC3(name)
		if n == nil {
			continue
		}
		cover := d.coverNSEC3(next)
		if cover == nil || above(n.TypeBitMap) {
			return name, proves{}
		}
		return name, proves{ok: true, optOut: cover.Flags&1 != 0}
	}
	return name, proves{}
}
