package zonefile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

func mustName(t testing.TB, text string) wire.Name {
	t.Helper()
	n, err := wire.ParseName(text)
	if err != nil {
		t.Fatalf("name %q: %v", text, err)
	}
	return n
}

// writeFiles makes a folder with the given files.
func writeFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readAll is the records of a file as lines "line owner TTL type rdata-hex".
func readAll(path string, o Options) ([]string, []Problem, error) {
	var got []string
	found, err := Scan(path, o, func(batch []Record) error {
		for _, r := range batch {
			got = append(got, formatRecord(r))
		}
		return nil
	})
	if found == nil {
		return got, nil, err
	}
	return got, found.list, err
}

func formatRecord(r Record) string {
	return fmt.Sprintf("%d %s %d %s %x", r.Line, r.Owner.String(), r.TTL, typeName(r.Type), r.RDATA)
}

func readText(t testing.TB, text string) ([]string, []Problem) {
	t.Helper()
	dir := writeFiles(t, map[string]string{"zone": text})
	got, problems, err := readAll(filepath.Join(dir, "zone"), Options{Origin: mustName(t, "example.org")})
	if err != nil {
		t.Fatal(err)
	}
	return got, problems
}

func nameHex(t testing.TB, text string) string { return hex.EncodeToString(mustName(t, text)) }

