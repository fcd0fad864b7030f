package testkit

import (
	"crypto"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// Signing says how Sign signs. The zero value is one key and an NSEC chain.
type Signing struct {
	NSEC3      bool
	Iterations uint16
	Salt       string // hexadecimal
	OptOut     bool   // insecure delegations have no NSEC3 record (RFC 5155 §6)
	Keys       int    // that sign everything; 0 is 1
}

// Times of all signatures, in seconds since 1970: from 2020 to 2050.
const (
	inception  = 1577836800
	expiration = 2524608000
)

// signer is a zone while it is signed.
type signer struct {
	t     testing.TB
	how   Signing
	apex  string
	soa   *dns.SOA
	sets  map[string]map[uint16][]dns.RR // by owner, letters folded, and type
	names []string                       // authoritative owners and zone cuts, in canonical order
	keys  []*dns.DNSKEY
	priv  []crypto.Signer
	out   []dns.RR
}

// Sign adds DNSKEY records of new keys (algorithm 13), a chain of NSEC or NSEC3
// records, and signatures to a zone. What lies below a zone cut or a DNAME is
// left as it is (RFC 4035 §2).
func Sign(t testing.TB, records []dns.RR, how Signing) []dns.RR {
	t.Helper()
	s := &signer{t: t, how: how, apex: fold(Apex(t, records)), out: slices.Clone(records)}
	s.makeKeys()
	if how.NSEC3 {
		s.add(&dns.NSEC3PARAM{Hdr: s.header(s.apex, dns.TypeNSEC3PARAM, 0), Hash: 1, Iterations: how.Iterations,
			SaltLength: uint8(len(how.Salt) / 2), Salt: how.Salt})
	}
	s.index()
	if how.NSEC3 {
		s.chainNSEC3()
	} else {
		s.chainNSEC()
	}
	s.index()
	s.signAll()
	return s.out
}

func fold(name string) string { return strings.ToLower(name) }

func (s *signer) header(owner string, typ uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: typ, Class: dns.ClassINET, Ttl: ttl}
}

func (s *signer) add(rr dns.RR) { s.out = append(s.out, rr) }

