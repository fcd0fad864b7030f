package wire

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestParseName(t *testing.T) {
	label63 := strings.Repeat("a", 63)
	for _, c := range []struct {
		name, rfc, text, want string
		err                   error
	}{
		{"root", "1035 §5.1", ".", "\x00", nil},
		{"nothing", "1035 §5.1", "", "\x00", nil},
		{"letters as they come", "4343 §3", "wWw.Example.", "\x03wWw\x07Example\x00", nil},
		{"no final dot", "1035 §5.1", "a.b", "\x01a\x01b\x00", nil},
		{"dot inside a label", "4343 §2.1", `a\.b.c.`, "\x03a.b\x01c\x00", nil},
		{"dot inside a label by number", "4343 §2.1", `a\046b.c.`, "\x03a.b\x01c\x00", nil},
		{"backslash", "4343 §2.1", `\\.`, "\x01\\\x00", nil},
		{"any octet by number", "4343 §2.1", `\000\255.`, "\x02\x00\xff\x00", nil},
		{"escaped end is no final dot", "4343 §2.1", `a\.`, "\x02a.\x00", nil},
		{"signs of master files", "1035 §5.1", `\@\$\;\(.`, "\x04@$;(\x00", nil},
		{"label of 63 octets", "1035 §2.3.4", label63 + ".", "\x3f" + label63 + "\x00", nil},
		{"label of 64 octets", "1035 §2.3.4", label63 + "a.", "", ErrLongLabel},
		{"label of 63 octets, escaped", "1035 §2.3.4", strings.Repeat(`\097`, 63), "\x3f" + label63 + "\x00", nil},
		{"name of 255 octets", "1035 §2.3.4", Name(longName(255)).String(), longName(255), nil},
		{"name of 256 octets", "1035 §2.3.4", strings.Repeat(label63+".", 3) + strings.Repeat("b", 62), "", ErrLongName},
		{"127 labels", "1035 §2.3.4", strings.Repeat("x.", 127), deepName(127), nil},
		{"128 labels", "1035 §2.3.4", strings.Repeat("x.", 128), "", ErrLongName},
		{"empty label", "1035 §3.1", "a..b.", "", ErrEmptyLabel},
		{"dot in front", "1035 §3.1", ".a.", "", ErrEmptyLabel},
		{"two dots", "1035 §3.1", "..", "", ErrEmptyLabel},
		{"escape of nothing", "1035 §5.1", `a\`, "", ErrEscape},
		{"escape above 255", "1035 §5.1", `\256`, "", ErrEscape},
		{"escape of two digits", "1035 §5.1", `\25`, "", ErrEscape},
		{"escape of a digit and a letter", "1035 §5.1", `\2a5`, "", ErrEscape},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := ParseName(c.text)
			if !errors.Is(err, c.err) || string(n) != c.want {
				t.Errorf("RFC %s: ParseName(%q) = %q, %v; want %q, %v", c.rfc, c.text, string(n), err, c.want, c.err)
			}
		})
	}
}

func TestNameString(t *testing.T) {
	for wire, want := range map[string]string{
		"\x00":                    ".",
		"\x03a.b\x01C\x00":        `a\.b.C.`,
		"\x06@$;()\"\x00":         `\@\$\;\(\)\".`,
		"\x03 \x7f\xe9\x00":       `\032\127\233.`,
		"\x02\x00\\\x00":          `\000\\.`,
		"\x06b\xc3\xbcche\x00":    `b\195\188che.`,
		"\x01*\x04_tcp\x02-1\x00": `*._tcp.-1.`,
	} {
		if got := Name(wire).String(); got != want {
			t.Errorf("%q is written %s, want %s", wire, got, want)
		}
	}
}

// RFC 4034 §6.1 has this list, in order.
func TestCompare(t *testing.T) {
	ordered := []string{"example.", "a.example.", "yljkjljk.a.example.", "Z.a.example.", "zABC.a.EXAMPLE.", "z.example.", `\001.z.example.`, "*.z.example.", `\200.z.example.`}
	for i, x := range ordered {
		for j, y := range ordered {
			a, _ := ParseName(x)
			b, _ := ParseName(y)
			got := Compare(a, b)
			if got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("Compare(%s, %s) = %d", x, y, got)
			}
		}
	}
}