func TestReadRecords(t *testing.T) {
	long := strings.Repeat("x", 255)
	tests := []struct{ name, text, want string }{
		{"plain", "a 60 IN A 192.0.2.1\n", "1 a.example.org. 60 A c0000201"},
		{"byte order mark", "\xef\xbb\xbfa 60 A 192.0.2.1\n", "1 a.example.org. 60 A c0000201"},
		{"NSEC3 of an empty non-terminal, RFC 5155 7.1", "a 60 NSEC3 ( 1 0 0 -\n0p9mhaveqvm6t7vbl5lop2u3t2rp3tom )\n",
			"1 a.example.org. 60 NSEC3 010000000014065368abeed7ec6e9feba96b8c8bc3e8b791f716"},
		{"class before TTL, RFC 1035 5.1", "a IN 60 A 192.0.2.1\n", "1 a.example.org. 60 A c0000201"},
		{"owner omitted", "a 60 A 192.0.2.1\n\tA 192.0.2.2\n", "1 a.example.org. 60 A c0000201|2 a.example.org. 60 A c0000202"},
		{"owner omitted behind $ORIGIN", "a 60 A 192.0.2.1\n$ORIGIN b\n A 192.0.2.2\n", "1 a.example.org. 60 A c0000201|3 a.example.org. 60 A c0000202"},
		{"at sign", "@ 60 NS @\n", "1 example.org. 60 NS " + nameHex(t, "example.org")},
		{"escaped at sign is a letter", "\\@ 60 A 192.0.2.1\n", `1 \@.example.org. 60 A c0000201`},
		{"TTL units, RFC 2308 4", "a 1h30m A 192.0.2.1\n", "1 a.example.org. 5400 A c0000201"},
		{"TTL with top bit, RFC 2181 8", "a 2147483648 A 192.0.2.1\n", "1 a.example.org. 0 A c0000201"},
		{"$TTL", "$TTL 1d\na A 192.0.2.1\nb 5 A 192.0.2.2\nc A 192.0.2.3\n", "2 a.example.org. 86400 A c0000201|3 b.example.org. 5 A c0000202|4 c.example.org. 86400 A c0000203"},
		{"last TTL stated, RFC 1035 5.1", "a 5 A 192.0.2.1\nb A 192.0.2.2\n", "1 a.example.org. 5 A c0000201|2 b.example.org. 5 A c0000202"},
		{"$ORIGIN relative", "$ORIGIN sub\na 60 A 192.0.2.1\n", "2 a.sub.example.org. 60 A c0000201"},
		{"parentheses", "a 60 ( IN ; comment )\n A\n 192.0.2.1 ) ; end\nb 60 A 192.0.2.2\n", "1 a.example.org. 60 A c0000201|4 b.example.org. 60 A c0000202"},
		{"parenthesis within a word", "a 60 MX 10(\nb)\n", "1 a.example.org. 60 MX 000a" + nameHex(t, "b.example.org")},
		{"CRLF, no newline at the end", "a 60 A 192.0.2.1\r\n\r\nb 60 A 192.0.2.2\r", "1 a.example.org. 60 A c0000201|3 b.example.org. 60 A c0000202"},
		{"escaped dot, RFC 1035 5.1", "a\\.b 60 A 192.0.2.1\na\\046b 60 A 192.0.2.1\n", `1 a\.b.example.org. 60 A c0000201|2 a\.b.example.org. 60 A c0000201`},
		{"escaped backslash", "a\\\\b 60 A 192.0.2.1\n", `1 a\\b.example.org. 60 A c0000201`},
		{"escapes in RDATA", "a 60 CNAME a\\046b\\ c\n", "1 a.example.org. 60 CNAME 05612e622063" + nameHex(t, "example.org")},
		{"bytes above 127", "b\xc3\xbccher 60 A 192.0.2.1\n", `1 b\195\188cher.example.org. 60 A c0000201`},
		{"owner named like a type", "A 60 A 192.0.2.1\nNS A 192.0.2.1\nIN IN A 192.0.2.1\n3600 A 192.0.2.1\n", "1 A.example.org. 60 A c0000201|2 NS.example.org. 60 A c0000201|3 IN.example.org. 60 A c0000201|4 3600.example.org. 60 A c0000201"},
		{"letters keep their case", "HoSt 60 CNAME Example.ORG.\n", "1 HoSt.example.org. 60 CNAME 074578616d706c65034f524700"},
		{"lower-case words", "a 60 in aaaa 2001:DB8::1\n", "1 a.example.org. 60 AAAA 20010db8000000000000000000000001"},
		{"IPv4 within IPv6", "a 60 AAAA ::ffff:192.0.2.1\n", "1 a.example.org. 60 AAAA 00000000000000000000ffffc0000201"},
		{"unknown RDATA of a known type, RFC 3597 5", "a 60 A \\# 4 c0000201\nb TYPE1 192.0.2.1\nc A \\# ( 4\n c0 000201 )\n", "1 a.example.org. 60 A c0000201|2 b.example.org. 60 A c0000201|3 c.example.org. 60 A c0000201"},
		{"unknown type, RFC 3597 5", "a 60 TYPE65280 \\# 3 abcdef\nb TYPE65280 \\# 0\n", "1 a.example.org. 60 TYPE65280 abcdef|2 b.example.org. 60 TYPE65280 "},
		{"quoted string over lines", "a 60 TXT \"x;(\n\\\"y\" z\\032\nb A 192.0.2.1\n", "1 a.example.org. 60 TXT 06783b280a2279027a20|3 b.example.org. 60 A c0000201"},
		{"empty string", "a 60 TXT \"\"\n", "1 a.example.org. 60 TXT 00"},
		{"strings without a blank between", "a 60 TXT \"b\"\"c\"d\n", "1 a.example.org. 60 TXT 016201630164"},
		{"TXT of 256 octets is split", "a 60 TXT " + long + "y\n", "1 a.example.org. 60 TXT ff" + strings.Repeat("78", 255) + "0179"},
		{"SVCB, RFC 9460 2.1", "a 60 HTTPS 1 . alpn=\"h2,h3\" port=443\n", "1 a.example.org. 60 HTTPS 000100" + "00010006026832026833" + "0003000201bb"},
		{"SOA over lines", "@ 60 SOA ns hm (\n 1 ; serial\n 2h 3 4\n 5 )\n", "1 example.org. 60 SOA " + nameHex(t, "ns.example.org") + nameHex(t, "hm.example.org") + "0000000100001c20000000030000000400000005"},
		{"label of 63, name of 255", strings.Repeat("a", 63) + " 60 A 192.0.2.1\n", "1 " + strings.Repeat("a", 63) + ".example.org. 60 A c0000201"},
		{"RRSIG", "a 60 RRSIG A 13 3 60 20380119031408 19700101000000 7 example.org. AQID\n", "1 a.example.org. 60 RRSIG 00010d030000003c80000000000000000007" + nameHex(t, "example.org") + "010203"},
		{"NSEC, RFC 4034 4.1.2", "a 60 NSEC b TYPE1234 NSEC A MX RRSIG\n", "1 a.example.org. 60 NSEC " + nameHex(t, "b.example.org") + "0006400100000003041b" + strings.Repeat("00", 26) + "20"},
		{"$GENERATE", "$TTL 9\n$GENERATE 8-10/2 h${1,3,d}-$ A 192.0.2.$\n A 192.0.2.99\n", "2 h009-8.example.org. 9 A c0000208|2 h011-10.example.org. 9 A c000020a|3 h011-10.example.org. 9 A c0000263"},
		{"$GENERATE with an escaped dollar", "$TTL 9\n$GENERATE 1-1 a$$\\$$ TXT \"$;\"\n", `2 a\$\$1.example.org. 9 TXT 02313b`},
		{"$GENERATE of nibbles", "$TTL 9\n$GENERATE 18-18 ${0,3,n} A 192.0.2.1\n", "2 2.1.example.org. 9 A c0000201"},
		{"directives in any case", "$ttl 9\n$Origin x\na A 192.0.2.1\n", "3 a.x.example.org. 9 A c0000201"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, problems := readText(t, tt.text)
			for _, p := range problems {
				if p.Level == Error {
					t.Errorf("problem: %v", p)
				}
			}
			if g := strings.Join(got, "|"); g != tt.want {
				t.Errorf("got  %s\nwant %s", g, tt.want)
			}
		})
	}
}

