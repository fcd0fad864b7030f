package zone_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
)

// empty is a zone with nothing but a SOA record.
func empty(t *testing.T, apex string) *zone.Zone {
	t.Helper()
	return build(t, testkit.Records(t, apex, "@ 60 SOA a. b. 1 2 3 4 5\n"))
}

// find is the apex of the zone that a table finds, or "none".
func find(t *testing.T, tab *zone.Table, name string, from int) string {
	t.Helper()
	n := testkit.Name(t, name)
	var l wire.Labels
	l.Scan(n)
	if z := tab.Find(n, &l, from); z != nil {
		return z.Name().String()
	}
	return "none"
}

// TestLongestMatch: RFC 1034 section 4.3.2, step 2.
func TestLongestMatch(t *testing.T) {
	var zones []*zone.Zone
	for _, apex := range []string{"example.", "b.example.", "D.c.b.Example.", "other.", "0.0.10.in-addr.arpa."} {
		zones = append(zones, empty(t, apex))
	}
	tab := zone.NewTable(zones)
	if len(tab.Zones()) != 5 {
		t.Errorf("%d zones", len(tab.Zones()))
	}
	for _, c := range []struct {
		name string
		from int
		want string
	}{
		{"example.", 0, "example."},
		{"EXAMPLE.", 0, "example."},
		{"a.example.", 0, "example."},
		{"b.example.", 0, "b.example."},
		{"c.B.example.", 0, "b.example."},
		{"d.c.b.example.", 0, "d.c.b.example."},
		{"x.y.d.c.b.example.", 0, "d.c.b.example."},
		{"d.c.b.example.", 1, "b.example."},
		{"b.example.", 1, "example."},
		{"example.", 1, "none"},
		{"ab.example.", 0, "example."},
		{"bexample.", 0, "none"},
		{"com.", 0, "none"},
		{".", 0, "none"},
		{".", 1, "none"},
		{"1.0.0.10.in-addr.arpa.", 0, "0.0.10.in-addr.arpa."},
	} {
		if got := find(t, tab, c.name, c.from); got != c.want {
			t.Errorf("%s from label %d: %s, want %s", c.name, c.from, got, c.want)
		}
	}
}

// TestRootZone: the root's zone takes what no other has.
func TestRootZone(t *testing.T) {
	tab := zone.NewTable([]*zone.Zone{empty(t, "."), empty(t, "a.b.")})
	for name, want := range map[string]string{".": ".", "b.": ".", "a.b.": "a.b.", "x.a.b.": "a.b.", "a.": ".", strings.Repeat("x.", 127): "."} {
		if got := find(t, tab, name, 0); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestNoZones: a table may be empty.
func TestNoZones(t *testing.T) {
	if got := find(t, zone.NewTable(nil), "example.", 0); got != "none" {
		t.Error(got)
	}
}

// TestManyZones: apexes of all depths, found among many.
func TestManyZones(t *testing.T) {
	var zones []*zone.Zone
	for i := range 2000 {
		zones = append(zones, empty(t, fmt.Sprintf("zone%d.test.", i)))
	}
	for n := 1; n <= 127; n++ {
		zones = append(zones, empty(t, strings.Repeat("d.", n)))
	}
	tab := zone.NewTable(zones)
	for i := range 2000 {
		want := fmt.Sprintf("zone%d.test.", i)
		if got := find(t, tab, "www."+want, 0); got != want {
			t.Fatalf("www.%s: %s", want, got)
		}
	}
	for n := 1; n <= 126; n++ {
		want := strings.Repeat("d.", n)
		if got := find(t, tab, "x."+want, 0); got != want {
			t.Errorf("below %d labels: %s", n, got)
		}
	}
	if got := find(t, tab, "zone2000.test.", 0); got != "none" {
		t.Error(got)
	}
}

// TestBroken: a zone that could not be loaded is answered for, with SERVFAIL, and
// aliases are not followed into it.
func TestBroken(t *testing.T) {
	broken := zone.Broken(testkit.Name(t, "Broken.test."))
	good := build(t, testkit.Records(t, "good.test.", "@ 60 SOA a b 1 2 3 4 5\nx CNAME www.broken.test.\n"))
	if !broken.Broken() || good.Broken() {
		t.Error("Broken() does not tell them apart")
	}
	source := serve.SourceNone
	tab := zone.NewTable([]*zone.Zone{broken, good})
	us := testkit.NewAsker(func(r *serve.Request) (wire.Rcode, bool) {
		rcode, found := tab.Answer(r)
		source = r.Note.Source
		return rcode, found
	})
	for _, name := range []string{"broken.test.", "www.broken.test."} {
		r := us.Ask(t, testkit.Question{Name: name, Type: dns.TypeA})
		if r.Rcode != dns.RcodeServerFailure || r.Authoritative || source != serve.SourceError {
			t.Errorf("%s: %v, source %s", name, r, source)
		}
	}
	r := us.Ask(t, testkit.Question{Name: "x.good.test.", Type: dns.TypeA})
	if r.Rcode != dns.RcodeSuccess || len(r.Answer) != 1 || source != serve.SourceZone {
		t.Errorf("alias into it: %v, source %s", r, source)
	}
}
