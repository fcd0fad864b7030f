package cache

import (
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

const (
	soa   = "example. 900 IN SOA ns.example. host.example. 1 2 3 4 60" // negative responses live 60 s
	rrsig = " RRSIG A 8 2 100 20300101000000 20200101000000 1 example. AAAA"
)

type putCase struct {
	name, rfc string
	conf      Config
	question  string
	rcode     int
	lines     []string
	change    func(*dns.Msg)
	want      Stored
	life      int      // seconds
	replayed  []string // where it differs from lines
}

var putCases = []putCase{
	{name: "the smallest TTL of the answer counts", rfc: "2181 §5.2", question: "www.example. A",
		lines: []string{"www.example. 300 IN CNAME a.example.", "a.example. 100 IN A 192.0.2.1"}, life: 100},
	{name: "and of all other sections", rfc: "1035 §3.2.1", question: "www.example. A",
		lines: []string{"www.example. 300 IN A 192.0.2.1", ";; authority", "example. 200 IN NS ns.example.", ";; additional", "ns.example. 50 IN A 192.0.2.2"}, life: 50},
	{name: "TTL 0", rfc: "1035 §3.2.1", question: "www.example. A", lines: []string{"www.example. 0 IN A 192.0.2.1"}, want: NotCacheable},
	{name: "TTL 0 that is raised", rfc: "1035 §3.2.1", conf: Config{MinTTL: 20 * second}, question: "www.example. A",
		lines: []string{"www.example. 0 IN A 192.0.2.1"}, life: 20, replayed: []string{"www.example. 20 IN A 192.0.2.1"}},
	{name: "TTL with the top bit", rfc: "2181 §8", question: "www.example. A", lines: []string{"www.example. 2147483648 IN A 192.0.2.1"}, want: NotCacheable},
	{name: "the largest TTL", rfc: "2181 §8", question: "www.example. A", lines: []string{"www.example. 2147483647 IN A 192.0.2.1"},
		life: 86400, replayed: []string{"www.example. 86400 IN A 192.0.2.1"}},
	{name: "MaxTTL", rfc: "1035 §7.3", conf: Config{MaxTTL: 10 * second}, question: "www.example. A", lines: []string{"www.example. 300 IN A 192.0.2.1", "www.example. 5 IN A 192.0.2.2"},
		life: 5, replayed: []string{"www.example. 10 IN A 192.0.2.1", "www.example. 5 IN A 192.0.2.2"}},
	{name: "truncated", rfc: "2181 §9", question: "www.example. A", lines: []string{"www.example. 300 IN A 192.0.2.1"},
		change: func(m *dns.Msg) { m.Truncated = true }, want: NotCacheable},
	{name: "a query", rfc: "1035 §4.1.1", question: "www.example. A", change: func(m *dns.Msg) { m.Response = false }, want: Malformed},
	{name: "NOTIFY", rfc: "1996 §3", question: "www.example. A", change: func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }, want: Malformed},
	{name: "another name", rfc: "5452 §4.2", question: "www.example. A", change: func(m *dns.Msg) { m.Question[0].Name = "vww.example." }, want: Malformed},
	{name: "another type", rfc: "5452 §4.2", question: "www.example. A", change: func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA }, want: Malformed},
	{name: "another class", rfc: "5452 §4.2", question: "www.example. A", change: func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }, want: Malformed},
	{name: "other letters", rfc: "4343 §3", question: "www.example. A", lines: []string{"www.example. 300 IN A 192.0.2.1"},
		change: func(m *dns.Msg) { m.Question[0].Name = "WwW.example." }, life: 300},
	{name: "no question", rfc: "5452 §4.2", question: "www.example. A", change: func(m *dns.Msg) { m.Question = nil }, want: Malformed},
	{name: "zone transfer", rfc: "5936 §2", question: "example. AXFR", lines: []string{soa}, want: NotCacheable},
	{name: "TSIG", rfc: "8945 §5.3", conf: Config{MinTTL: second}, question: "www.example. A", lines: []string{"www.example. 300 IN A 192.0.2.1"},
		change: func(m *dns.Msg) { m.SetTsig("key.", dns.HmacSHA256, 300, 1) }, want: NotCacheable},

	{name: "NXDOMAIN", rfc: "2308 §5", question: "no.example. A", rcode: 3, lines: []string{";; authority", soa},
		life: 60, replayed: []string{";; authority", strings.Replace(soa, "900", "60", 1)}},
	{name: "NODATA", rfc: "2308 §5", question: "www.example. A", lines: []string{";; authority", soa},
		life: 60, replayed: []string{";; authority", strings.Replace(soa, "900", "60", 1)}},
	{name: "negative, SOA TTL below MINIMUM", rfc: "2308 §3", question: "www.example. A", lines: []string{";; authority", strings.Replace(soa, "900", "30", 1)}, life: 30},
	{name: "negative, MaxNegativeTTL", rfc: "2308 §5", conf: Config{MaxNegativeTTL: 7 * second, MinTTL: 9 * second}, question: "www.example. A", lines: []string{";; authority", soa},
		life: 7, replayed: []string{";; authority", strings.Replace(soa, "900", "7", 1)}},
	{name: "negative, for a day", rfc: "2308 §5", question: "www.example. A", lines: []string{";; authority", "example. 86400 IN SOA ns.example. host.example. 1 2 3 4 86400"},
		life: 10800, replayed: []string{";; authority", "example. 10800 IN SOA ns.example. host.example. 1 2 3 4 86400"}},
	{name: "NXDOMAIN at the end of a chain", rfc: "2308 §2.1", question: "www.example. A", rcode: 3, lines: []string{"www.example. 40 IN CNAME no.example.", ";; authority", soa},
		life: 40, replayed: []string{"www.example. 40 IN CNAME no.example.", ";; authority", strings.Replace(soa, "900", "60", 1)}},
	{name: "NODATA at the end of a chain", rfc: "2308 §2.2", question: "www.example. A", lines: []string{"www.example. 400 IN CNAME a.example.", ";; authority", soa},
		life: 60, replayed: []string{"www.example. 400 IN CNAME a.example.", ";; authority", strings.Replace(soa, "900", "60", 1)}},
	{name: "a chain that does not end", rfc: "2308 §2.2", question: "www.example. A", lines: []string{"www.example. 400 IN CNAME a.example."}, want: NotCacheable},
	{name: "a chain in another order", rfc: "1034 §3.6.2", question: "www.example. A",
		lines: []string{"b.example. 300 IN A 192.0.2.1", "a.example. 300 IN CNAME b.example.", "www.example. 300 IN CNAME A.example."}, life: 300},
	{name: "a loop", rfc: "1034 §3.6.2", question: "www.example. A",
		lines: []string{"www.example. 300 IN CNAME a.example.", "a.example. 300 IN CNAME www.example."}, want: NotCacheable},
	{name: "an answer for another name", rfc: "2308 §2.2", question: "www.example. A", lines: []string{"other.example. 400 IN A 192.0.2.1"}, want: NotCacheable},
	{name: "CNAME asked for", rfc: "1034 §3.6.2", question: "www.example. CNAME", lines: []string{"www.example. 400 IN CNAME a.example."}, life: 400},
	{name: "ANY", rfc: "8482 §4", question: "www.example. ANY", lines: []string{"www.example. 400 IN HINFO RFC8482 \"\""}, life: 400,
		replayed: []string{`www.example. 400 IN HINFO "RFC8482" ""`}},
	{name: "DNAME on the way", rfc: "6672 §3.1", question: "www.example. A", lines: []string{"example. 300 IN DNAME example.net.", "www.example. 300 IN CNAME www.example.net.", "www.example.net. 300 IN A 192.0.2.1"}, life: 300},
	{name: "NXDOMAIN without SOA", rfc: "2308 §5", question: "www.example. A", rcode: 3, want: NotCacheable},
	{name: "NODATA without SOA", rfc: "2308 §5", question: "www.example. A", want: NotCacheable},
	{name: "referral", rfc: "2308 §2.2", question: "www.example. A", lines: []string{";; authority", "example. 900 IN NS ns.example."}, want: NotCacheable},
	{name: "REFUSED", rfc: "2308 §7", question: "www.example. A", rcode: 5, lines: []string{";; authority", soa}, want: NotCacheable},
	{name: "BADVERS, which looks like NOERROR without OPT", rfc: "6891 §6.1.3", question: "www.example. A", rcode: 16, lines: []string{"www.example. 300 IN A 192.0.2.1"},
		change: func(m *dns.Msg) { m.SetEdns0(1232, false) }, want: NotCacheable},
	{name: "SERVFAIL", rfc: "9520 §3.2", question: "www.example. A", rcode: 2, lines: []string{"www.example. 300 IN A 192.0.2.1", ";; authority", soa},
		life: 5, replayed: []string{}},
	{name: "OPT at the end", rfc: "6891 §6.1.1", question: "www.example. A", lines: []string{"www.example. 300 IN A 192.0.2.1"},
		change: func(m *dns.Msg) { m.SetEdns0(1232, true) }, life: 300},
	{name: "OPT in front", rfc: "6891 §6.1.1", question: "www.example. MX", lines: []string{"www.example. 300 IN MX 5 mx.example.", ";; additional", "mx.example. 300 IN A 192.0.2.1"},
		change: func(m *dns.Msg) { m.SetEdns0(1232, true); m.Extra[0], m.Extra[1] = m.Extra[1], m.Extra[0] }, life: 300},
	{name: "OPT twice", rfc: "6891 §6.1.1", question: "www.example. A", lines: []string{"www.example. 300 IN A 192.0.2.1"},
		change: func(m *dns.Msg) { m.SetEdns0(1232, true); m.SetEdns0(1232, true) }, want: Malformed},
	{name: "OPT in the answer", rfc: "6891 §6.1.1", question: "www.example. A", lines: []string{"www.example. 300 IN A 192.0.2.1"},
		change: func(m *dns.Msg) { m.SetEdns0(1232, true); m.Answer, m.Extra = append(m.Answer, m.Extra...), nil }, want: Malformed},
}

