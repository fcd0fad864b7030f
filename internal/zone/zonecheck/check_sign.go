package zonecheck

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// signature is an RRSIG record taken apart (RFC 4034 §3.1).
type signature struct {
	record           *zonefile.Record
	covered          uint16
	algorithm        uint8
	labels           uint8
	ttl              uint32
	expires, incepts uint32
	tag              uint16
	signer           wire.Name
}

func parseSignature(r *zonefile.Record) signature {
	d := r.RDATA
	return signature{
		record:    r,
		covered:   binary.BigEndian.Uint16(d),
		algorithm: d[2],
		labels:    d[3],
		ttl:       binary.BigEndian.Uint32(d[4:]),
		expires:   binary.BigEndian.Uint32(d[8:]),
		incepts:   binary.BigEndian.Uint32(d[12:]),
		tag:       binary.BigEndian.Uint16(d[16:]),
		signer:    d[18 : 18+nameLen(d[18:])],
	}
}

// nameLen is the length of the well-formed wire name at the start of b.
func nameLen(b []byte) int {
	n := 0
	for b[n] != 0 {
		n += int(b[n]) + 1
	}
	return n + 1
}

// proof is a signature to verify with a key, and what came of it.
type proof struct {
	sig signature
	set []zonefile.Record
	key *dns.DNSKEY
	err error
}

// dnssecRules judges signatures and the proofs of absence, if the zone has
// keys.
func (k *checker) dnssecRules() {
	keys := k.apexNode().rrset(dns.TypeDNSKEY)
	signed := slices.ContainsFunc(k.nodes, func(n node) bool { return n.has(dns.TypeRRSIG) })
	switch {
	case len(keys) == 0 && signed:
		k.report(zonefile.Warning, nil, "add the DNSKEY records of the keys it was signed with", "signatures but no DNSKEY record at the apex")
		return
	case len(keys) == 0:
		return
	case !signed:
		k.report(zonefile.Warning, &keys[0], "sign the zone", "DNSKEY record but no signature in the zone")
		return
	}
	var proofs []proof
	parsed := parseKeys(keys)
	for i := range k.nodes {
		if n := &k.nodes[i]; n.status == authoritative || n.status == atCut {
			proofs = append(proofs, k.signatures(n, parsed)...)
		}
	}
	verifyAll(proofs, cmp.Or(k.o.Workers, runtime.GOMAXPROCS(0)))
	for _, p := range proofs {
		if errors.Is(p.err, dns.ErrAlg) {
			k.report(zonefile.Warning, p.sig.record, "", "signature of algorithm %d cannot be checked", p.sig.algorithm)
		} else if p.err != nil {
			k.report(zonefile.Error, p.sig.record, "sign the zone again", "signature of the %s records of %s does not verify: %v",
				wire.TypeString(p.sig.covered), p.sig.record.Owner.String(), strings.TrimPrefix(p.err.Error(), "dns: "))
		}
	}
	k.chainRules()
}

