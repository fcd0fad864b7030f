package zone_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/testkit"
)

// validator judges whole responses, as a validating resolver that has the keys.
type validator struct {
	keys     map[string][]*dns.DNSKEY // by apex
	apexes   []string                 // of all zones, signed or not
	names    map[string]bool          // that exist, empty non-terminals included
	verified map[string]bool          // signatures that are known to be good
}

func newValidator(t *testing.T, zones [][]dns.RR) *validator {
	v := &validator{keys: map[string][]*dns.DNSKEY{}, verified: map[string]bool{}, names: map[string]bool{}}
	for _, z := range zones {
		apex := strings.ToLower(testkit.Apex(t, z))
		v.apexes = append(v.apexes, apex)
		for _, rr := range z {
			for n := strings.ToLower(rr.Header().Name); n != apex; n = testkit.Parent(n) {
				v.names[n] = true
			}
			if k, ok := rr.(*dns.DNSKEY); ok {
				v.keys[apex] = append(v.keys[apex], k)
			}
		}
	}
	return v
}

// zoneOf is the apex of the zone that name is in; for DS that of the parent.
func (v *validator) zoneOf(name string, typ uint16) string {
	best := ""
	for _, apex := range v.apexes {
		above := typ != dns.TypeDS || !strings.EqualFold(apex, name)
		if dns.IsSubDomain(apex, name) && above && len(apex) > len(best) {
			best = apex
		}
	}
	if best == "" && typ == dns.TypeDS {
		return v.zoneOf(name, dns.TypeNone)
	}
	return best
}

// rrsets groups the records of a section by owner and type.
type rrset struct {
	owner   string
	typ     uint16
	records []dns.RR
	sigs    []*dns.RRSIG
}

func rrsets(records []dns.RR) []*rrset {
	var all []*rrset
	get := func(owner string, typ uint16) *rrset {
		for _, s := range all {
			if s.typ == typ && strings.EqualFold(s.owner, owner) {
				return s
			}
		}
		s := &rrset{owner: owner, typ: typ}
		all = append(all, s)
		return s
	}
	for _, rr := range records {
		if sig, ok := rr.(*dns.RRSIG); ok {
			s := get(sig.Hdr.Name, sig.TypeCovered)
			s.sigs = append(s.sigs, sig)
			continue
		}
		s := get(rr.Header().Name, rr.Header().Rrtype)
		s.records = append(s.records, rr)
	}
	return all
}

// check judges the response to a query with DO. The error says what is wrong.
func (v *validator) check(q testkit.Question, r *dns.Msg) error {
	answer, authority := rrsets(r.Answer), rrsets(r.Ns)
	for _, s := range append(answer, authority...) {
		if err := v.signed(s, r, answer); err != nil {
			return err
		}
	}
	name := strings.ToLower(q.Name)
	for range 30 { // along the aliases
		next := ""
		for _, s := range answer {
			follow := q.Type != dns.TypeANY || len(s.sigs) == 0 // what a DNAME made is followed even then
			if s.typ == dns.TypeCNAME && len(s.records) == 1 && follow && strings.EqualFold(s.owner, name) {
				next = strings.ToLower(s.records[0].(*dns.CNAME).Target)
			}
		}
		if next == "" || q.Type == dns.TypeCNAME {
			break
		}
		name = next
	}
	return v.outcome(q, name, r, authority)
}

// outcome judges what is said of the last name.
func (v *validator) outcome(q testkit.Question, name string, r *dns.Msg, authority []*rrset) error {
	apex := v.zoneOf(name, q.Type)
	if apex == "" || v.keys[apex] == nil {
		return nil
	}
	d := v.denial(apex, r)
	if r.Rcode == dns.RcodeNameError {
		if !d.noName(name).ok {
			return fmt.Errorf("no proof that %s does not exist", name)
		}
		return nil
	}
	var soa, ns, ds bool
	cut := ""
	for _, s := range authority {
		soa = soa || s.typ == dns.TypeSOA
		ds = ds || s.typ == dns.TypeDS
		if s.typ == dns.TypeNS {
			ns, cut = true, s.owner
		}
	}
	switch {
	case r.Rcode == dns.RcodeYXDomain:
	case soa:
		if !d.noData(name, q.Type).ok {
			return fmt.Errorf("no proof that %s has no such type", name)
		}
	case ns && !ds && !d.insecure(cut):
		return fmt.Errorf("no proof that %s has no DS record", cut)
	}
	return nil
}

func (v *validator) denial(apex string, r *dns.Msg) *denial {
	d := &denial{apex: apex, names: v.names}
	for _, rr := range r.Ns {
		switch rr := rr.(type) {
		case *dns.NSEC:
			if dns.IsSubDomain(apex, rr.Hdr.Name) {
				d.nsec = append(d.nsec, rr)
			}
		case *dns.NSEC3:
			if strings.EqualFold(testkit.Parent(rr.Hdr.Name), apex) {
				d.nsec3 = append(d.nsec3, rr)
			}
		}
	}
	return d
}