func TestUnder(t *testing.T) {
	for _, c := range []struct {
		name, parent string
		want         bool
	}{
		{"a.example.", "example.", true},
		{"A.EXAMPLE.", "example.", true},
		{"example.", "example.", true},
		{"example.", ".", true},
		{".", ".", true},
		{".", "example.", false},
		{"example.", "a.example.", false},
		{"anexample.", "example.", false},
		{`a\.example.`, "example.", false},
		{"a.example.org.", "example.", false},
	} {
		n, _ := ParseName(c.name)
		p, _ := ParseName(c.parent)
		if got := n.Under(p); got != c.want {
			t.Errorf("%s under %s: %v", c.name, c.parent, got)
		}
	}
}

// Folding concerns the letters of ASCII and nothing else (RFC 4343 §3).
func TestFold(t *testing.T) {
	for i := range 256 {
		c := byte(i)
		want := bytes.ToLower([]byte{c})[0]
		if c >= 0x80 {
			want = c
		}
		nine := bytes.Repeat([]byte{c}, 9) // eight octets at once and one alone
		folded := bytes.Repeat([]byte{want}, 9)
		if FoldByte(c) != want || !EqualFold(nine, folded) || string(Name(nine).Fold()) != string(folded) {
			t.Errorf("octet %#x is folded to %#x", c, FoldByte(c))
		}
		for j := range 256 {
			if other := byte(j); FoldByte(other) != want && EqualFold(nine, bytes.Repeat([]byte{other}, 9)) {
				t.Errorf("octets %#x and %#x are equal", c, other)
			}
		}
	}
	if EqualFold([]byte("a"), []byte("ab")) {
		t.Error("lengths are not compared")
	}
}

// A hash depends on every octet, and on where labels end.
func TestHashName(t *testing.T) {
	seen := map[uint64]Name{HashName(Root): Root}
	for size := 1; size <= 20; size++ {
		for at := range size {
			for _, c := range []byte{'b', '0', 0} {
				label := bytes.Repeat([]byte{'a'}, size)
				label[at] = c
				n := append(append(Name{byte(size)}, label...), 0)
				if other, ok := seen[HashName(n)]; ok {
					t.Fatalf("%s and %s have the same hash", n, other)
				}
				seen[HashName(n)] = n
			}
		}
	}
	if HashName(Name("\x01a\x01b\x00")) == HashName(Name("\x01b\x01a\x00")) || HashName(Name("\x03a.b\x00")) == HashName(Name("\x01a\x01b\x00")) {
		t.Error("the order of labels, or where they end, does not count")
	}
}

func TestReadName(t *testing.T) {
	chain := func(hops int) string { // the root, then pointers, each to the one before
		b := strings.Builder{}
		b.WriteByte(0)
		for i := range hops {
			to := max(0, 2*i-1)
			b.Write([]byte{0xc0 | byte(to>>8), byte(to)})
		}
		return b.String()
	}
	for _, c := range []struct {
		name, rfc, msg string
		off, end       int // end is -1 where there is no name
		want           string
	}{
		{"plain", "1035 §3.1", "\x01a\x00", 0, 3, "\x01a\x00"},
		{"root", "1035 §3.1", "\x00", 0, 1, "\x00"},
		{"pointer", "1035 §4.1.4", "\x01a\x00\x01b\xc0\x00zz", 3, 7, "\x01b\x01a\x00"},
		{"pointer to a pointer", "1035 §4.1.4", "\x00\xc0\x00\xc0\x01", 3, 5, "\x00"},
		{"pointer to itself", "9267 §2", "\xc0\x00", 0, -1, ""},
		{"pointer into itself", "9267 §2", "\x01a\xc0\x00", 0, -1, ""},
		{"pointer forwards", "9267 §2", "\xc0\x02\x00", 0, -1, ""},
		{"two that point at each other", "9267 §2", "\xc0\x02\xc0\x00", 2, -1, ""},
		{"pointer cut", "1035 §4.1.4", "\x00\xc0", 1, -1, ""},
		{"label cut", "1035 §3.1", "\x02a", 0, -1, ""},
		{"no end", "1035 §3.1", "\x01a", 0, -1, ""},
		{"beyond the message", "1035 §3.1", "\x00", 1, -1, ""},
		{"label type 0x40", "6891 §5", "\x40\x00", 0, -1, ""},
		{"label type 0x80", "6891 §5", "\x80\x00", 0, -1, ""},
		{"255 octets", "1035 §2.3.4", longName(255), 0, 255, longName(255)},
		{"256 octets", "1035 §2.3.4", longName(256), 0, -1, ""},
		{"256 octets by a pointer", "1035 §2.3.4", longName(254) + "\x01a\xc0\x00", 254, -1, ""},
		{"255 octets by a pointer", "1035 §2.3.4", longName(253) + "\x01a\xc0\x00", 253, 257, "\x01a" + longName(253)},
		{"127 pointers", "9267 §2", chain(127), 253, 255, "\x00"},
		{"128 pointers", "9267 §2", chain(128), 255, -1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var room [MaxName]byte
			n, end, ok := ReadName(room[:0], []byte(c.msg), c.off)
			if ok != (c.end >= 0) || ok && (end != c.end || string(n) != c.want) {
				t.Errorf("RFC %s: ReadName = %q, %d, %v; want %q, %d", c.rfc, string(n), end, ok, c.want, c.end)
			}
		})
	}
}

