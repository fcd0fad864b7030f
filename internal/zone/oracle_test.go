package zone_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/testkit"
)

// reason excuses an answer that differs from those of both servers.
type reason struct {
	why string
	is  func(q testkit.Question) bool
}

// reasons is where our answer may differ from those of both servers.
var reasons = []reason{
	{"each stops an endless chain elsewhere", func(q testkit.Question) bool { return strings.Contains(q.Name, ".dname-self.") }},
	{"a QNAME with * for a label is expanded and proven like any other (RFC 4592 section 2.3): Knot DNS leaves the proof out, NSD finds no wildcard",
		func(q testkit.Question) bool {
			return q.DO && strings.HasPrefix(q.Name, "*.") && wildApex.MatchString(q.Name)
		}},
	{"a target . of ServiceMode is the owner, whose addresses help (RFC 9460 section 4.1); beside AliasMode Knot DNS proves that the target has no HTTPS",
		func(q testkit.Question) bool { return q.Type == dns.TypeSVCB || q.Type == dns.TypeHTTPS }},
}

// wildApex is names with * below a child of an apex that has a wildcard.
var wildApex = regexp.MustCompile(`^\*\.[0-9a-z]+\.child\.`)

// TestOracle puts the same questions to us, to Knot DNS and to NSD. Where both
// of them answer in another way than we do, there has to be a reason.
func TestOracle(t *testing.T) { compare(t, mixedZones(t), false) }

// TestOracleRoot does so over the root's zone.
func TestOracleRoot(t *testing.T) {
	for _, how := range []testkit.Signing{{}, {NSEC3: true}, {NSEC3: true, OptOut: true}} {
		compare(t, [][]dns.RR{rootZone(t, how)}, true)
	}
}

// TestOracleRandom does so over zones that no one thought of. Where the two
// differ from each other as well, TestProof tells whether we are right.
func TestOracleRandom(t *testing.T) {
	var zones [][]dns.RR
	r := rand.New(rand.NewPCG(*oracleSeed, 1))
	for i := range 14 {
		zones = append(zones, randomZone(t, r, fmt.Sprintf("z%d.test.", i), i))
	}
	compare(t, zones, true)
}

var oracleSeed = flag.Uint64("oracle.seed", 1, "seed of the random zones that are compared")

// randomZone makes a zone of few labels, so that they meet: cuts, wildcards,
// aliases, and what is occluded. i chooses how it is signed.
func randomZone(t *testing.T, r *rand.Rand, apex string, i int) []dns.RR {
	t.Helper()
	labels := []string{"a", "b", "c", "*", "ns"}
	name := func() string {
		n := apex
		for range 1 + r.IntN(4) {
			n = labels[r.IntN(len(labels))] + "." + n
		}
		return n
	}
	used := map[string]string{} // what a name is for: its types do not go together with others
	text := "@ 300 SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\n@ NS a.b\nns A 192.0.2.1\n"
	used["ns."+apex] = "A"
	for n := range 40 {
		owner := name()
		kind := []string{"A", "A", "TXT", "MX", "NS", "NS", "CNAME", "DNAME"}[r.IntN(8)]
		if used[owner] != "" || used["ns."+owner] != "" || kind == "NS" && strings.HasPrefix(owner, "*.") || kind == "DNAME" && strings.HasPrefix(owner, "*.") {
			continue
		}
		used[owner] = kind
		switch kind {
		case "A":
			text += fmt.Sprintf("%[1]s A 192.0.2.%[2]d\n%[1]s AAAA 2001:db8::%[2]d\n", owner, n)
		case "TXT":
			text += fmt.Sprintf("%s TXT \"%d\"\n", owner, n)
		case "MX":
			text += fmt.Sprintf("%s MX 10 %s\n", owner, name())
		case "NS":
			text += fmt.Sprintf("%[1]s NS ns.%[1]s\n%[1]s NS %[2]s\nns.%[1]s A 192.0.2.%[3]d\n", owner, name(), n)
			used["ns."+owner] = "A"
			if r.IntN(3) == 0 {
				text += fmt.Sprintf("%s DS 1 13 2 0102030405060708091011121314151617181920212223242526272829303132\n", owner)
			}
		default:
			text += fmt.Sprintf("%s %s %s\n", owner, kind, name())
		}
	}
	// Neither server loads a zone with names below a DNAME.
	records := slices.DeleteFunc(testkit.Records(t, apex, text), func(rr dns.RR) bool {
		for n := rr.Header().Name; n != apex; {
			if n = testkit.Parent(n); used[n] == "DNAME" {
				return true
			}
		}
		return false
	})
	switch i % 4 {
	case 0:
		return records
	case 1:
		return testkit.Sign(t, records, testkit.Signing{})
	case 2:
		return testkit.Sign(t, records, testkit.Signing{NSEC3: true})
	}
	return testkit.Sign(t, records, testkit.Signing{NSEC3: true, OptOut: true, Iterations: 2, Salt: "ab"})
}