func TestPut(t *testing.T) {
	for _, c := range putCases {
		t.Run(c.name, func(t *testing.T) {
			a := newAsker(t, open(t, c.conf))
			m := message(t, c.question, c.rcode, c.lines...)
			if c.change != nil {
				c.change(m)
			}
			msg, err := m.Pack()
			if err != nil {
				t.Fatal(err)
			}
			a.ask(c.question)
			const start = 1000 * second
			if got := a.put(msg, start); got != c.want {
				t.Fatalf("RFC %s: Put says %d, want %d", c.rfc, got, c.want)
			}
			if c.want != Kept {
				if hit, _ := a.get(start, true); hit.Verdict != Miss {
					t.Errorf("RFC %s: found", c.rfc)
				}
				return
			}
			want := c.lines
			if c.replayed != nil {
				want = c.replayed
			}
			c.check(t, a, start, want)
		})
	}
}

// check looks at what is replayed at once, and when it ends.
func (c *putCase) check(t *testing.T, a *asker, start time.Duration, want []string) {
	t.Helper()
	hit, m := a.get(start, true)
	if hit.Verdict != Fresh || int(hit.Rcode) != c.rcode || hit.Upstream != 7 || hit.Refresh {
		t.Fatalf("RFC %s: found as %+v", c.rfc, hit)
	}
	if got := strings.TrimSuffix(lines(m), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("RFC %s: replayed\n%s\nwant\n%s", c.rfc, got, strings.Join(want, "\n"))
	}
	if m.Authoritative || m.RecursionAvailable || m.Truncated {
		t.Errorf("RFC %s: flags of the upstream are left: %v", c.rfc, m.MsgHdr)
	}
	end := start + time.Duration(c.life)*second
	if hit, _ := a.get(end-1, true); hit.Verdict != Fresh {
		t.Errorf("RFC %s: it has ended before %d s", c.rfc, c.life)
	}
	if hit, _ := a.get(end, true); hit.Verdict != Miss {
		t.Errorf("RFC %s: it has not ended after %d s", c.rfc, c.life)
	}
}

