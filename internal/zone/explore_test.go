package zone_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/testkit"
)

func TestExplore(t *testing.T) {
	zones := mixedZones(t)
	knot, nsd := start(t, "knot", zones), start(t, "nsd", zones)
	us := testkit.NewAsker(table(t, zones...).Answer)
	count := map[string]int{}
	n, shown := 0, map[string]int{}
	for _, z := range zones {
		for _, q := range questions(t, z) {
			n++
			got := us.Ask(t, q)
			k, s := difference(got, knot.ask(t, q)), difference(got, nsd.ask(t, q))
			key := fmt.Sprintf("knot:%v nsd:%v", strings.SplitN(k, "\n", 2)[0], strings.SplitN(s, "\n", 2)[0])
			count[key]++
			if k != "" && s != "" && true {
				ks := difference(nsd.ask(t, q), knot.ask(t, q)) == ""
				if !ks {
					key += " disagree"
				}
				if shown[key]++; shown[key] > 8 || !ks && shown[key] > 3 {
					continue
				}
				t.Logf("%s %s DO=%t  agree=%t\n KNOT %s\n NSD %s", q.Name, dns.TypeToString[q.Type], q.DO, ks, k, s)
			}
		}
	}
	t.Log(n, "queries")
	for k, v := range count {
		t.Log(v, k)
	}
}
