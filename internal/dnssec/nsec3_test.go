package dnssec

import (
	"bytes"
	"encoding/base32"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

func name(t testing.TB, text string) wire.Name {
	t.Helper()
	n, err := wire.ParseName(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// text is a hash as in an owner name.
func text(h Hash) string {
	return strings.ToLower(base32.HexEncoding.EncodeToString(h[:]))
}

// The names of RFC 5155 appendix A: salt aabbccdd, 12 additional iterations.
func TestHashName(t *testing.T) {
	p := NSEC3Params{Iterations: 12, Salt: []byte{0xaa, 0xbb, 0xcc, 0xdd}}
	for owner, want := range map[string]string{
		"example.":       "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom",
		"a.example.":     "35mthgpgcu1qg68fab165klnsnk3dpvl",
		"ai.example.":    "gjeqe526plbf1g8mklp59enfd789njgi",
		"ns1.example.":   "2t7b4g4vsa5smi47k61mv5bv1a22bojr",
		"ns2.example.":   "q04jkcevqvmu85r014c7dkba38o0ji5r",
		"w.example.":     "k8udemvp1j2f7eg6jebps17vp3n8i58h",
		"*.w.example.":   "r53bq7cc2uvmubfu5ocmm6pers9tk9en",
		"x.w.example.":   "b4um86eghhds6nea196smvmlo4ors995",
		"y.w.example.":   "ji6neoaepv8b5o6k4ev33abha8ht9fgc",
		"x.y.w.example.": "2vptu5timamqttgl4luu9kg21e0aor3s",
		"xx.example.":    "t644ebqk9bibcna874givr6joj62mlhv",
		"X.Y.W.EXAMPLE.": "2vptu5timamqttgl4luu9kg21e0aor3s",
	} {
		if got := text(p.HashName(name(t, owner))); got != want {
			t.Errorf("RFC 5155 appendix A: hash of %s is %s, want %s", owner, got, want)
		}
	}
}

func TestHashNameOracle(t *testing.T) {
	long := strings.Repeat(strings.Repeat("L", 63)+".", 3) + strings.Repeat("m", 61) + "." // 255 octets
	for _, owner := range []string{".", "com.", `a\.b.Example.`, `\000\255.x.`, long} {
		for _, salt := range [][]byte{nil, {0}, []byte("salt"), bytes.Repeat([]byte{0xa5}, 255)} {
			for _, iterations := range []uint16{0, 1, 2, 150} {
				p := NSEC3Params{iterations, salt}
				want := strings.ToLower(dns.HashName(owner, dns.SHA1, iterations, hex.EncodeToString(salt)))
				if got := text(p.HashName(name(t, owner))); got != want {
					t.Errorf("hash of %s with %d iterations and salt %x is %s, miekg/dns has %s", owner, iterations, salt, got, want)
				}
			}
		}
	}
}

func TestAllocsHashName(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	n := name(t, "a.long.enough.Name.example.")
	p := NSEC3Params{Iterations: 2, Salt: []byte("salt")}
	label := []byte("2vptu5timamqttgl4luu9kg21e0aor3s")
	if got := testing.AllocsPerRun(100, func() { p.HashName(n); DecodeHash(label) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func TestDecodeHash(t *testing.T) {
	for _, c := range []struct {
		name, text string
		ok         bool
	}{
		{"lower case", "2vptu5timamqttgl4luu9kg21e0aor3s", true},
		{"upper case", "2VPTU5TIMAMQTTGL4LUU9KG21E0AOR3S", true},
		{"31 characters", "2vptu5timamqttgl4luu9kg21e0aor3", false},
		{"33 characters", "2vptu5timamqttgl4luu9kg21e0aor3s0", false},
		{"none", "", false},
		{"w is no digit, 4648 §7", "wvptu5timamqttgl4luu9kg21e0aor3s", false},
		{"padding", "2vptu5timamqttgl4luu9kg21e0aor3=", false},
		{"@ in front of A", "@vptu5timamqttgl4luu9kg21e0aor3s", false},
	} {
		if h, ok := DecodeHash([]byte(c.text)); ok != c.ok || ok && text(h) != strings.ToLower(c.text) {
			t.Errorf("%s: %q is read as %x, %v", c.name, c.text, h, ok)
		}
	}
}

func FuzzDecodeHash(f *testing.F) {
	f.Add([]byte("2vptu5timamqttgl4luu9kg21e0aor3s"))
	f.Add([]byte("2vptu5timamqttgl4luu9kg21e0aor3="))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, ok := DecodeHash(in)
		want, err := base32.HexEncoding.DecodeString(string(bytes.ToUpper(in)))
		// The library passes over line breaks.
		valid := err == nil && len(in) == HashText && len(want) == len(h) && !bytes.ContainsAny(in, "\r\n")
		if valid && bytes.ContainsFunc(in, func(r rune) bool { return r >= 0x80 }) {
			valid = false // letters that ToUpper makes digits of
		}
		if ok != valid || ok && !bytes.Equal(h[:], want) {
			t.Fatalf("%q is read as %x, %v; the library has %x, %v", in, h, ok, want, err)
		}
	})
}

func TestReadNSEC3(t *testing.T) {
	for _, c := range []struct {
		name, rdata string
		ok          bool
		want        NSEC3Params
	}{
		{"no salt, 5155 §4.2", "\x01\x00\x00\x0c\x00", true, NSEC3Params{Iterations: 12}},
		{"salt and hash, 5155 §3.2", "\x01\x01\xff\xfe\x02ab\x14hash", true, NSEC3Params{65534, []byte("ab")}},
		{"another hash algorithm, 5155 §8.1", "\x02\x00\x00\x0c\x00", false, NSEC3Params{}},
		{"salt cut", "\x01\x00\x00\x0c\x02a", false, NSEC3Params{}},
		{"head cut", "\x01\x00\x00\x0c", false, NSEC3Params{}},
		{"nothing", "", false, NSEC3Params{}},
	} {
		p, ok := ReadNSEC3([]byte(c.rdata))
		if ok != c.ok || p.Iterations != c.want.Iterations || !bytes.Equal(p.Salt, c.want.Salt) {
			t.Errorf("%s: read as %+v, %v", c.name, p, ok)
		}
	}
}

func FuzzReadNSEC3(f *testing.F) {
	f.Add([]byte("\x01\x01\x00\x0c\x02ab\x14hash"))
	f.Add([]byte("\x01\x00\x00\x00\xff"))
	f.Fuzz(func(t *testing.T, rdata []byte) {
		p, ok := ReadNSEC3(rdata)
		if whole := len(rdata) >= 5 && len(rdata)-5 >= int(rdata[4]) && rdata[0] == 1; ok != whole {
			t.Fatalf("%q is read: %v", rdata, ok)
		}
		if ok && string(p.Salt) != string(rdata[5:5+int(rdata[4])]) {
			t.Fatalf("salt of %q is %q", rdata, p.Salt)
		}
	})
}
