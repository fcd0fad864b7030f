package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/config"
)

// ruled is a site of level 1 that forwards to o, with more sections. ads.txt and
// lan.txt lie beside its configuration.
func ruled(t *testing.T, o *other, more string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	s.write("ads.txt", "full:listed.example # one of them\n")
	s.write("lan.txt", "127.0.0.0/8\n")
	s.write("example.org", zoneText(1, "www A 192.0.2.80"))
	file := filepath.Join(s.dir, "waymark.yaml")
	text := "listen: [\"udp://127.0.0.1:1\", \"tcp://127.0.0.1:1\"]\n" +
		"zones: {name: example.org, file: example.org}\n" +
		"forward: {to: \"udp://" + o.addr.String() + "\"}\n" + more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, problems, err := config.Load(file)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", problems, err)
	}
	for i := range p.Listen {
		p.Listen[i].Addr = addrOf("127.0.0.1:0")
	}
	s.plan = p
	return s
}

const ownRules = `
sets:
  - {name: ads, domains: ["domain:ads.example", "keyword:track"], files: ads.txt}
  - {name: lan, type: addresses, files: [lan.txt]}
  - {name: far, addresses: 192.0.2.0/24}
rules:
  - {if: $ads, do: reject 3}
  - {if: [client_ip $lan, "qname domain:hole.example", "!qtype 28"], do: black_hole 192.0.2.1}
  - {if: qname full:short.hole.example, do: ttl 7}
  - {if: [$far, "qname full:far.example"], do: reject 2}
  - {if: qname full:both.example, do: mark 1 2}
  - {if: "mark 2", do: reject 4}
  - {if: [has_resp, "qname full:kept.hole.example"], do: accept}
  - {if: "qname domain:hole.example", do: mark 3}
  - {if: [mark 3, "qname full:gone.hole.example"], do: drop_resp}
  - {if: "qname full:old.example", do: prefer_ipv4}
`

// TestRules: what the site's own rules answer is the answer, and what they do not
// answer is forwarded.
func TestRules(t *testing.T) {
	o := newOther(t, gives(t, "300 A 198.51.100.1"))
	r := ruled(t, o, ownRules).run(nil)
	for _, c := range []struct {
		about, name string
		typ         uint16
		want        string
		asked       int64 // of the upstream
	}{
		{"a set: the name", "ads.example.", dns.TypeA, "NXDOMAIN", 0},
		{"a set: below the name", "x.ADS.example.", dns.TypeAAAA, "NXDOMAIN", 0},
		{"a set: a keyword", "tracker.example.", dns.TypeA, "NXDOMAIN", 0},
		{"a set: from its file", "listed.example.", dns.TypeA, "NXDOMAIN", 0},
		{"a set: not below a full name", "x.listed.example.", dns.TypeA, "NOERROR 300 198.51.100.1", 1},
		{"addresses of our own", "x.hole.example.", dns.TypeA, "NOERROR 300 192.0.2.1", 0},
		{"another rule behind changes them", "short.hole.example.", dns.TypeA, "NOERROR 7 192.0.2.1", 0},
		{"or lets them go", "kept.hole.example.", dns.TypeA, "NOERROR 300 192.0.2.1", 0},
		{"or takes them away: then it is forwarded", "gone.hole.example.", dns.TypeA, "NOERROR 300 198.51.100.1", 1},
		{"a condition that must not match", "x.hole.example.", dns.TypeAAAA, "NOERROR 300 198.51.100.1", 1},
		{"a set that the client is not in", "far.example.", dns.TypeA, "NOERROR 300 198.51.100.1", 1},
		{"marks", "both.example.", dns.TypeA, "NOTIMP", 0},
		{"no rule", "other.example.", dns.TypeA, "NOERROR 300 198.51.100.1", 1},
		{"a rule that wraps the rest", "old.example.", dns.TypeAAAA, "NOERROR", 2},
		{"a zone comes first", "www.example.org.", dns.TypeA, "NOERROR 3600 192.0.2.80", 0},
	} {
		before := o.asked.Load()
		m := r.ask(c.name, c.typ)
		got := dns.RcodeToString[m.Rcode]
		for _, rr := range m.Answer {
			words := strings.Fields(rr.String())
			got += " " + words[1] + " " + words[len(words)-1]
		}
		if got != c.want {
			t.Errorf("%s: %s %s: %s, want %s", c.about, c.name, dns.TypeToString[c.typ], got, c.want)
		}
		if asked := o.asked.Load() - before; asked != c.asked {
			t.Errorf("%s: the upstream was asked %d times, want %d", c.about, asked, c.asked)
		}
	}
}

// TestRulesStrangers: who may not use forwarding meets no rule.
func TestRulesStrangers(t *testing.T) {
	o := newOther(t, silent)
	r := ruled(t, o, "access: {allow: []}\nrules: {do: black_hole 192.0.2.1}\n").run(nil)
	if m := r.ask("x.example.", dns.TypeA); m.Rcode != dns.RcodeRefused || len(m.Answer) > 0 {
		t.Errorf("a stranger: %s, want REFUSED", summaryOf(m))
	}
	if m := r.ask("www.example.org.", dns.TypeA); len(m.Answer) != 1 {
		t.Errorf("our zone: %s", summaryOf(m))
	}
}

// TestRulesAlone: without upstreams the rules are for all.
func TestRulesAlone(t *testing.T) {
	s := ruled(t, newOther(t, silent), "rules: {if: qname domain:hole.example, do: black_hole 192.0.2.1}\n")
	s.plan.Forward = nil
	r := s.run(nil)
	if m := r.ask("x.hole.example.", dns.TypeA); len(m.Answer) != 1 {
		t.Errorf("a rule: %s", summaryOf(m))
	}
	if m := r.ask("x.example.", dns.TypeA); m.Rcode != dns.RcodeRefused {
		t.Errorf("nothing: %s, want REFUSED", summaryOf(m))
	}
}
