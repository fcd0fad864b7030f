package zonefile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

// parseText is what a parser makes of text as one chunk.
func parseText(t testing.TB, text []byte, slow bool) ([]string, []Problem) {
	if n := len(text); n == 0 || text[n-1] != '\n' {
		text = append(slices.Clip(text), '\n')
	}
	c := &chunk{text: text, start: state{line: 1, origin: mustName(t, "example.org"), ttl: 60, hasTTL: true}}
	p := &parser{slow: slow, max: 100}
	p.run(c)
	var got []string
	for _, r := range c.records {
		if len(r.Owner) > 255 || len(r.RDATA) > maxRDATA {
			t.Fatalf("record out of limits: %s", formatRecord(r))
		}
		got = append(got, formatRecord(r))
	}
	return got, c.found.list
}

var seeds = []string{
	"0p9mhaveqvm6t7vbl5lop2u3t2rp3tom 60 NSEC3 1 0 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom\n",
	"a 60 IN A 192.0.2.1\n", "a IN 60 AAAA 2001:db8::1\n", "a AAAA 1:2:3:4:5:6:7::\n", "a AAAA ::\n", "a AAAA ::1:2\n",
	"@ SOA ns hm 1 2h 3 4 5\n", "@ NS \\065b.c\n b NS @\n", "a MX 10 mail\n", "_s._t SRV 0 5 65535 .\n",
	"a TXT \"x;\\\"y\" z\\032\\\\\n", "a TXT " + strings.Repeat("x", 300) + "\n", "a CNAME b..c\n",
	"a DS 1 13 2 0123456789abcdef ABCDEF\n", "a DNSKEY 256 3 13 AQID BAUG\n",
	"a RRSIG A 13 3 60 20380119031408 2000000000 7 example.org. AQID\n", "a NSEC b A NS TYPE300 RRSIG\n",
	"a NSEC3 1 0 10 - 0123456789abcdefghijklmnopqrstuv A RRSIG\n", "a NSEC3PARAM 1 0 0 abcd\n",
	"a TLSA 3 1 1 00ff\n", "a SSHFP 1 1 00ff\n", "a A \\# 4 c0000201\n", "a ( A ; c\n 192.0.2.1 )\n",
	"a HTTPS 1 . alpn=\"h2,h3\"\n", "$ORIGIN x\n$TTL 5\na A 192.0.2.1\n", "a CAA 0 issue \"x\"\n",
	"a TXT \x0b\n", "a DNAME b\na PTR c\n", "a SPF \"\"\n", "a A 1.2.3.4\r\n\r\nb A 1.2.3.4",
}

// FuzzFastPath compares the direct path with miekg/dns on the same text.
func FuzzFastPath(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if wrongInMiekg(text) {
			return
		}
		got, _ := parseText(t, text, false)
		want, slowProblems := parseText(t, text, true)
		if slices.ContainsFunc(slowProblems, refusedByMiekgAlone) {
			return
		}
		if !slices.Equal(got, want) {
			t.Fatalf("direct:\n%s\nmiekg:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// refusedByMiekgAlone tells whether a problem is that of text that RFCs allow
// and miekg/dns does not: types in any order in the text of an NSEC record.
func refusedByMiekgAlone(p Problem) bool {
	return strings.Contains(p.Text, "nsec bits out of order") || strings.Contains(p.Text, "no presentation format that is known")
}

// wrongInMiekg tells whether text may have types whose RDATA miekg/dns changes, by
// name or by number.
func wrongInMiekg(text []byte) bool {
	upper := bytes.ToUpper(text)
	return slices.ContainsFunc([]string{"LOC", "ISDN", "AMTRELAY", "CAA", "URI", "TYPE0", "TYPE20", "TYPE25", "TYPE26", "TYPE29"}, func(t string) bool {
		return bytes.Contains(upper, []byte(t))
	})
}

// FuzzWhole compares whole records with what miekg/dns makes of them, where
// both accept the text.
func FuzzWhole(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		// miekg/dns joins what parentheses and carriage returns part, and
		// takes the record as gone on behind a quote.
		if bytes.ContainsAny(text, "()\r\"$") || wrongInMiekg(text) {
			return
		}
		got, problems := parseText(t, text, false)
		if len(problems) > 0 || len(got) != 1 {
			return
		}
		zp := dns.NewZoneParser(bytes.NewReader(append(slices.Clip(text), '\n')), "example.org.", "")
		zp.SetDefaultTTL(60)
		rr, _ := zp.Next()
		if rr == nil || zp.Err() != nil {
			return
		}
		rd, err := packRDATA(rr, len(text))
		if err != nil {
			return
		}
		owner, err := wire.ParseName(rr.Header().Name)
		if err != nil {
			return
		}
		line := strings.SplitN(got[0], " ", 2)[0]
		want := formatRecord(Record{Owner: owner, TTL: clampTTL(rr.Header().Ttl), Type: rr.Header().Rrtype, RDATA: rd})
		if w := line + want[1:]; got[0] != w {
			t.Fatalf("got  %s\nwant %s", got[0], w)
		}
	})
}

// FuzzRead reads whole files: every problem has a line of the file, and what
// comes in pieces is what comes at once.
func FuzzRead(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Add([]byte("$GENERATE 1-3/2 a${1,2,x} A 192.0.2.$\n b 5 A 192.0.2.1\n"))
	f.Add([]byte("a TXT \"x\nb TXT \"y\n(\nc A 1.2.3.4\n"))
	f.Add([]byte("$INCLUDE zone\n"))
	path := filepath.Join(f.TempDir(), "zone")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		o := Options{Origin: mustName(t, "example.org"), Limits: Limits{Generate: 1000, Bytes: 1 << 20}}
		got, problems, err := readAll(path, o)
		if err != nil && !strings.Contains(err.Error(), "bytes of text") {
			t.Fatal(err)
		}
		lines := bytes.Count(text, []byte("\n")) + 1
		if i := slices.IndexFunc(problems, func(p Problem) bool { return p.Line < 1 || p.Line > lines }); i >= 0 {
			t.Fatalf("%d lines, problem %v", lines, problems[i])
		}
		if err != nil || len(problems) > 0 || bytes.Contains(text, []byte("$")) {
			return // where a broken record ends depends on what has been read behind it
		}
		o.chunk = 16
		if pieces, _, err := readAll(path, o); err != nil || !slices.Equal(got, pieces) {
			t.Fatalf("at once:\n%s\nin pieces:\n%s\n%v", strings.Join(got, "\n"), strings.Join(pieces, "\n"), err)
		}
	})
}

// FuzzName takes names to wire format and back.
func FuzzName(f *testing.F) {
	for _, s := range []string{"a.b", "a\\.b", "\\000.\\255", ".", "@", "a..b", "\\\\", "*.x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := wire.ParseName(text)
		if err != nil {
			return
		}
		again, err := wire.ParseName(n.String())
		if err != nil || !bytes.Equal(n, again) {
			t.Fatalf("%q: %x became %x, %v", text, n, again, err)
		}
		buf := make([]byte, 256)
		end, err := dns.PackDomainName(n.String(), buf, 0, nil, false)
		if err != nil || !bytes.Equal(buf[:end], n) {
			t.Fatalf("%q: miekg/dns has %x, not %x", text, buf[:end], n)
		}
	})
}