// compare asks all three about all zones. split lets us have an answer of our
// own where each of the others has.
func compare(t *testing.T, zones [][]dns.RR, split bool) {
	t.Helper()
	knot, nsd := start(t, "knot", zones), start(t, "nsd", zones)
	us := testkit.NewAsker(table(t, zones...).Answer)
	asked, splits, excused := 0, 0, make([]int, len(reasons))
	for _, z := range zones {
		for _, q := range questions(t, z) {
			asked++
			got := us.Ask(t, q)
			fromKnot := knot.ask(t, q)
			k := difference(got, fromKnot)
			if k == "" {
				continue
			}
			fromNSD := nsd.ask(t, q)
			n := difference(got, fromNSD)
			if n == "" {
				continue
			}
			if split && difference(fromKnot, fromNSD) != "" {
				splits++
				continue
			}
			i := slices.IndexFunc(reasons, func(r reason) bool { return r.is(q) })
			if i < 0 {
				t.Errorf("%s %s DO=%t\n  Knot DNS: %s\n  NSD: %s", q.Name, dns.TypeToString[q.Type], q.DO, k, n)
				continue
			}
			excused[i]++
		}
	}
	t.Logf("%d questions, %d with three answers", asked, splits)
	for i, n := range excused {
		if n == 0 && !split {
			t.Errorf("a reason that excuses nothing: %s", reasons[i].why)
		}
		t.Logf("%d differ: %s", n, reasons[i].why)
	}
}

// mixedZones is signed and unsigned zones, made of the templates in testdata.
func mixedZones(t *testing.T) [][]dns.RR {
	t.Helper()
	var zones [][]dns.RR
	load := func(origin, file string, how *testkit.Signing) {
		text, err := os.ReadFile(filepath.Join("testdata", "oracle", file))
		if err != nil {
			t.Fatal(err)
		}
		records := testkit.Records(t, origin, string(text))
		if how != nil {
			records = testkit.Sign(t, records, *how)
		}
		zones = append(zones, records)
	}
	load("plain.test.", "mixed.zone", nil)
	load("nsec.test.", "mixed.zone", &testkit.Signing{})
	load("nsec3.test.", "mixed.zone", &testkit.Signing{NSEC3: true, Keys: 2})
	load("optout.test.", "mixed.zone", &testkit.Signing{NSEC3: true, OptOut: true, Iterations: 5, Salt: "aabbccdd"})
	load("child.nsec.test.", "apex.zone", &testkit.Signing{NSEC3: true})
	load("child.optout.test.", "apex.zone", &testkit.Signing{})
	load("child.plain.test.", "apex.zone", nil)
	load("dname.example.", "dname.zone", &testkit.Signing{})
	load("dname3.example.", "dname.zone", &testkit.Signing{NSEC3: true})
	load("empty.example.", "empty.zone", &testkit.Signing{})
	load("empty3.example.", "empty.zone", &testkit.Signing{NSEC3: true, OptOut: true})
	return zones
}

// rootZone is the root's zone, with an insecure and a secure delegation.
func rootZone(t *testing.T, how testkit.Signing) []dns.RR {
	t.Helper()
	return testkit.Sign(t, testkit.Records(t, ".", `
. 86400 SOA a.root-servers.net. nstld 1 1800 900 604800 86400
. NS a.root-servers.net.
. NS ns.org.
net. NS a.gtld-servers.net.
a.gtld-servers.net. A 192.5.6.30
a.root-servers.net. A 198.41.0.4
org. NS ns.org.
org. DS 1 13 2 0102030405060708091011121314151617181920212223242526272829303132
ns.org. A 192.0.2.1
in.here. TXT "data"
*.wild. TXT "wild"
`), how)
}