// signed judges the signatures of one RRset, and the proof that it is allowed to
// stand for its owner where it came of a wildcard.
func (v *validator) signed(s *rrset, r *dns.Msg, answer []*rrset) error {
	apex := v.zoneOf(s.owner, dns.TypeNone)
	if s.typ == dns.TypeDS || s.typ == dns.TypeNSEC && len(s.sigs) > 0 {
		apex = v.zoneOf(s.owner, s.typ)
		if len(s.sigs) > 0 {
			apex = strings.ToLower(s.sigs[0].SignerName)
		}
	}
	switch {
	case v.keys[apex] == nil, len(s.records) == 0:
		return nil
	case s.typ == dns.TypeNS && !strings.EqualFold(s.owner, apex):
		return nil // a delegation
	case s.typ == dns.TypeCNAME && len(s.sigs) == 0:
		return synthesized(s, answer)
	case len(s.sigs) != len(v.keys[apex]):
		return fmt.Errorf("%s %s has %d signatures, not %d", s.owner, dns.TypeToString[s.typ], len(s.sigs), len(v.keys[apex]))
	}
	for _, sig := range s.sigs {
		if err := v.verify(sig, s, apex); err != nil {
			return err
		}
		if ttl := s.records[0].Header().Ttl; sig.Hdr.Ttl != ttl {
			return fmt.Errorf("%s %s has TTL %d, its signature %d (RFC 4034 section 3)", s.owner, dns.TypeToString[s.typ], ttl, sig.Hdr.Ttl)
		}
		labels := dns.CountLabel(s.owner)
		if strings.HasPrefix(s.owner, "*.") {
			labels--
		}
		if int(sig.Labels) < labels && !v.denial(apex, r).expanded(strings.ToLower(s.owner), int(sig.Labels)) {
			return fmt.Errorf("no proof that the wildcard applies to %s", s.owner)
		}
	}
	return nil
}

func (v *validator) verify(sig *dns.RRSIG, s *rrset, apex string) error {
	id := fmt.Sprint(sig, s.records)
	if v.verified[id] {
		return nil
	}
	for _, k := range v.keys[apex] {
		if k.KeyTag() == sig.KeyTag && sig.Verify(k, s.records) == nil {
			v.verified[id] = true
			return nil
		}
	}
	return fmt.Errorf("%s %s: signature does not verify", s.owner, dns.TypeToString[s.typ])
}

// synthesized judges a CNAME record that a DNAME made (RFC 6672 section 5.3.1).
func synthesized(s *rrset, answer []*rrset) error {
	for _, a := range answer {
		if a.typ != dns.TypeDNAME || !dns.IsSubDomain(a.owner, s.owner) || strings.EqualFold(a.owner, s.owner) {
			continue
		}
		prefix := s.owner[:len(s.owner)-len(a.owner)]
		want := prefix + a.records[0].(*dns.DNAME).Target
		if strings.EqualFold(s.records[0].(*dns.CNAME).Target, want) && len(s.records) == 1 {
			return nil
		}
	}
	return fmt.Errorf("CNAME of %s is neither signed nor made by a DNAME", s.owner)
}

// TestProof asks for all names and types, and others, and judges every response.
func TestProof(t *testing.T) {
	zones := append(mixedZones(t), crossZones(t)...)
	judge(t, zones)
}

// TestProofRandom does so over zones that no one thought of.
func TestProofRandom(t *testing.T) {
	var zones [][]dns.RR
	r := rand.New(rand.NewPCG(*oracleSeed, 2))
	for i := range 12 {
		zones = append(zones, randomZone(t, r, fmt.Sprintf("z%d.test.", i), i))
	}
	judge(t, zones)
}

// TestProofRoot does so over the root's zone.
func TestProofRoot(t *testing.T) {
	for _, how := range []testkit.Signing{{}, {NSEC3: true}, {NSEC3: true, OptOut: true, Salt: "00"}} {
		judge(t, [][]dns.RR{rootZone(t, how)})
	}
}

// crossZones is zones with aliases into the zones of mixedZones.
func crossZones(t *testing.T) [][]dns.RR {
	text := "@ SOA ns hostmaster 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n"
	for _, to := range []string{"www", "nothing", "ent", "any.wild", "b.any.wild", "any.nwild", "www.sub", "www.secure", "x.dname-wild", "b.mix", "deep"} {
		label := strings.ReplaceAll(to, ".", "-")
		for _, zone := range []string{"nsec", "nsec3", "optout", "plain"} {
			text += fmt.Sprintf("%s.%s CNAME %s.%s.test.\n*.w.%s.%s CNAME %s.%s.test.\n", label, zone, to, zone, label, zone, to, zone)
		}
	}
	var zones [][]dns.RR
	for origin, how := range map[string]testkit.Signing{"cross.example.": {}, "cross3.example.": {NSEC3: true, OptOut: true}} {
		zones = append(zones, testkit.Sign(t, testkit.Records(t, origin, text), how))
	}
	return zones
}

func judge(t *testing.T, zones [][]dns.RR) {
	t.Helper()
	v := newValidator(t, zones)
	us := testkit.NewAsker(table(t, zones...).Answer)
	n := 0
	for _, z := range zones {
		for i, q := range questions(t, z) {
			n++
			q.TCP = true
			if i%3 == 0 {
				q.Name = strings.ToUpper(q.Name)
			}
			r := us.Ask(t, q)
			if !q.DO {
				unsigned(t, q, r)
				continue
			}
			if err := v.check(q, r); err != nil {
				t.Errorf("%s %s: %v\n%v", q.Name, dns.TypeToString[q.Type], err, r)
			}
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d responses", n)
}

// unsigned tells whether DNSSEC records are left to those who want them (RFC
// 3225 section 3).
func unsigned(t *testing.T, q testkit.Question, r *dns.Msg) {
	t.Helper()
	for _, rr := range append(append(r.Answer, r.Ns...), r.Extra...) {
		switch typ := rr.Header().Rrtype; typ {
		case dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3:
			if q.Type != typ && q.Type != dns.TypeANY {
				t.Errorf("%s %s without DO: %s", q.Name, dns.TypeToString[q.Type], rr)
			}
		}
	}
}
