package zonecheck

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

func mustName(t testing.TB, text string) wire.Name {
	t.Helper()
	n, err := wire.ParseName(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// writeFiles makes a folder with the given files.
func writeFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// checkText is what Check finds in text, as lines "line: level: text".
func checkText(t *testing.T, text string, now int64) []string {
	t.Helper()
	path := filepath.Join(writeFiles(t, map[string]string{"zone": text}), "zone")
	problems, err := Check(path, zonefile.Options{Origin: mustName(t, "example.org"), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%d: %s: %s", p.Line, p.Level, p.Text))
	}
	return got
}

// expect compares found problems with parts of them, in order, parted by "|".
func expect(t *testing.T, got []string, want string) {
	t.Helper()
	var parts []string
	if want != "" {
		parts = strings.Split(want, "|")
	}
	if len(got) != len(parts) {
		t.Fatalf("got %d problems, want %d:\n%s", len(got), len(parts), strings.Join(got, "\n"))
	}
	for i, part := range parts {
		if !strings.Contains(got[i], part) {
			t.Errorf("got  %s\nwant %s", got[i], part)
		}
	}
}

func TestCheckShape(t *testing.T) {
	const head = "$TTL 60\n@ SOA ns.example.net. hm 1 2 3 4 5\n@ NS ns.example.net.\n"
	tests := []struct{ name, text, want string }{
		{"sound", head + "a A 192.0.2.1\n@ MX 10 a\n", ""},
		{"no SOA, RFC 1035 5.2", "@ 60 NS ns.example.net.\n", "0: error: no SOA record at the apex"},
		{"two SOA, RFC 1035 5.2", head + "@ SOA ns.example.net. hm 2 2 3 4 5\n", "4: error: more than one SOA"},
		{"SOA twice the same", head + "@ SOA ns.example.net. hm 1 2 3 4 5\n", "4: warning: SOA record is the same as in line 2"},
		{"SOA below the apex", head + "a SOA ns.example.net. hm 2 2 3 4 5\n", "4: error: SOA record at a.example.org."},
		{"no NS, RFC 1035 5.2", "@ 60 SOA ns.example.net. hm 1 2 3 4 5\n", "0: error: no NS record"},
		{"out of zone", head + "a.example.net. A 192.0.2.1\n", "4: error: a.example.net. is out of the zone"},
		{"syntax and shape", head + "a A x\nb CNAME c\nb A 192.0.2.1\n", "4: error: RDATA of A|6: error: A record beside the CNAME"},
		{"duplicates, RFC 2181 5", head + "a A 192.0.2.1\na A 192.0.2.1\na CNAME b\n", "4: error: A record beside|5: warning: A record is the same as in line 4"},
		{"duplicates but for case", head + "a PTR b\na PTR B\n", "5: warning: PTR record is the same"},
		{"TTLs of a set, RFC 2181 5.2", head + "a 1 A 192.0.2.1\na 2 A 192.0.2.2\na 2 A 192.0.2.3\n", "5: warning: TTL 2 differs from 1"},
		{"CNAME and other data, RFC 1034 3.6.2", head + "a CNAME b\na TXT x\n", "5: error: TXT record beside"},
		{"CNAME at the apex", head + "@ CNAME b\n", "2: error: SOA record beside|3: error: NS record beside"},
		{"CNAME beside NSEC, RFC 4035 2.5", head + "a CNAME b\na NSEC b CNAME NSEC\n", ""},
		{"two CNAMEs, RFC 2181 10.1", head + "a CNAME b\na CNAME c\n", "5: error: more than one CNAME"},
		{"CNAME twice the same", head + "a CNAME b\na CNAME b\n", "5: warning: CNAME record is the same"},
		{"two DNAMEs, RFC 6672 2.4", head + "a DNAME b\na DNAME c\n", "5: error: more than one DNAME"},
		{"CNAME and DNAME, RFC 6672 2.4", head + "a CNAME b\na DNAME c\n", "5: error: DNAME record beside"},
		{"DNAME and NS, RFC 6672 2.3", head + "a DNAME b\na NS ns.example.net.\n", "4: error: DNAME record at the zone cut"},
		{"DNAME and NS at the apex, RFC 6672 2.3", head + "@ DNAME example.net.\n", ""},
		{"below a DNAME, RFC 6672 2.4", head + "a DNAME b\nx.y.a A 192.0.2.1\nz.a NS x.example.net.\nxa A 192.0.2.1\n", "5: error: x.y.a.example.org. is below a DNAME|6: error: z.a.example.org. is below a DNAME"},
		{"below a DNAME at the apex", head + "@ DNAME example.net.\nx.y A 192.0.2.1\n", "5: error: x.y.example.org. is below a DNAME"},
		{"NS below a zone cut", head + "a NS ns.example.net.\nb.a NS ns.example.net.\nb.a A 192.0.2.1\n", "5: warning: NS record of b.a.example.org. is below the zone cut a.example.org."},
		{"data at a zone cut", head + "a NS ns.example.net.\na TXT x\na A 192.0.2.1\n", "5: warning: TXT record at the zone cut"},
		{"glue", head + "a NS ns.a\nns.a A 192.0.2.1\nb NS b\nb AAAA ::1\nc NS ns.a\n", ""},
		{"missing glue, RFC 1034 4.2.1", head + "a NS ns.a\nb NS b\n", "4: error: name server ns.a.example.org. has no glue|5: error: name server b.example.org. has no glue"},
		{"missing glue of a sibling", head + "a NS ns.example.net.\nb NS ns.a\n", "5: warning: name server ns.a.example.org. of a sibling"},
		{"apex name server without address", "@ 60 SOA ns hm 1 2 3 4 5\n@ 60 NS ns\n", "2: error: name server ns.example.org. has no address"},
		{"apex name server below a cut", "@ 60 SOA ns hm 1 2 3 4 5\n@ 60 NS ns.a\na 60 NS ns.example.net.\n", "2: error: name server ns.a.example.org. is below a zone cut"},
		{"delegation to a name without address", head + "a NS b\nb TXT x\n", "4: error: name server b.example.org. has no address"},
		{"name server is an alias, RFC 2181 10.3", head + "a NS b\nb CNAME c\nc A 192.0.2.1\n", "4: error: name server b.example.org. is an alias"},
		{"name server below a DNAME", head + "a NS x.b\nb DNAME c\n", "4: error: name server x.b.example.org. is an alias"},
		{"name server from a wildcard, RFC 4592", head + "a NS x.y.b\n*.b A 192.0.2.1\n", ""},
		{"wildcard hidden by an empty non-terminal, RFC 4592 2.2.2", head + "a NS x.y.b\n*.b A 192.0.2.1\nz.y.b A 192.0.2.1\n", "4: error: name server x.y.b.example.org. has no address"},
		{"MX and SRV", head + "@ MX 0 .\n@ MX 10 a\n@ MX 10 b\nb CNAME ns.example.net.\n_x SRV 1 1 1 a\n_x SRV 1 1 1 ns.example.net.\n", "5: warning: MX target a.example.org. has no|6: warning: MX target b.example.org. is an alias|8: warning: SRV target a"},
		{"DS without NS", head + "a DS 1 13 2 00\n", "4: warning: DS record at a.example.org."},
		{"no TTL", "@ SOA ns.example.net. hm 1 2 3 4 5\n@ NS ns.example.net.\n", "1: warning: no TTL stated so far, taking 5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expect(t, checkText(t, tt.text, 0), tt.want) })
	}
}

// signedAt is a moment in the life of the signatures in testdata, 2026-01-01.
const signedAt = 1767225600

// edit changes the line of a zone that holds old, which must be one line only.
func edit(t *testing.T, zone, old, new string) string {
	t.Helper()
	lines := strings.Split(zone, "\n")
	found := false
	for i, line := range lines {
		compact := strings.Join(strings.Fields(line), " ")
		if strings.Contains(compact, old) {
			if found {
				t.Fatalf("two lines with %q", old)
			}
			found = true
			lines[i] = strings.Replace(compact, old, new, 1)
			if new == "" {
				lines[i] = ""
			}
		}
	}
	if !found {
		t.Fatalf("no line with %q", old)
	}
	return strings.Join(lines, "\n")
}

func TestCheckSigned(t *testing.T) {
	tests := []struct {
		name, file, old, new string
		now                  int64
		want                 string
	}{
		{name: "NSEC", file: "nsec"},
		{name: "NSEC3", file: "nsec3"},
		{name: "NSEC3 with opt-out", file: "optout"},
		{name: "expired", file: "nsec", now: 2556144000, want: strings.Repeat("has expired|", 15) + "has expired"},
		{name: "not valid yet", file: "nsec", now: 1700000000, want: strings.Repeat("is not valid yet|", 15) + "is not valid yet"},
		{name: "changed record", file: "nsec", old: "ns1.example.org. 3600 IN A 192.0.2.1", new: "ns1.example.org. 3600 IN A 192.0.2.9", want: "23: error: signature of the A records of ns1.example.org. does not verify"},
		{name: "changed TTL, RFC 4034 3.1.4", file: "nsec", old: "ns1.example.org. 3600 IN A 192.0.2.1", new: "ns1.example.org. 60 IN A 192.0.2.1", want: "23: error: signature of the A records of ns1.example.org. has the original TTL 3600, the records have 60|23: warning: signature of the A records of ns1.example.org. has the TTL 3600"},
		{name: "changed signer", file: "nsec", old: "CNAME 15 3 3600 20500101000000 20250101000000 27998 example.org.", new: "CNAME 15 3 3600 20500101000000 20250101000000 27998 example.net.", want: "10: error: CNAME records of al.example.org. have no signature by a key|11: error: signature of the CNAME records of al.example.org. is by example.net."},
		{name: "changed labels, RFC 4034 3.1.3", file: "nsec", old: "CNAME 15 3 3600", new: "CNAME 15 2 3600", want: "10: error: CNAME records|11: error: signature of the CNAME records of al.example.org. is of 2 labels, not of 3"},
		{name: "changed key tag", file: "nsec", old: "CNAME 15 3 3600 20500101000000 20250101000000 27998", new: "CNAME 15 3 3600 20500101000000 20250101000000 27999", want: "10: error: CNAME records|11: warning: signature of the CNAME records of al.example.org. is by key 27999"},
		{name: "no signature, RFC 4035 2.2", file: "nsec", old: "al.example.org. 3600 IN RRSIG", new: "", want: "10: error: CNAME records of al.example.org. have no signature"},
		{name: "signature of nothing", file: "nsec", old: "ns1.example.org. 3600 IN A 192.0.2.1", new: "", want: "3: error: name server ns1.example.org. has no address|23: warning: signature of A records, which ns1.example.org. has not|24: error: type bitmap of the NSEC record of ns1.example.org. has A too much"},
		{name: "NSEC with a wrong next name, RFC 4034 4.1.1", file: "nsec", old: "NSEC sec.example.org.", new: "NSEC sub.example.org.", want: "24: error: NSEC record of ns1.example.org. has sub.example.org. for the next name, which is sec.example.org.|25: error: signature of the NSEC"},
		{name: "NSEC without a type, RFC 4034 4.1.2", file: "nsec", old: "sub.example.org. NS DS RRSIG NSEC", new: "sub.example.org. NS RRSIG NSEC", want: "29: error: type bitmap of the NSEC record of sec.example.org. lacks DS|30: error: signature"},
		{name: "name without NSEC", file: "nsec", old: "sub.example.org. 300 IN NSEC", new: "x.ns.sub.example.org. 300 IN NSEC", want: "31: error: Sub.example.org. has no NSEC record|32: warning: NSEC record of x.ns.sub.example.org. is below the zone cut|33: warning: signature of NSEC records, which Sub"},
		{name: "NSEC3 chain with a gap, RFC 5155 7.1", file: "optout", old: "- GQO7H7R357FJ31QJIUDOG4AMTM030PLU A RRSIG", new: "- JRFH8DK3OOFI50C0CT4KAU7H45DL0K8C A RRSIG", want: "does not name that of GQO7H7R357FJ31QJIUDOG4AMTM030PLU.example.org. as next|signature of the NSEC3"},
		{name: "NSEC3 with a type too much", file: "optout", old: "KVFD249SV8849NT9D91H61HKHIL6R2BJ A RRSIG", new: "KVFD249SV8849NT9D91H61HKHIL6R2BJ A TXT RRSIG", want: "has TXT too much|signature of the NSEC3"},
		{name: "name without NSEC3", file: "optout", old: "3600 IN TXT \"wild\"", new: "3600 IN TXT \"wild\"\nnew.example.org. 60 A 192.0.2.1", want: "error: A records of new.example.org. have no signature|error: new.example.org. has no NSEC3 record"},
		{name: "insecure delegation within opt-out", file: "optout", old: "3600 IN TXT \"wild\"", new: "3600 IN TXT \"wild\"\nnew.ent.example.org. 60 NS ns.example.net."},
		{name: "insecure delegation without opt-out", file: "nsec3", old: "3600 IN TXT \"wild\"", new: "3600 IN TXT \"wild\"\nnew.ent.example.org. 60 NS ns.example.net.", want: "error: ent.example.org. has no NSEC3 record|error: new.ent.example.org. has no NSEC3 record"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", tt.file+".zone"))
			if err != nil {
				t.Fatal(err)
			}
			zone := string(b)
			if tt.old != "" {
				zone = edit(t, zone, tt.old, tt.new)
			}
			now := tt.now
			if now == 0 {
				now = signedAt
			}
			expect(t, checkText(t, zone, now), tt.want)
		})
	}
}

func TestCheckUnsignedWithKeys(t *testing.T) {
	const head = "$TTL 60\n@ SOA ns.example.net. hm 1 2 3 4 5\n@ NS ns.example.net.\n"
	expect(t, checkText(t, head+"@ DNSKEY 257 3 13 AQID\n", 0), "4: warning: DNSKEY record but no signature")
	expect(t, checkText(t, head+"@ RRSIG NS 13 2 60 20500101000000 20250101000000 1 example.org. AQID\n", 0), "0: warning: signatures but no DNSKEY")
}

func TestCheckWarningsHideNoError(t *testing.T) {
	const head = "$TTL 60\n@ SOA ns.example.net. hm 1 2 3 4 5\n@ NS ns.example.net.\n"
	got := checkText(t, head+strings.Repeat("a A 192.0.2.1\n", 300)+"b CNAME c\nb A 192.0.2.1\n", 0)
	if len(got) != 102 || !strings.Contains(got[100], "error: A record beside") || !strings.Contains(got[101], "more problems") {
		t.Errorf("%d problems, last %v", len(got), got[max(0, len(got)-2):])
	}
}

func TestFindOrigin(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"absolute": "; x\nexample.org. 60 SOA a b 1 2 3 4 5\n",
		"origin":   "$ORIGIN sub.example.org.\na 60 A 192.0.2.1\n@ 60 SOA a b 1 2 3 4 5\n",
		"relative": "@ 60 SOA a b 1 2 3 4 5\n",
		"none":     "a 60 A 192.0.2.1\n",
	})
	for file, want := range map[string]string{"absolute": "example.org.", "origin": "sub.example.org.", "relative": "", "none": ""} {
		n, err := FindOrigin(filepath.Join(dir, file), zonefile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.String(); n != nil && got != want || n == nil && want != "" {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}

// FuzzCheck judges any zone without a panic.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"a CNAME b\nb CNAME a\n", "s NS ns.s\n", "d DNAME x\nx.d A 192.0.2.1\n", "m MX 10 m\n"} {
		f.Add("@ SOA a b 1 2 3 4 5\n@ NS a\n" + s)
	}
	for _, name := range []string{"nsec", "nsec3", "optout"} {
		b, err := os.ReadFile(filepath.Join("testdata", name+".zone"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	path := filepath.Join(f.TempDir(), "zone")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		o := zonefile.Options{Origin: mustName(t, "example.org"), Now: signedAt, Limits: zonefile.Limits{Generate: 100, Bytes: 1 << 20}}
		if strings.Contains(text, "GENERATE") {
			o.Origin = nil
		}
		_, _ = Check(path, o)
	})
}