// names is what a zone makes worth asking for: its names, empty non-terminals
// included, and names beside and below them.
func names(t testing.TB, records []dns.RR) (exact, beside []string) {
	t.Helper()
	apex := testkit.Apex(t, records)
	seen := map[string]bool{}
	for _, rr := range records {
		if _, hashed := rr.(*dns.NSEC3); hashed && rr.Header().Name[0] > '0' {
			continue // some are enough
		}
		for name := rr.Header().Name; !seen[name]; name = testkit.Parent(name) {
			seen[name] = true
			if strings.EqualFold(name, apex) {
				break
			}
		}
	}
	for name := range seen {
		exact = append(exact, name)
		for _, label := range []string{"*", "~", "x.y"} {
			if below := label + "." + strings.TrimPrefix(name, "."); !seen[below] && len(below) < 250 {
				beside = append(beside, below)
			}
		}
	}
	sort.Strings(exact)
	sort.Strings(beside)
	return exact, beside
}

var (
	exactTypes = []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeNS, dns.TypeMX, dns.TypeTXT, dns.TypeCNAME, dns.TypeDNAME, dns.TypeDS,
		dns.TypeSOA, dns.TypeNSEC, dns.TypeRRSIG, dns.TypeANY, dns.TypeDNSKEY, dns.TypeNSEC3PARAM, dns.TypeSRV, dns.TypeSVCB, dns.TypeHTTPS}
	besideTypes = []uint16{dns.TypeA, dns.TypeNS, dns.TypeDS, dns.TypeCNAME, dns.TypeANY}
)

// questions is what the servers are asked about a zone.
func questions(t testing.TB, records []dns.RR) []testkit.Question {
	t.Helper()
	exact, beside := names(t, records)
	var all []testkit.Question
	put := func(names []string, types []uint16) {
		for _, name := range names {
			for _, typ := range types {
				// Servers differ in what they leave out of ANY over UDP.
				all = append(all, testkit.Question{Name: name, Type: typ, DO: true, Size: 4096},
					testkit.Question{Name: name, Type: typ, Size: 4096})
			}
		}
	}
	put(exact, exactTypes)
	put(beside, besideTypes)
	return all
}

// difference says in what got differs from want, or nothing.
func difference(got, want *dns.Msg) string {
	switch {
	case got.Rcode != want.Rcode:
		return fmt.Sprintf("rcode %s, not %s", dns.RcodeToString[got.Rcode], dns.RcodeToString[want.Rcode])
	case got.Authoritative != want.Authoritative:
		return fmt.Sprintf("AA %t, not %t", got.Authoritative, want.Authoritative)
	case got.Truncated || want.Truncated:
		return fmt.Sprintf("TC %t and %t", got.Truncated, want.Truncated)
	}
	if d := lessThan("answer", got.Answer, want.Answer); d != "" {
		return d
	}
	if d := lessThan("authority", got.Ns, want.Ns); d != "" {
		return d
	}
	return lessThan("additional", got.Extra, want.Extra)
}

// lessThan compares the records of a section, duplicates included, in any order.
func lessThan(section string, got, want []dns.RR) string {
	g, w := lines(got), lines(want)
	if slices.Equal(g, w) {
		return ""
	}
	var more, less []string
	for _, l := range g {
		if !slices.Contains(w, l) {
			more = append(more, l)
		}
	}
	for _, l := range w {
		if !slices.Contains(g, l) {
			less = append(less, l)
		}
	}
	return fmt.Sprintf("%s\n    more %q\n    less %q\n    (%d and %d records)", section, more, less, len(g), len(w))
}

// lines is records as text, owners folded, sorted.
func lines(records []dns.RR) []string {
	var all []string
	for _, rr := range records {
		if rr.Header().Rrtype == dns.TypeOPT {
			continue
		}
		rr = dns.Copy(rr)
		rr.Header().Name = strings.ToLower(rr.Header().Name)
		all = append(all, strings.ToLower(rr.String()))
	}
	sort.Strings(all)
	return all
}