// All TTLs count down together, in all sections.
func TestAging(t *testing.T) {
	a := newAsker(t, open(t, Config{}))
	a.ask("www.example. A")
	a.stores(response(t, "www.example. A", 0, "www.example. 300 IN A 192.0.2.1", ";; authority", "example. 400 IN NS ns.example.", ";; additional", "ns.example. 500 IN A 192.0.2.2"), 5*second)
	a.ask("wWw.Example. A")
	_, m := a.get(15*second-1, false)
	want := "wWw.Example. 291 IN A 192.0.2.1\n;; authority\nExample. 391 IN NS ns.Example.\n;; additional\nns.Example. 491 IN A 192.0.2.2\n"
	if got := lines(m); got != want {
		t.Errorf("RFC 1035 §3.2.1, 4343 §4.1: after 9.99 s\n%s\nwant\n%s", got, want)
	}
	if _, m = a.get(2*second, false); m.Answer[0].Header().Ttl != 300 {
		t.Errorf("by a clock that lags behind the TTL is %d", m.Answer[0].Header().Ttl)
	}
}

func TestForms(t *testing.T) {
	for _, c := range []struct {
		name, rfc, question string
		lines, plain        []string
	}{
		{"signed", "4035 §3.2.1", "www.example. A",
			[]string{"www.example. 300 IN CNAME a.example.", "www.example. 300 IN" + rrsig, "a.example. 100 IN A 192.0.2.1", "a.example. 100 IN" + rrsig, ";; authority", "example. 300 IN NS a.example.", "example. 300 IN" + rrsig},
			[]string{"www.example. 300 IN CNAME a.example.", "a.example. 100 IN A 192.0.2.1", ";; authority", "example. 300 IN NS a.example."}},
		{"NSEC", "4035 §3.1.3", "no.example. A",
			[]string{";; authority", soa, "a.example. 60 IN NSEC z.example. A RRSIG NSEC", "a.example. 60 IN" + rrsig},
			[]string{";; authority", soa}},
		{"NSEC3", "5155 §7.2", "no.example. A",
			[]string{";; authority", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example. 60 IN NSEC3 1 1 12 AABBCCDD 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR MX", soa},
			[]string{";; authority", soa}},
		{"NSEC asked for", "4035 §3.2.1", "a.example. NSEC",
			[]string{"a.example. 60 IN NSEC z.example. A RRSIG NSEC", "a.example. 60 IN" + rrsig},
			[]string{"a.example. 60 IN NSEC z.example. A RRSIG NSEC"}},
		{"RRSIG asked for", "4035 §3.2.1", "a.example. RRSIG", []string{"a.example. 60 IN" + rrsig}, []string{"a.example. 60 IN" + rrsig}},
		{"ANY", "4035 §3.2.1", "a.example. ANY",
			[]string{"a.example. 60 IN" + rrsig, "a.example. 60 IN NSEC z.example. A RRSIG NSEC"},
			[]string{"a.example. 60 IN" + rrsig, "a.example. 60 IN NSEC z.example. A RRSIG NSEC"}},
		{"DS stays", "4035 §3.2.1", "a.example. DS", []string{"a.example. 60 IN DS 1 8 2 AABB", "a.example. 60 IN" + rrsig}, []string{"a.example. 60 IN DS 1 8 2 AABB"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAsker(t, open(t, Config{}))
			a.ask(c.question)
			m := message(t, c.question, 0, c.lines...)
			m.SetEdns0(1232, true)
			msg, err := m.Pack()
			if err != nil {
				t.Fatal(err)
			}
			a.stores(msg, 0)
			for dnssec, want := range map[bool][]string{true: c.lines, false: c.plain} {
				_, m := a.get(0, dnssec)
				w := strings.ReplaceAll(strings.Join(want, "\n")+"\n", "example. 900 IN SOA", "example. 60 IN SOA")
				if got := lines(m); !strings.EqualFold(got, w) {
					t.Errorf("RFC %s: with DNSSEC %v\n%s\nwant\n%s", c.rfc, dnssec, got, w)
				}
			}
		})
	}
}

func TestHitOfUpstream(t *testing.T) {
	for _, c := range []struct {
		name, rfc string
		rcode     int
		ad        bool
		ede       []uint16
		wantAD    uint16
		wantEDE   uint16
	}{
		{"nothing", "4035 §3.2.3", 0, false, nil, 0, 0},
		{"AD", "4035 §3.2.3", 0, true, nil, wire.FlagAD, 0},
		{"AD on NODATA", "4035 §3.2.3", 3, true, nil, wire.FlagAD, 0},
		{"AD on SERVFAIL", "4035 §3.2.3", 2, true, nil, 0, 0},
		{"EDE", "8914 §2", 0, false, []uint16{6, 9}, 0, 7},
		{"EDE 0", "8914 §4.1", 2, false, []uint16{0}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAsker(t, open(t, Config{}))
			m := message(t, "www.example. A", c.rcode, "www.example. 300 IN A 192.0.2.1", ";; authority", soa)
			m.AuthenticatedData = c.ad
			m.SetEdns0(1232, true)
			o := m.IsEdns0()
			o.Option = append(o.Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "aabb"})
			for _, code := range c.ede {
				o.Option = append(o.Option, &dns.EDNS0_EDE{InfoCode: code, ExtraText: "why"})
			}
			msg, err := m.Pack()
			if err != nil {
				t.Fatal(err)
			}
			a.ask("www.example. A")
			a.stores(msg, 0)
			hit, got := a.get(0, false)
			if hit.Flags != c.wantAD || hit.EDE != c.wantEDE || got.IsEdns0() != nil {
				t.Errorf("RFC %s: %+v, %v", c.rfc, hit, got)
			}
		})
	}
}