// FuzzName holds ParseName and String against each other and miekg/dns.
func FuzzName(f *testing.F) {
	for _, s := range []string{"", ".", "a.b", `a\.b.`, `\000\255.`, "..", `a\`, `\256`, "bücher.example.", strings.Repeat("x.", 127), longName(255), `a b\"c.`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if strings.IndexByte(s, '\\') < 0 && s != "" { // escapes it takes more loosely
			packed := make([]byte, MaxName+1)
			size, oracle := dns.PackDomainName(dns.Fqdn(s), packed, 0, nil, false)
			if _, is := dns.IsDomainName(s); (err == nil) != (oracle == nil && is && size <= MaxName) { // it packs 256 octets
				t.Fatalf("ParseName(%q): %v; miekg/dns: %v, %v", s, err, oracle, is)
			}
		}
		if err != nil {
			return
		}
		if UncompressedEnd(n, 0) != len(n) || len(n) > MaxName {
			t.Fatalf("ParseName(%q) made %q, which is no name", s, string(n))
		}
		text := n.String()
		again, err := ParseName(text)
		if err != nil || !bytes.Equal(again, n) {
			t.Fatalf("%q is written %s and read back as %q, %v", string(n), text, string(again), err)
		}
		packed := make([]byte, MaxName)
		size, err := dns.PackDomainName(text, packed, 0, nil, false)
		if err != nil || !bytes.Equal(packed[:size], n) {
			t.Fatalf("%q is written %s, which miekg/dns packs as %q, %v", string(n), text, packed[:size], err)
		}
		if got := dns.CountLabel(text); got != n.Labels() {
			t.Fatalf("%s has %d labels, miekg/dns counts %d", text, n.Labels(), got)
		}
	})
}

// FuzzReadName holds the readers of names against each other and miekg/dns.
func FuzzReadName(f *testing.F) {
	f.Add([]byte("\x01a\x00\x01b\xc0\x00"), 3)
	f.Add([]byte("\xc0\x02\xc0\x00"), 2)
	f.Add([]byte(longName(253)+"\x01a\xc0\x00"), 253)
	f.Add([]byte(deepName(127)+"\x01a\xc0\x02"), 255)
	f.Fuzz(func(t *testing.T, msg []byte, off int) {
		if off < 0 || off > len(msg) || len(msg) > MaxMessage {
			return
		}
		skipped, plain := SkipName(msg, off), UncompressedEnd(msg, off)
		n, end, ok := ReadName(nil, msg, off)
		if plain >= 0 && (!ok || end != plain || !bytes.Equal(n, msg[off:plain])) {
			t.Fatalf("uncompressed up to %d, but read as %q up to %d, %v", plain, string(n), end, ok)
		}
		if !ok {
			return
		}
		if end != skipped || len(n) > MaxName || UncompressedEnd(n, 0) != len(n) {
			t.Fatalf("read as %q up to %d, skipped to %d", string(n), end, skipped)
		}
		text, oracle, err := dns.UnpackDomainName(msg, off)
		if err != nil && strings.Contains(err.Error(), "too many compression pointers") {
			return // it stops at one less than we do
		}
		back, _ := ParseName(text)
		if err != nil || oracle != end || !slices.Equal(back, n) {
			t.Fatalf("read as %q up to %d; miekg/dns has %s up to %d, %v", string(n), end, text, oracle, err)
		}
	})
}