// parseKeys is the keys that may sign the zone (RFC 4034 §2.1.1).
func parseKeys(set []zonefile.Record) []*dns.DNSKEY {
	var keys []*dns.DNSKEY
	for i := range set {
		if key, ok := toRR(&set[i]).(*dns.DNSKEY); ok && key.Flags&dns.ZONE != 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// toRR is a record as miekg/dns has it, nil if it cannot have it.
func toRR(r *zonefile.Record) dns.RR {
	rr, _, err := dns.UnpackRRWithHeader(dns.RR_Header{
		Name: dns.CanonicalName(r.Owner.String()), Rrtype: r.Type, Class: r.Class, Ttl: r.TTL, Rdlength: uint16(len(r.RDATA)),
	}, r.RDATA, 0)
	if err != nil {
		return nil
	}
	return rr
}

// signatures judges the signatures of a name by themselves and returns those
// that are worth verifying.
func (k *checker) signatures(n *node, keys []*dns.DNSKEY) []proof {
	var sigs []signature
	rrsigs := n.rrset(dns.TypeRRSIG)
	for i := range rrsigs {
		sigs = append(sigs, parseSignature(&rrsigs[i]))
	}
	var proofs []proof
	n.each(func(set []zonefile.Record) {
		if t := set[0].Type; t != dns.TypeRRSIG && (n.status != atCut || t == dns.TypeDS || t == dns.TypeNSEC) {
			proofs = append(proofs, k.setSignatures(n, set, sigs, keys)...)
		}
	})
	for _, s := range sigs {
		if !n.has(s.covered) {
			k.report(zonefile.Warning, s.record, "remove it", "signature of %s records, which %s has not", wire.TypeString(s.covered), n.name.String())
		} else if n.status == atCut && s.covered != dns.TypeDS && s.covered != dns.TypeNSEC {
			k.report(zonefile.Warning, s.record, "remove it", "signature of %s records at a zone cut (RFC 4035 §2.2)", wire.TypeString(s.covered))
		}
	}
	return proofs
}

// setSignatures is signatures for one RRset that must be signed (RFC 4035
// §2.2). Sigs are all signatures of the name.
func (k *checker) setSignatures(n *node, set []zonefile.Record, sigs []signature, keys []*dns.DNSKEY) []proof {
	var proofs []proof
	found := false
	for _, s := range sigs {
		if s.covered != set[0].Type {
			continue
		}
		found = true
		if key := k.signature(n, s, set, keys); key != nil {
			proofs = append(proofs, proof{sig: s, set: set, key: key})
		}
	}
	if len(proofs) == 0 {
		what := "no signature by a key of the zone"
		if !found {
			what = "no signature"
		}
		k.report(zonefile.Error, &set[0], "sign the zone again", "%s records of %s have %s", wire.TypeString(set[0].Type), n.name.String(), what)
	}
	return proofs
}

// signature judges one signature of a set without arithmetic. It returns the
// key to verify it with, nil if there is none or no use in it.
func (k *checker) signature(n *node, s signature, set []zonefile.Record, keys []*dns.DNSKEY) *dns.DNSKEY {
	at, what := s.record, "signature of the "+wire.TypeString(s.covered)+" records of "+n.name.String()
	const mend = "sign the zone again"
	if len(s.signer) != len(k.apex) || !wire.EqualFold(s.signer, k.apex) {
		k.report(zonefile.Error, at, mend, "%s is by %s, not by the zone %s", what, s.signer.String(), k.apex.String())
		return nil
	}
	if want := signedLabels(n.name); int(s.labels) != want {
		k.report(zonefile.Error, at, mend, "%s is of %d labels, not of %d", what, s.labels, want)
		return nil
	}
	if s.ttl != set[0].TTL {
		k.report(zonefile.Error, at, mend, "%s has the original TTL %d, the records have %d", what, s.ttl, set[0].TTL)
	}
	if at.TTL != set[0].TTL {
		k.report(zonefile.Warning, at, "give it the TTL of what it signs", "%s has the TTL %d, the records have %d", what, at.TTL, set[0].TTL)
	}
	if now := k.o.Now; now != 0 && int32(s.expires-uint32(now)) < 0 { // RFC 4034 §3.1.5: serial number arithmetic
		k.report(zonefile.Warning, at, mend, "%s has expired", what)
	} else if now != 0 && int32(s.incepts-uint32(now)) > 0 {
		k.report(zonefile.Warning, at, "look at the clock of the signer", "%s is not valid yet", what)
	}
	i := slices.IndexFunc(keys, func(key *dns.DNSKEY) bool { return key.Algorithm == s.algorithm && key.KeyTag() == s.tag })
	if i < 0 {
		k.report(zonefile.Warning, at, "remove it, or add the DNSKEY record", "%s is by key %d of algorithm %d, which the zone does not have", what, s.tag, s.algorithm)
		return nil
	}
	return keys[i]
}

// signedLabels is what the labels field of a signature must be: the labels of
// the owner without root and wildcard (RFC 4034 §3.1.3).
func signedLabels(n wire.Name) int {
	count := 0
	for off := 0; n[off] != 0; off += int(n[off]) + 1 {
		count++
	}
	if isWildcard(n) {
		count--
	}
	return count
}

func isWildcard(n wire.Name) bool { return len(n) > 2 && n[0] == 1 && n[1] == '*' }

// verifyAll verifies proofs on several goroutines and returns when they have
// ended.
func verifyAll(proofs []proof, workers int) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, len(proofs)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(proofs)); i = next.Add(1) - 1 {
				proofs[i].err = proofs[i].verify()
			}
		})
	}
	wg.Wait()
}

func (p *proof) verify() error {
	sig, ok := toRR(p.sig.record).(*dns.RRSIG)
	if !ok {
		return errors.New("it is not well formed")
	}
	set := make([]dns.RR, 0, len(p.set))
	for i := range p.set {
		rr := toRR(&p.set[i])
		if rr == nil {
			return fmt.Errorf("record of line %d is not well formed", p.set[i].Line)
		}
		set = append(set, rr)
	}
	return sig.Verify(p.key, set)
}
