package act

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
)

func TestArbitrary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "records")
	text := "$ORIGIN file.example.\n$TTL 7\n@ IN MX 10 mail\nmail IN A 192.0.2.25\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := mustObject(t, plainEnv(), "arbitrary", func(a *step.ArbitraryArgs) {
		a.Rules = []string{
			"WWW.example. 60 IN A 192.0.2.1",
			"hour.example. IN A 192.0.2.1",
			"www.example. 60 IN A 192.0.2.2\nwww.example. 30 IN A 192.0.2.3",
			"alias.example. 60 IN CNAME www.example.",
			`version.bind. 0 CH TXT "none of it"`,
			"odd.example. 60 IN TYPE65280 \\# 2 abcd",
		}
		a.Files = []string{file}
	})
	for _, c := range []struct {
		name, qname string
		typ, class  uint16
		want        string
	}{
		{"all records of the name and type", "www.example.", dns.TypeA, 1,
			"www.example. 60 IN A 192.0.2.1\nwww.example. 60 IN A 192.0.2.2\nwww.example. 30 IN A 192.0.2.3"},
		{"the name in any letters", "wWw.exaMple.", dns.TypeA, 1,
			"wWw.exaMple. 60 IN A 192.0.2.1\nwWw.exaMple. 60 IN A 192.0.2.2\nwWw.exaMple. 30 IN A 192.0.2.3"},
		{"an hour where no TTL is stated, whatever the rule before", "hour.example.", dns.TypeA, 1, "hour.example. 3600 IN A 192.0.2.1"},
		{"CNAME", "alias.example.", dns.TypeCNAME, 1, "alias.example. 60 IN CNAME www.example."},
		{"a CNAME is not followed", "alias.example.", dns.TypeA, 1, ""},
		{"$ORIGIN and $TTL of a file", "file.example.", dns.TypeMX, 1, "file.example. 7 IN MX 10 mail.file.example."},
		{"@ and relative names", "mail.file.example.", dns.TypeA, 1, "mail.file.example. 7 IN A 192.0.2.25"},
		{"class CH", "version.bind.", dns.TypeTXT, 3, `version.bind. 0 CH TXT "none of it"`},
		{"a type without a name", "odd.example.", 65280, 1, `odd.example. 60 CLASS1 TYPE65280 \# 2 abcd`},
		{"another class", "version.bind.", dns.TypeTXT, 1, ""},
		{"another type", "www.example.", dns.TypeAAAA, 1, ""},
		{"ANY is a type as well", "www.example.", dns.TypeANY, 1, ""},
		{"a name below", "a.www.example.", dns.TypeA, 1, ""},
		{"a name above", "example.", dns.TypeA, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := asks(t, c.qname, c.typ, class(c.class))
			if c.want == "" {
				checkGoesOn(t, a, r)
				return
			}
			next := a.(policy.Step).Do(r)
			m := fitted(t, r)
			checkMade(t, r, next, m)
			if got := section(m.Answer); got != c.want {
				t.Errorf("answer\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// What stands behind it changes the response and not the records.
func TestArbitraryKeepsItsRecords(t *testing.T) {
	a := mustObject(t, plainEnv(), "arbitrary", func(a *step.ArbitraryArgs) { a.Rules = []string{"www.example. 60 A 192.0.2.1"} })
	rules := []policy.Rule{rule(a), rule(made(t, plainEnv(), "ttl", "5"))}
	if m := done(t, asks(t, "www.example.", dns.TypeA), rules...); m.Answer[0].Header().Ttl != 5 {
		t.Errorf("response\n%v", m)
	}
	if m := done(t, asks(t, "www.example.", dns.TypeA), rules[0]); m.Answer[0].Header().Ttl != 60 {
		t.Errorf("response\n%v", m)
	}
}