func TestReadProblems(t *testing.T) {
	label64 := strings.Repeat("a", 64)
	name255 := strings.Repeat(strings.Repeat("a", 60)+".", 4)
	tests := []struct{ name, text, want string }{ // want: line:column: part of the text
		{"bad address", "a 60 A 192.0.2.256\n", "1:8: RDATA of A"},
		{"address with a leading zero", "a 60 A 192.0.2.01\n", "1:8: RDATA of A"},
		{"bad IPv6", "a 60 AAAA 1::2::3\n", "1:11: RDATA of AAAA"},
		{"IPv6 with a zone", "a 60 AAAA fe80::1%eth0\n", "1:11: RDATA of AAAA"},
		{"all bad lines are told", "a 60 A x\nb 60 A 192.0.2.1\nc 60 MX y\n", "1:8: RDATA of A|3:9: RDATA of MX"},
		{"no RDATA", "a 60 A\nb 60 NS ; none\n", "1:6: A record without|2:6: NS record without"},
		{"garbage behind RDATA", "a 60 A 192.0.2.1 x\n", "1:8: RDATA of A"},
		{"SOA cut short", "@ 60 SOA ns hm 1 2 3\n", "1:10: RDATA of SOA record: it ends too early"},
		{"DS cut short", "a 60 DS 1 2 3\n", "1:9: RDATA of DS record: it ends too early"},
		{"RRSIG cut short", "a 60 RRSIG A 13 3 60 20300101000000 20200101000000 1 example.org.\n", "RDATA of RRSIG record: it ends too early"},
		{"NAPTR cut short", "a 60 NAPTR 1 2 \"s\"\n", "RDATA of NAPTR record: it ends too early"},
		{"length of unknown RDATA", "a 60 A \\# 5 c0000201\n", "1:13: RDATA of 4 octets where 5"},
		{"unknown RDATA too short for its type, RFC 3597 5", "a 60 A \\# 3 c00002\n", "1:8: RDATA of 3 octets is not"},
		{"compressed name in unknown RDATA, RFC 3597 4", "a 60 MX \\# 4 000ac000\n", "RDATA of 4 octets is not"},
		{"class other than IN", "a 60 CH TXT x\n", "1:6: class CH"},
		{"class in numbers", "a 60 CLASS3 TXT x\n", "1:6: class CLASS3"},
		{"type of messages only", "a 60 ANY x\n", "1:6: ANY cannot be in a zone"},
		{"type of no name", "a 60 FOO x\n", "1:6: \"FOO\" is neither"},
		{"type without presentation format", "a 60 TYPE65280 x\n", "no presentation format"},
		{"out of zone", "a.example.net. 60 A 192.0.2.1\n", "1:1: a.example.net. is out of the zone"},
		{"out of zone by a part of a label", "xexample.org. 60 A 192.0.2.1\n", "1:1: xexample.org. is out of"},
		{"no owner", " 60 A 192.0.2.1\n", "1:2: record without an owner"},
		{"label of 64", label64 + " 60 A 192.0.2.1\n", "1:1: owner"},
		{"name of 256", name255 + "aaaaaaaaaaa 60 A 192.0.2.1\n", "is longer than 255"},
		{"name of 256 in RDATA", "a 60 NS " + name255 + "aaaaaaaaaaaaaaa.\n", "RDATA of NS"},
		{"empty label", "a..b 60 A 192.0.2.1\n", "has an empty label"},
		{"escape of 256", "a\\256 60 A 192.0.2.1\n", "has an escape"},
		{"parenthesis never closed", "a 60 A ( 192.0.2.1\nb 60 A x\n", "1:8: parenthesis is never closed|2:8: RDATA of A"},
		{"closing parenthesis alone", "a 60 A 192.0.2.1 )\nb 60 A x\n", "1:18: \")\" without|2:8: RDATA"},
		{"quote never closed", "a 60 TXT \"x\nb 60 A x\n", "1:10: quote is never closed|2:8: RDATA of A"},
		{"quote closed by that of a later line", "a 60 TXT \"x\nb 60 TXT \"y\"\nc 60 A x\n", "quote is never closed|3:8: RDATA of A"},
		{"unknown directive", "$FOO\n", "1:1: unknown directive"},
		{"$TTL", "$TTL x\n$TTL\n$TTL 1 2\n", "1:6: \"x\" is not a TTL|2:1: $TTL without|3:8: \"2\" behind $TTL"},
		{"$ORIGIN", "$ORIGIN a..b\n", "1:9: name \"a..b\" has an empty"},
		{"$GENERATE", "$GENERATE 5-1 a$ A 192.0.2.1\n", "1:11: range"},
		{"record of $GENERATE", "$GENERATE 255-256 a$ 60 A 192.0.2.$\n", "1:0: RDATA of A"},
		{"missing include", "$INCLUDE none\n", "1:10: cannot include"},
		{"TTL too large", "a 4294967296 A 192.0.2.1\n", "1:3: \"4294967296\" is not a TTL"},
		{"key of more than 65535 octets, RFC 1035 3.2.1", "a 60 DNSKEY 256 3 13 " + strings.Repeat("AAAA", 22000) + "\n", "RDATA of DNSKEY"},
		{"text of more than 65535 octets, RFC 1035 3.2.1", "a 60 TXT " + strings.Repeat(strings.Repeat("x", 200)+" ", 330) + "\n", "RDATA of TXT"},
		{"quoted owner", "\"a\" 60 A 192.0.2.1\n", "record without an owner"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := readText(t, tt.text)
			want := strings.Split(tt.want, "|")
			if len(problems) != len(want) {
				t.Fatalf("got %d problems, want %d: %v", len(problems), len(want), problems)
			}
			for i, p := range problems {
				if p.Level != Error {
					t.Errorf("level of %v", p)
				}
				if text := fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Text); !strings.Contains(text, want[i]) {
					t.Errorf("got  %s\nwant %s", text, want[i])
				}
			}
		})
	}
}

