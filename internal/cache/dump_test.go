package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// dumpWall is the wall clock of the dumps in tests.
var dumpWall = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// dumpedAll is a dump, made at 65 s, of what fillAll puts in.
func dumpedAll(t *testing.T) []byte {
	t.Helper()
	a := newAsker(t, open(t, Config{MaxStale: 60 * second}))
	fillAll(t, a)
	var b bytes.Buffer
	if n, err := a.cache.Dump(&b, 11*second, dumpWall); n != 7 || err != nil {
		t.Fatalf("with a SERVFAIL that has not ended yet %d entries dumped, %v", n, err)
	}
	b.Reset()
	if n, err := a.cache.Dump(&b, 65*second, dumpWall); n != 7 || err != nil {
		t.Fatalf("%d entries dumped, %v", n, err)
	}
	return b.Bytes()
}

// aged is what is listed of it after a load, 0 s of it at that clock.
var aged = []string{
	"WWW.example. 1 TXT view 0 CD NOERROR -5s",
	"net.example. 1 A view 0 198.51.100.0/24 NOERROR 45s",
	"net.example. 1 A view 0 2001:db8::/48 NOERROR 45s",
	"no.sub.Example. 1 A view 0 NXDOMAIN 5s",
	"notexample. 1 A view 0 NOERROR 45s",
	"www.example. 1 A view 0 NOERROR 45s",
	"www.example. 1 AAAA view 2147483648 NOERROR 5s",
}

func TestLoad(t *testing.T) {
	dump := dumpedAll(t)
	for _, c := range []struct {
		name   string
		conf   Config
		now    time.Duration
		passed time.Duration
		n      int
		left   string // of net.example.
	}{
		{"at once, in a new process", Config{MaxStale: 60 * second}, 0, 0, 7, "45s"},
		{"later in its life", Config{MaxStale: 60 * second}, 1000 * second, 0, 7, "45s"},
		{"the time between counts", Config{MaxStale: 60 * second}, second, 20 * second, 7, "25s"},
		{"beyond MaxStale", Config{MaxStale: 60 * second}, second, 55 * second, 6, "-10s"},
		{"long ago", Config{MaxStale: 60 * second}, second, 200 * 365 * 86400 * second, 0, ""},
		{"a clock that went back", Config{MaxStale: 60 * second}, second, -3600 * second, 7, "45s"},
		{"without stale data", Config{}, second, 0, 6, "45s"},
		{"smaller limits", Config{MaxTTL: 60 * second, MaxNegativeTTL: 50 * second}, second, 0, 4, "5s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for kind, r := range map[string]io.Reader{"file": bytes.NewReader(dump), "pipe": io.MultiReader(bytes.NewReader(dump))} {
				cache := open(t, c.conf)
				n, err := cache.Load(r, c.now, dumpWall.Add(c.passed))
				got := listed(cache, c.now)
				if err != nil || n != c.n || len(got) != c.n {
					t.Fatalf("%s: %d loaded, %v; listed are\n%s", kind, n, err, strings.Join(got, "\n"))
				}
				for _, l := range got {
					if strings.HasPrefix(l, "net.") && !strings.HasSuffix(l, " "+c.left) {
						t.Errorf("%s: loaded as %s, want %s left", kind, l, c.left)
					}
				}
				if c.left == "45s" && c.n == 7 && !slices.Equal(got, aged) {
					t.Errorf("%s: loaded\n%s", kind, strings.Join(got, "\n"))
				}
				consistent(t, cache)
			}
		})
	}
}