// What differs in the key is another entry.
func TestKeys(t *testing.T) {
	a := newAsker(t, open(t, Config{}))
	type with = func(*Key)
	keys := map[string]struct {
		question string
		with     with
	}{
		"192.0.2.1": {"www.example. A", func(*Key) {}},
		"192.0.2.2": {"ww2.example. A", func(*Key) {}},
		"192.0.2.3": {"www.example. A", func(k *Key) { k.View = 1 }},
		"192.0.2.4": {"www.example. A", func(k *Key) { k.CD = true }},
		"192.0.2.5": {"www.example. A", func(k *Key) { k.CD, k.View = true, 1 }},
	}
	for addr, k := range keys {
		name, _, _ := strings.Cut(k.question, " ")
		a.ask(k.question, k.with)
		if hit, _ := a.get(0, false); hit.Verdict != Miss {
			t.Errorf("%s found before it was put in", addr)
		}
		a.stores(response(t, k.question, 0, name+" 300 IN A "+addr), 0)
	}
	for addr, k := range keys {
		a.ask(k.question, k.with)
		if _, m := a.get(0, false); m == nil || m.Answer[0].(*dns.A).A.String() != addr {
			t.Errorf("RFC 4035 §4.7: for %s found %v", addr, m)
		}
	}
}

func TestSize(t *testing.T) {
	if _, err := New(Config{Size: MinSize - 1}); err == nil {
		t.Error("a cache that is too small was made")
	}
	a := newAsker(t, open(t, Config{}))
	a.ask("www.example. TXT")
	m := message(t, "www.example. TXT", 0)
	for range 250 {
		m.Answer = append(m.Answer, &dns.TXT{Hdr: dns.RR_Header{Name: "www.example.", Rrtype: dns.TypeTXT, Class: 1, Ttl: 300}, Txt: []string{strings.Repeat("x", 245)}})
	}
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	a.stores(msg, 0)
	if _, got := a.get(0, false); len(got.Answer) != 250 {
		t.Errorf("of 250 records %d came back", len(got.Answer))
	}
}