func TestReadTellsProblemsAsError(t *testing.T) {
	dir := writeFiles(t, map[string]string{"zone": "a 60 A x\n"})
	err := Read(filepath.Join(dir, "zone"), Options{}, func([]Record) error { return nil })
	var p *ProblemsError
	if !errors.As(err, &p) || len(p.Problems) != 1 {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "zone:1:8: error: RDATA of A record") {
		t.Errorf("text %q", err)
	}
	broken := errors.New("broken")
	path := filepath.Join(writeFiles(t, map[string]string{"zone": "a 60 A 192.0.2.1\n"}), "zone")
	if err := Read(path, Options{}, func([]Record) error { return broken }); err != broken {
		t.Errorf("error of the callback became %v", err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestInclude(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"secret":             "s 60 A 192.0.2.66\n",
		"zones/main":         "$TTL 60\na A 192.0.2.1\n$INCLUDE sub/one b.example.org.\n A 192.0.2.3\n",
		"zones/sub/one":      "$TTL 7\nc A 192.0.2.2\n$INCLUDE \"two x\"\n$ORIGIN z\nd A x\n",
		"zones/sub/two x":    "@ A 192.0.2.9",
		"zones/up":           "$INCLUDE ../secret\na 60 A 192.0.2.1\n",
		"zones/inside":       "i 60 A 192.0.2.8\n",
		"zones/up-missing":   "$INCLUDE ../none\n",
		"zones/abs":          "$INCLUDE /etc/passwd\n",
		"zones/linked":       "$INCLUDE link\n",
		"zones/linked-in":    "$INCLUDE inner\n",
		"zones/loop":         "$INCLUDE loop\na 60 A 192.0.2.1\n",
		"zones/folder":       "$INCLUDE sub\n",
		"zones/sub/up-again": "$INCLUDE ../sub/two\\032x\n",
	})
	symlink(t, "../secret", filepath.Join(dir, "zones", "link"))
	symlink(t, filepath.Join(dir, "zones", "inside"), filepath.Join(dir, "zones", "inner"))
	tests := []struct{ file, want, problem string }{
		{"main", "2 a.example.org. 60 A c0000201|2 c.b.example.org. 7 A c0000202|1 b.example.org. 7 A c0000209|4 a.example.org. 60 A c0000203", "one:5:5: error: RDATA of A"},
		{"up", "2 a.example.org. 60 A c0000201", "outside the root folder"},
		{"up-missing", "", "outside the root folder"},
		{"abs", "", "outside the root folder"},
		{"linked", "", "outside the root folder"},
		{"linked-in", "1 i.example.org. 60 A c0000208", ""},
		{"folder", "", "not a regular file"},
		{"loop", strings.Repeat("2 a.example.org. 60 A c0000201|", 9), "more than 8 deep"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			got, problems, err := readAll(filepath.Join(dir, "zones", tt.file), Options{Origin: mustName(t, "example.org")})
			if err != nil {
				t.Fatal(err)
			}
			if g := strings.Join(got, "|"); g != strings.TrimSuffix(tt.want, "|") {
				t.Errorf("got  %s\nwant %s", g, tt.want)
			}
			if text := strings.Trim(fmt.Sprint(problems), "[]"); !strings.Contains(text, tt.problem) || tt.problem == "" && text != "" {
				t.Errorf("problems %s, want %s", text, tt.problem)
			}
		})
	}
}