// What was loaded answers as what was dumped, with and without DNSSEC records, and
// for subnets.
func TestLoadAnswers(t *testing.T) {
	c := open(t, Config{MaxStale: 60 * second})
	if _, err := c.Load(bytes.NewReader(dumpedAll(t)), 0, dumpWall); err != nil {
		t.Fatal(err)
	}
	a := newAsker(t, c)
	a.ask("www.example. A")
	for dnssec, want := range map[bool]string{
		false: "www.example. 45 IN A 192.0.2.1\n",
		true:  "www.example. 45 IN A 192.0.2.1\nwww.example. 45 IN" + rrsig + "\n",
	} {
		hit, m := a.get(0, dnssec)
		if hit.Verdict != Fresh || hit.Upstream != 0 || !strings.EqualFold(lines(m), want) {
			t.Errorf("DNSSEC %v: %+v\n%v", dnssec, hit, m)
		}
	}
	a.ask("net.example. A", subnet("2001:db8::/56"))
	if hit, m := a.get(0, false); hit.Verdict != Fresh || m.Answer[0].(*dns.A).A.String() != "192.0.2.6" {
		t.Errorf("for a subnet: %+v %v", hit, m)
	}
}

// What was popular is so after a load.
func TestLoadPopular(t *testing.T) {
	c := open(t, Config{})
	dump := remade(1, dumpEntry(dumped{freq: 2}, "", response(t, "www.example. A", 0, addr)))
	if _, err := c.Load(bytes.NewReader(dump), 0, dumpWall); err != nil {
		t.Fatal(err)
	}
	c.Each(0, func(e Entry) bool {
		if e.Freq != 2 {
			t.Errorf("loaded as %+v", e)
		}
		return true
	})
	if s := &c.shards[0]; s.main.len() != 1 || s.small.len() != 0 {
		t.Error("it is in the small queue")
	}
}

// What is newer in the cache stays.
func TestLoadOld(t *testing.T) {
	a := newAsker(t, open(t, Config{MaxStale: 60 * second}))
	a.ask("www.example. A")
	a.stores(response(t, "www.example. A", 0, "www.example. 100 IN A 192.0.2.99"), 0)
	if n, err := a.cache.Load(bytes.NewReader(dumpedAll(t)), second, dumpWall); n != 6 || err != nil {
		t.Errorf("%d loaded, %v", n, err)
	}
	if _, m := a.get(0, false); m.Answer[0].(*dns.A).A.String() != "192.0.2.99" {
		t.Errorf("replaced by %v", m)
	}
}

// Of a file that is cut or damaged anywhere nothing is loaded.
func TestLoadDamaged(t *testing.T) {
	dump := dumpedAll(t)
	c := open(t, Config{MaxStale: 60 * second})
	refused := func(what string, at int, b []byte) {
		t.Helper()
		if n, err := c.Load(bytes.NewReader(b), 0, dumpWall); err == nil || n != 0 || c.Stats().Entries != 0 {
			t.Fatalf("%s at %d: %d loaded, %v", what, at, n, err)
		}
	}
	for i := range dump {
		refused("cut", i, dump[:i])
		for _, bit := range []byte{1, 0x80} {
			b := slices.Clone(dump)
			b[i] ^= bit
			refused("changed", i, b)
		}
	}
	refused("more", len(dump), append(slices.Clone(dump), 0))
	end := len(dump) - blockHead - 4
	refused("another number of entries", end, append(slices.Clone(dump[:end]), sum([]byte{0, 0, 0, 0, 8, 0, 0, 0})...))
	for _, cse := range []struct {
		name   string
		change func([]byte)
		want   error
	}{
		{"version", func(b []byte) { b[7] = 2 }, ErrVersion},
		{"magic", func(b []byte) { b[0] = 'w' }, ErrNoDump},
		{"checksum of the head", func(b []byte) { b[8]++ }, ErrChecksum},
		{"size of a block", func(b []byte) { b[headSize+3] = 1 }, ErrEntry},
		{"checksum of a block", func(b []byte) { b[headSize+40]++ }, ErrChecksum},
		{"cut", func(b []byte) { b[headSize]++ }, ErrChecksum},
	} {
		b := slices.Clone(dump)
		cse.change(b)
		if _, err := c.Load(bytes.NewReader(b), 0, dumpWall); !errors.Is(err, cse.want) {
			t.Errorf("%s: %v, want %v", cse.name, err, cse.want)
		}
	}
}