func (s *signer) makeKeys() {
	for i := range max(1, s.how.Keys) {
		k := &dns.DNSKEY{Hdr: s.header(s.apex, dns.TypeDNSKEY, 3600), Flags: uint16(257 - i%2), Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
		priv, err := k.Generate(256)
		if err != nil {
			s.t.Fatalf("generating a key: %v", err)
		}
		s.keys, s.priv = append(s.keys, k), append(s.priv, priv.(crypto.Signer))
		s.add(k)
	}
}

// index groups the records and finds the owners that the zone answers for.
func (s *signer) index() {
	s.sets, s.names = map[string]map[uint16][]dns.RR{}, nil
	for _, rr := range s.out {
		h := rr.Header()
		name := fold(h.Name)
		if s.sets[name] == nil {
			s.sets[name] = map[uint16][]dns.RR{}
		}
		same := slices.ContainsFunc(s.sets[name][h.Rrtype], func(have dns.RR) bool { return dns.IsDuplicate(have, rr) })
		if !same {
			s.sets[name][h.Rrtype] = append(s.sets[name][h.Rrtype], rr)
		}
		if soa, ok := rr.(*dns.SOA); ok {
			s.soa = soa
		}
	}
	for name := range s.sets {
		if s.sets[name][dns.TypeNSEC3] != nil || !s.occluded(name) {
			s.names = append(s.names, name)
		}
	}
	slices.SortFunc(s.names, CompareNames)
}

// occluded tells whether name lies below a zone cut or a DNAME.
func (s *signer) occluded(name string) bool {
	for name != s.apex {
		name = Parent(name)
		if s.cut(name) || s.sets[name][dns.TypeDNAME] != nil {
			return true
		}
	}
	return false
}

func (s *signer) cut(name string) bool { return name != s.apex && s.sets[name][dns.TypeNS] != nil }

func (s *signer) insecure(name string) bool {
	return s.cut(name) && s.sets[name][dns.TypeDS] == nil
}

// bitmap is the types of a name that the zone answers for, in order.
func (s *signer) bitmap(name string, more ...uint16) []uint16 {
	types := slices.Clone(more)
	for typ := range s.sets[name] {
		if !s.cut(name) || typ == dns.TypeNS || typ == dns.TypeDS {
			types = append(types, typ)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// minimum is the TTL of negative answers (RFC 9077).
func (s *signer) minimum() uint32 { return min(s.soa.Hdr.Ttl, s.soa.Minttl) }

func (s *signer) chainNSEC() {
	for i, name := range s.names {
		next := s.names[(i+1)%len(s.names)]
		s.add(&dns.NSEC{Hdr: s.header(name, dns.TypeNSEC, s.minimum()), NextDomain: next,
			TypeBitMap: s.bitmap(name, dns.TypeNSEC, dns.TypeRRSIG)})
	}
}

// chainNSEC3 makes a record of each name, empty non-terminals included; under
// opt-out not of insecure delegations, nor of what exists above them alone.
func (s *signer) chainNSEC3() {
	hashes := map[string]string{} // of hash to name
	for _, name := range s.names {
		if s.how.OptOut && s.insecure(name) {
			continue
		}
		for ; ; name = Parent(name) {
			hashes[dns.HashName(name, dns.SHA1, s.how.Iterations, s.how.Salt)] = name
			if name == s.apex {
				break
			}
		}
	}
	order := make([]string, 0, len(hashes))
	for h := range hashes {
		order = append(order, h)
	}
	slices.Sort(order)
	flags := uint8(0)
	if s.how.OptOut {
		flags = 1
	}
	for i, h := range order {
		name := hashes[h]
		var more []uint16
		if s.sets[name] != nil && !s.insecure(name) {
			more = append(more, dns.TypeRRSIG)
		}
		s.add(&dns.NSEC3{Hdr: s.header(below(fold(h), s.apex), dns.TypeNSEC3, s.minimum()), Hash: 1, Flags: flags,
			Iterations: s.how.Iterations, SaltLength: uint8(len(s.how.Salt) / 2), Salt: s.how.Salt,
			HashLength: 20, NextDomain: order[(i+1)%len(order)], TypeBitMap: s.bitmap(name, more...)})
	}
}

// signAll signs every authoritative RRset with every key.
func (s *signer) signAll() {
	for _, name := range s.names {
		for typ, set := range s.sets[name] {
			if s.cut(name) && typ != dns.TypeDS && typ != dns.TypeNSEC {
				continue
			}
			for i, k := range s.keys {
				sig := &dns.RRSIG{Hdr: s.header(set[0].Header().Name, dns.TypeRRSIG, set[0].Header().Ttl), Algorithm: k.Algorithm,
					Inception: inception, Expiration: expiration, KeyTag: k.KeyTag(), SignerName: s.apex}
				if err := sig.Sign(s.priv[i], set); err != nil {
					s.t.Fatalf("signing %s %s: %v", name, dns.TypeToString[typ], err)
				}
				s.add(sig)
			}
		}
	}
}

// Parent is the name without its first label; the root's is the root.
func Parent(name string) string {
	if i, end := dns.NextLabel(name, 0); !end {
		return name[i:]
	}
	return "."
}

func below(label, name string) string {
	if name == "." {
		return label + "."
	}
	return label + "." + name
}

// CompareNames orders names canonically (RFC 4034 §6.1). It is written apart
// from the server's own order, so that tests can judge that.
func CompareNames(a, b string) int {
	x, y := rawLabels(a), rawLabels(b)
	for i := 1; i <= min(len(x), len(y)); i++ {
		if c := strings.Compare(x[len(x)-i], y[len(y)-i]); c != 0 {
			return c
		}
	}
	return len(x) - len(y)
}

// rawLabels is the labels of a name, letters folded, without escapes.
func rawLabels(name string) []string {
	buf := make([]byte, 256)
	if _, err := dns.PackDomainName(fold(dns.Fqdn(name)), buf, 0, nil, false); err != nil {
		return nil
	}
	var labels []string
	for i := 0; buf[i] != 0; i += int(buf[i]) + 1 {
		labels = append(labels, string(buf[i+1:i+1+int(buf[i])]))
	}
	return labels
}