func TestIncludeWithinWiderRoot(t *testing.T) {
	dir := writeFiles(t, map[string]string{"other": "s 60 A 192.0.2.66\n", "zones/up": "$INCLUDE ../other\na 60 A 192.0.2.1\n"})
	got, problems, err := readAll(filepath.Join(dir, "zones", "up"), Options{Root: dir})
	if err != nil || len(problems) > 0 || len(got) != 2 {
		t.Errorf("got %v %v %v", got, problems, err)
	}
}

func TestLimits(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"bad":      strings.Repeat("a A x\n", 500),
		"warnings": strings.Repeat("a 2147483648 A 192.0.2.1\n", 500) + "a 60 A x\n",
		"generate": "$GENERATE 1-1000 a$ 60 A 192.0.2.1\n$GENERATE 1-1000 b$ 60 A 192.0.2.1\n",
		"wide":     "$GENERATE 1-1000 a$ 60 TXT " + strings.Repeat("${0,255}", 1000) + "\n",
		"record":   "a 60 TXT (" + strings.Repeat(" \"x\"\n", 100_000) + "\nb 60 A x\n",
	})
	run := func(name string, l Limits) (int, []Problem, error) {
		got, problems, err := readAll(filepath.Join(dir, name), Options{Origin: mustName(t, "example.org"), Limits: l})
		return len(got), problems, err
	}
	if _, p, err := run("bad", Limits{}); len(p) != 100 || err != nil {
		t.Errorf("%d problems, %v", len(p), err)
	}
	if n, p, err := run("warnings", Limits{}); n != 500 || len(p) != 101 || p[100].Level != Error || err != nil {
		t.Errorf("warnings: %d records, %d problems, %v", n, len(p), err)
	}
	if n, p, _ := run("generate", Limits{Generate: 1500}); n != 1000 || len(p) != 1 || p[0].Line != 2 {
		t.Errorf("generate: %d records, %v", n, p)
	}
	if _, p, _ := run("wide", Limits{Record: 1000}); len(p) != 1 || !strings.Contains(p[0].Text, "more than 1000 bytes") {
		t.Errorf("wide: %v", p)
	}
	if _, _, err := run("bad", Limits{Bytes: 100}); err == nil {
		t.Errorf("bytes: no error")
	}
	if _, p, _ := run("record", Limits{Record: 1000}); len(p) == 0 || !strings.Contains(p[0].Text, "more than 1000 bytes") {
		t.Errorf("record: %v", p)
	}
}