// remade is a dump with one block whose entries are these octets, all checksums
// right.
func remade(count int, entries ...[]byte) []byte {
	b := append([]byte(dumpMagic), dumpVersion)
	b = sum(binary.LittleEndian.AppendUint64(b, uint64(dumpWall.UnixNano())))
	all := slices.Concat(entries...)
	block := binary.LittleEndian.AppendUint32(nil, uint32(len(all)))
	block = binary.LittleEndian.AppendUint32(block, uint32(count))
	b = append(b, sum(append(block, all...))...)
	end := binary.LittleEndian.AppendUint32(make([]byte, 4), uint32(count))
	return append(b, sum(end)...)
}

func dumpEntry(d dumped, scope string, msg []byte) []byte {
	b := append(d.append(nil), scope...)
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(msg))), msg...)
}

// A dump may be made by somebody who means harm: right checksums are no excuse.
func TestLoadHostile(t *testing.T) {
	msg := response(t, "www.example. A", 0, addr)
	good := dumpEntry(dumped{}, "", msg)
	net := string(make([]byte, 16))
	for _, c := range []struct {
		name string
		dump []byte
		ok   bool
	}{
		{"good", remade(1, good), true},
		{"with a scope", remade(1, dumpEntry(dumped{flags: dumpScoped}, net+"\x18\x04", msg)), true},
		{"SERVFAIL is left out", remade(2, good, dumpEntry(dumped{}, "", response(t, "www.example. A", 2))), true},
		{"one and a bad one", remade(2, good, dumpEntry(dumped{}, "", msg[:len(msg)-1])), false},
		{"fewer than said", remade(2, good), false},
		{"more than said", remade(1, good, good), false},
		{"born in the future", remade(1, dumpEntry(dumped{age: -1}, "", msg)), false},
		{"asked for too often", remade(1, dumpEntry(dumped{freq: 4}, "", msg)), false},
		{"unknown flags", remade(1, dumpEntry(dumped{flags: 4}, "", msg)), false},
		{"a scope of no bits", remade(1, dumpEntry(dumped{flags: dumpScoped}, net+"\x00\x04", msg)), false},
		{"a scope too long", remade(1, dumpEntry(dumped{flags: dumpScoped}, net+"\x21\x04", msg)), false},
		{"a scope of no family", remade(1, dumpEntry(dumped{flags: dumpScoped}, net+"\x18\x05", msg)), false},
		{"a scope with host bits", remade(1, dumpEntry(dumped{flags: dumpScoped}, "\x00\x00\x00\x01"+net[4:]+"\x18\x04", msg)), false},
		{"no message", remade(1, dumpEntry(dumped{}, "", nil)), false},
		{"a query", remade(1, dumpEntry(dumped{}, "", append([]byte{0, 0, 0, 0}, msg[4:]...))), false},
		{"a pointer into the header", remade(1, dumpEntry(dumped{}, "", bytes.Replace(msg, []byte{0xc0, 0x0c}, []byte{0xc0, 0x02}, 1))), false},
		{"a name that runs out", remade(1, dumpEntry(dumped{}, "", msg[:16])), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := open(t, Config{})
			n, err := cache.Load(bytes.NewReader(c.dump), 0, dumpWall)
			if (err == nil) != c.ok || n != cache.Stats().Entries && !strings.Contains(c.name, "scope") || (n == 1) != c.ok {
				t.Errorf("%d loaded, %v", n, err)
			}
		})
	}
}

