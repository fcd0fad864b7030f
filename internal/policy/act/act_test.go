package act

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
)

func kind(t *testing.T, name string) Kind {
	t.Helper()
	for _, k := range Kinds() {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("no action %s", name)
	return Kind{}
}

// do puts one question to an action and returns the response.
func do(t *testing.T, a policy.Step, name string, class, typ uint16) (policy.Next, *dns.Msg, *serve.Request) {
	t.Helper()
	m := new(dns.Msg)
	m.Question = []dns.Question{{Name: name, Qtype: typ, Qclass: class}}
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r := &serve.Request{Peer: &serve.Peer{}}
	if got := r.Receive(msg, make([]byte, 4096)); got != serve.Query {
		t.Fatalf("received as %d", got)
	}
	next := a.Do(r)
	if r.Out == nil {
		return next, nil, r
	}
	answer := new(dns.Msg)
	if err := answer.Unpack(r.Fit(1232)); err != nil {
		t.Fatal(err)
	}
	return next, answer, r
}

func TestChaos(t *testing.T) {
	a, err := kind(t, "chaos").Make(&Env{Chaos: Chaos{Identity: "ns1", Version: "2"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		typ  uint16
		want string // text, - for an answer without records, nothing where it goes on
	}{
		{"id.server.", dns.TypeTXT, "ns1"}, // RFC 4892 §3
		{"ID.Server.", dns.TypeTXT, "ns1"}, // RFC 4343 §3
		{"hostname.bind.", dns.TypeANY, "ns1"},
		{"version.server.", dns.TypeTXT, "2"},
		{"version.bind.", dns.TypeA, "-"},
		{"authors.bind.", dns.TypeTXT, ""},
		{"a.id.server.", dns.TypeTXT, ""},
		{"server.", dns.TypeTXT, ""},
	} {
		next, m, r := do(t, a.(policy.Step), c.name, dns.ClassCHAOS, c.typ)
		switch {
		case c.want == "":
			if next != policy.Go || m != nil {
				t.Errorf("%s: next %d, answered %v", c.name, next, m)
			}
			continue
		case next != policy.Stop || m == nil || !m.Authoritative || m.Rcode != 0 || r.Note.Source != serve.SourceLocal:
			t.Errorf("%s: next %d, answered %v", c.name, next, m)
			continue
		}
		got := "-"
		if len(m.Answer) == 1 {
			got = strings.Join(m.Answer[0].(*dns.TXT).Txt, "|")
			if h := m.Answer[0].Header(); h.Class != dns.ClassCHAOS || h.Ttl != 0 {
				t.Errorf("%s: answered %v", c.name, m.Answer)
			}
		}
		if got != c.want {
			t.Errorf("%s: answered %s, want %s", c.name, got, c.want)
		}
	}
}

// A character string has at most 255 octets (RFC 1035 §3.3), and what is not
// configured is not answered.
func TestChaosTexts(t *testing.T) {
	for size, want := range map[int]int{1: 1, 254: 254, 255: 255, 256: 255} {
		_, m, _ := do(t, step.NewChaos(strings.Repeat("x", size), ""), "id.server.", dns.ClassCHAOS, dns.TypeTXT)
		if got := m.Answer[0].(*dns.TXT).Txt; len(got) != 1 || len(got[0]) != want {
			t.Errorf("%d octets are answered as %q", size, got)
		}
	}
	if next, m, _ := do(t, step.NewChaos("me", ""), "version.bind.", dns.ClassCHAOS, dns.TypeTXT); next != policy.Go || m != nil {
		t.Errorf("a version that is not configured is answered: %v", m)
	}
}

func TestReject(t *testing.T) {
	for _, rcode := range []wire.Rcode{wire.Refused, wire.NXDomain, wire.ServFail, wire.NotAuth} {
		a, err := kind(t, "reject").Make(nil, rcode.String())
		if err != nil {
			t.Fatal(err)
		}
		next, m, r := do(t, a.(policy.Step), "www.example.", dns.ClassINET, dns.TypeA)
		if next != policy.Stop || m.Rcode != int(rcode) || m.Authoritative || r.Note.Source != serve.SourceRefused || len(m.Answer)+len(m.Ns) != 0 {
			t.Errorf("%v: next %d, answered %v", rcode, next, m)
		}
	}
}

func TestZoneGoesOn(t *testing.T) {
	if a, err := kind(t, "zone").Make(&Env{Zones: []*zone.Table{zone.NewTable(nil)}}, ""); a != nil || err != nil {
		t.Errorf("without zones: %v, %v; want no action", a, err)
	}
	if next, m, _ := do(t, Zone{zone.NewTable(nil)}, "www.example.", dns.ClassINET, dns.TypeA); next != policy.Go || m != nil {
		t.Errorf("next %d, answered %v", next, m)
	}
	broken := zone.NewTable([]*zone.Zone{zone.Broken(wire.Name("\x07example\x00"))})
	next, m, r := do(t, Zone{broken}, "www.example.", dns.ClassINET, dns.TypeA)
	if next != policy.Stop || m.Rcode != dns.RcodeServerFailure || r.Note.Source != serve.SourceError {
		t.Errorf("next %d, answered %v", next, m)
	}
}

func TestBadArguments(t *testing.T) {
	for _, c := range [][2]string{{"zone", "x"}, {"chaos", "x"}, {"reject", "refused"}, {"reject", "BADVERS"}} {
		if _, err := kind(t, c[0]).Make(&Env{}, c[1]); err == nil {
			t.Errorf("%s takes %q", c[0], c[1])
		}
	}
}

func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if seen[k.Name] || k.Doc == "" || k.Make == nil {
			t.Errorf("row %s: a name of its own, words, and Make", k.Name)
		}
		seen[k.Name] = true
	}
}