// Lines longer than a chunk and than a record may be end with one problem each,
// whatever they hold, and reading goes on behind them.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("a", 5000)
	for name, line := range map[string]string{
		"comment":           "; " + long,
		"comment of record": "x 60 TXT a ; " + long,
		"comment in record": "x 60 TXT ( a ; " + long,
		"word":              "x 60 TXT " + long + long,
		"strings":           "x 60 TXT " + strings.Repeat(`"a" `, 3000),
		"open quote":        `x 60 TXT "` + long,
		"parentheses":       strings.Repeat("(", 5000),
		"blanks":            strings.Repeat(" ", 5000),
		"octets":            strings.Repeat("\x00\xff;(\"", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			for _, end := range []string{"", "\n", "\nb 60 A 192.0.2.1\n"} {
				dir := writeFiles(t, map[string]string{"zone": "a 60 A 192.0.2.1\n" + line + end})
				o := Options{Origin: mustName(t, "example.org"), Limits: Limits{Record: 1000}, chunk: 700}
				for _, o.Workers = range []int{1, 2} {
					got, problems, err := readAll(filepath.Join(dir, "zone"), o)
					if err != nil || len(got) == 0 || len(problems) > 20 {
						t.Errorf("end %q: %d records, %d problems, %v", end, len(got), len(problems), err)
					}
				}
			}
		})
	}
}

// A pipe has no end until its writer says so: it is not opened.
func TestNotRegular(t *testing.T) {
	dir := writeFiles(t, map[string]string{"zone": "$INCLUDE pipe\n"})
	if err := exec.Command("mkfifo", filepath.Join(dir, "pipe")).Run(); err != nil {
		t.Skip("mkfifo:", err)
	}
	for name, want := range map[string]string{"pipe": "not a regular file", "zone": "not a regular file"} {
		err := Read(filepath.Join(dir, name), Options{Origin: mustName(t, "example.org")}, func([]Record) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// bigZone is a zone of more than a few chunks with everything that lines hand
// down to later lines, at other distances from the edges of chunks each time.
func bigZone() string {
	var b strings.Builder
	b.WriteString("a 77 A 192.0.2.1\n")
	for i := range 30_000 {
		switch {
		case i%7000 == 6999:
			fmt.Fprintf(&b, "$ORIGIN o%d.example.org.\n", i)
		case i%9000 == 8999:
			fmt.Fprintf(&b, "$GENERATE 1-3 g$-%d A 192.0.2.$\n", i)
		case i%5000 == 4999:
			fmt.Fprintf(&b, "t%d %d TXT ( \"a\n;b\" ; c\n )\n", i, i)
		case i == 20_000:
			b.WriteString("$TTL 5\n")
		case i%3 == 0:
			fmt.Fprintf(&b, "host%d MX 10 mail\\%03d\n", i, i%256)
		default:
			b.WriteString("\tIN A 192.0.2.3\n")
		}
	}
	return b.String()
}

func TestParallelReadsTheSame(t *testing.T) {
	path := filepath.Join(writeFiles(t, map[string]string{"zone": bigZone()}), "zone")
	origin := mustName(t, "example.org")
	want, problems, err := readAll(path, Options{Origin: origin, Workers: 1})
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	got, problems, err := readAll(path, Options{Origin: origin, Workers: 4})
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d records, alone %d", len(got), len(want))
	}
	zp := dns.NewZoneParser(strings.NewReader(bigZone()), "example.org.", "")
	var i int
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		rd, err := packRDATA(rr, 100)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := wire.ParseName(rr.Header().Name)
		line := fmt.Sprintf("%s %s %x", n.String(), typeName(rr.Header().Rrtype), rd)
		if i >= len(got) {
			t.Fatal("too few records")
		}
		f := strings.Fields(got[i])
		if g := strings.Join([]string{f[1], f[3], f[4]}, " "); g != line {
			t.Fatalf("record %d: got %s, want %s", i, g, line)
		}
		i++
	}
	if zp.Err() != nil || i != len(got) {
		t.Errorf("%d records, want %d: %v", len(got), i, zp.Err())
	}
}

func TestReadStopsWhenTheCallerDoes(t *testing.T) {
	path := filepath.Join(writeFiles(t, map[string]string{"zone": bigZone()}), "zone")
	stop := errors.New("enough")
	calls := 0
	err := Read(path, Options{Workers: 3}, func([]Record) error { calls++; return stop })
	if err != stop || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