// The dump of version 1 in testdata can be read by every later version.
func TestGolden(t *testing.T) {
	const path = "testdata/version1.dump"
	if *update {
		if err := os.WriteFile(path, dumpedAll(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := open(t, Config{MaxStale: 60 * second})
	n, err := c.LoadFile(path, 0, dumpWall)
	if got := listed(c, 0); err != nil || n != 7 || !slices.Equal(got, aged) {
		t.Errorf("%d loaded, %v:\n%s", n, err, strings.Join(got, "\n"))
	}
}

func TestSaveFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "cache.dump")
	a := newAsker(t, open(t, Config{MaxStale: 60 * second}))
	fillAll(t, a)
	for range 2 { // the second replaces the first
		if n, err := a.cache.SaveFile(path, 65*second, dumpWall); n != 7 || err != nil {
			t.Fatalf("%d saved, %v", n, err)
		}
	}
	c := open(t, Config{MaxStale: 60 * second})
	if n, err := c.LoadFile(path, 0, dumpWall); n != 7 || err != nil {
		t.Errorf("%d loaded, %v", n, err)
	}
	if _, err := c.LoadFile(path+"x", 0, dumpWall); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	// A folder in the way cannot be replaced by a file.
	if err := os.MkdirAll(filepath.Join(path+".d", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := a.cache.SaveFile(path+".d", 0, dumpWall); err == nil {
		t.Error("saved over a folder")
	}
	if _, err := a.cache.SaveFile(filepath.Join(folder, "no", "cache.dump"), 0, dumpWall); err == nil {
		t.Error("saved into a folder that is not there")
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A dump that cannot be written says so, wherever it stops.
func TestDumpFails(t *testing.T) {
	a := newAsker(t, open(t, Config{MaxStale: 60 * second}))
	fillAll(t, a)
	for good := range 3 {
		if n, err := a.cache.Dump(&stuck{good}, 65*second, dumpWall); !errors.Is(err, io.ErrShortWrite) || n != 0 {
			t.Errorf("after %d writes: %d entries, %v", good, n, err)
		}
	}
	if _, err := a.cache.Dump(&stuck{3}, 65*second, dumpWall); err != nil {
		t.Error(err)
	}
}

// stuck takes so many writes.
type stuck struct{ good int }

func (s *stuck) Write(b []byte) (int, error) {
	if s.good--; s.good < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// FuzzLoad reads dumps made by somebody who means harm. Whatever is loaded can be
// replayed, dumped and loaded again.
func FuzzLoad(f *testing.F) {
	golden, err := os.ReadFile("testdata/version1.dump")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden[headSize+blockHead:len(golden)-blockHead-8], 7)
	f.Add(dumpEntry(dumped{}, "", response(f, "www.example. A", 0, addr)), 1)
	f.Add(dumpEntry(dumped{flags: dumpScoped}, string(make([]byte, 16))+"\x18\x04", response(f, "www.example. A", 0, addr)), 1)
	f.Fuzz(func(t *testing.T, entries []byte, count int) {
		c := open(t, Config{MaxStale: 60 * second})
		if _, err := c.Load(bytes.NewReader(entries), 0, dumpWall); err == nil {
			t.Error("no head, but loaded")
		}
		n, err := c.Load(bytes.NewReader(remade(count, entries)), 0, dumpWall)
		if err != nil && n != 0 {
			t.Errorf("%d loaded, but %v", n, err)
		}
		a := newAsker(t, c)
		c.Each(0, func(e Entry) bool {
			q := append([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, e.Name...)
			a.raw(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(q, e.Type), e.Class), func(k *Key) {
				k.View, k.CD, k.Scope = e.View, e.CD, e.Scope
			})
			a.reply.Begin(&a.query, a.buf)
			if c.Stale(&a.key, 0, &a.reply, true).Verdict == Miss {
				t.Errorf("%+v is not found", e)
			}
			sound(t, a.reply.End(wire.NoError))
			return true
		})
		var b bytes.Buffer
		if _, err := c.Dump(&b, 0, dumpWall); err != nil {
			t.Fatal(err)
		}
		again := open(t, Config{MaxStale: 60 * second})
		if m, err := again.Load(&b, 0, dumpWall); err != nil || m > n {
			t.Errorf("%d of %d loaded again, %v", m, n, err)
		}
	})
}

// sound fails the test where a message is not.
func sound(t *testing.T, msg []byte) {
	t.Helper()
	var c wire.Checker
	var rec wire.Record
	for c.Read(msg); c.Next(&rec); {
	}
	if !c.Whole() {
		t.Errorf("replayed was %x, which is malformed", msg)
	}
}
