package zone_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/zone"
)

// build makes a zone of records, whose apex is the owner of the SOA record.
func build(t testing.TB, records []dns.RR) *zone.Zone {
	t.Helper()
	b := zone.NewBuilder(testkit.Name(t, testkit.Apex(t, records)), len(records))
	testkit.Fill(t, b, records)
	z, err := b.Zone()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// table makes a table of zones, each given by its records.
func table(t testing.TB, zones ...[]dns.RR) *zone.Table {
	t.Helper()
	all := make([]*zone.Zone, 0, len(zones))
	for _, records := range zones {
		all = append(all, build(t, records))
	}
	return zone.NewTable(all)
}
