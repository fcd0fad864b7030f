package act

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
)

func TestHosts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	text := "# hosts\nfile.example 192.0.2.50 # a comment\ntwice.example 192.0.2.2\n\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := mustObject(t, plainEnv(), "hosts", func(a *step.HostsArgs) {
		a.Entries = []string{
			"v4.example 192.0.2.1 192.0.2.2",
			"both.example 192.0.2.1 2001:db8::1",
			"full:V6.Example. 2001:db8::1",
			"domain:below.example 192.0.2.3", "deep.below.example 192.0.2.4",
			"keyword:tracker 0.0.0.0", `regexp:^r\d+\.example$ 192.0.2.5`,
			"nothing.example", "nothing.below.example",
			"twice.example 192.0.2.1",
		}
		a.Files = []string{file}
	})
	const soa = " 300 IN SOA localhost. nobody.invalid. 1 1800 900 604800 86400"
	for _, c := range []struct {
		name, qname       string
		typ, class        uint16
		answer, authority string // both empty where it goes on
	}{
		{"IPv4, TTL 10", "v4.example.", dns.TypeA, 1, "v4.example. 10 IN A 192.0.2.1\nv4.example. 10 IN A 192.0.2.2", ""},
		{"letters as they were asked", "V4.example.", dns.TypeA, 1, "V4.example. 10 IN A 192.0.2.1\nV4.example. 10 IN A 192.0.2.2", ""},
		{"IPv6", "v6.example.", dns.TypeAAAA, 1, "v6.example. 10 IN AAAA 2001:db8::1", ""},
		{"both, IPv4", "both.example.", dns.TypeA, 1, "both.example. 10 IN A 192.0.2.1", ""},
		{"both, IPv6", "both.example.", dns.TypeAAAA, 1, "both.example. 10 IN AAAA 2001:db8::1", ""},
		{"known, but by IPv4 alone: NODATA", "v4.example.", dns.TypeAAAA, 1, "", "v4.example." + soa},
		{"known, but by IPv6 alone: NODATA", "v6.example.", dns.TypeA, 1, "", "v6.example." + soa},
		{"a pattern without a kind is a full name", "a.v4.example.", dns.TypeA, 1, "", ""},
		{"domain", "a.below.example.", dns.TypeA, 1, "a.below.example. 10 IN A 192.0.2.3", ""},
		{"full before domain", "deep.below.example.", dns.TypeA, 1, "deep.below.example. 10 IN A 192.0.2.4", ""},
		{"regexp", "r12.example.", dns.TypeA, 1, "r12.example. 10 IN A 192.0.2.5", ""},
		{"keyword", "a.tracker.example.", dns.TypeA, 1, "a.tracker.example. 10 IN A 0.0.0.0", ""},
		{"of two lines the later, files behind entries", "twice.example.", dns.TypeA, 1, "twice.example. 10 IN A 192.0.2.2", ""},
		{"from a file, a comment behind it", "file.example.", dns.TypeA, 1, "file.example. 10 IN A 192.0.2.50", ""},
		{"a pattern without addresses is no match", "nothing.example.", dns.TypeA, 1, "", ""},
		{"nor does one with addresses match behind it", "nothing.below.example.", dns.TypeA, 1, "", ""},
		{"an unknown name", "www.example.", dns.TypeA, 1, "", ""},
		{"another type", "v4.example.", dns.TypeTXT, 1, "", ""},
		{"another class", "v4.example.", dns.TypeA, 3, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := asks(t, c.qname, c.typ, class(c.class))
			if c.answer+c.authority == "" {
				checkGoesOn(t, a, r)
				return
			}
			next := a.(policy.Step).Do(r)
			m := fitted(t, r)
			checkMade(t, r, next, m)
			if section(m.Answer) != c.answer || section(m.Ns) != c.authority {
				t.Errorf("response\n%v", m)
			}
		})
	}
}
