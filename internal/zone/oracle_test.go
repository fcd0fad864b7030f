package zone_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/testkit"
)

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

// names is what a zone makes worth asking for: its names, empty non-terminals
// included, and names beside and below them.
func names(t testing.TB, records []dns.RR) (exact, beside []string) {
	t.Helper()
	apex := testkit.Apex(t, records)
	seen := map[string]bool{}
	for _, rr := range records {
		if rr.Header().Rrtype == dns.TypeNSEC3 && len(seen) > 10 && rr.Header().Name[0] > '4' {
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
		for _, label := range []string{"x", "*", "~", "x.y", "any.*"} {
			if below := label + "." + name; !seen[below] && len(below) < 250 {
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
				all = append(all, testkit.Question{Name: name, Type: typ, DO: true, Size: 4096, TCP: typ == dns.TypeANY || typ == dns.TypeRRSIG},
					testkit.Question{Name: name, Type: typ, Size: 4096, TCP: typ == dns.TypeANY || typ == dns.TypeRRSIG})
			}
		}
	}
	put(exact, exactTypes)
	put(beside, besideTypes)
	return all
}

// difference says in what got differs from want, or nothing. Authority is
// compared with and without an answer, less the NS records of the apex that
// some add to answers; additional data only in referrals, where it is glue.
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
	if len(want.Answer) == 0 && !want.Authoritative {
		return lessThan("additional", got.Extra, want.Extra)
	}
	return ""
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
