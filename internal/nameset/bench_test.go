package nameset

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/wire"
)

// syllables makes names that look like names: no two numbers give the same.
func syllables(n uint64) string {
	const consonants, vowels = "bcdfghklmnprstvz", "aeio"
	b := make([]byte, 0, 24)
	for {
		b = append(b, consonants[n&15], vowels[n>>4&3])
		if n >>= 6; n == 0 {
			return string(b)
		}
	}
}

// spread makes the number of a name unlike that of the name before.
func spread(i int) uint64 { return uint64(i) * 0x9e3779b1 & 0xffffffff }

// countryList is a list of the shape of the two that are used most to tell the
// names of one country from others: 142,316 suffixes of two labels and twelve
// characters on average, 1,247 full names, and 163 regular expressions, all with
// an end, most under the top labels that the names have too.
func countryList() string {
	var b strings.Builder
	tops := []string{"com", "com", "com", "com", "cn", "cn", "net", "org", "com.cn", "io"}
	for i := range 142_316 {
		fmt.Fprintf(&b, "%s.%s\n", syllables(spread(i)>>8), tops[i%len(tops)])
	}
	for i := range 1_247 {
		fmt.Fprintf(&b, "full:www.%s.%s\n", syllables(spread(i)), tops[i%len(tops)])
	}
	for i := range 143 {
		fmt.Fprintf(&b, "regexp:(^|\\.)%s[0-9a-z-]+\\.%s\\.%s$\n", syllables(spread(i)>>20), syllables(spread(i)>>12),
			strings.ReplaceAll(tops[i%len(tops)], ".", `\.`))
	}
	for i := range 15 {
		fmt.Fprintf(&b, "regexp:^ad[0-9]+\\.%s\\.com$\n", syllables(spread(i)>>10))
	}
	for i := range 5 {
		fmt.Fprintf(&b, "regexp:.+\\.a%d[a-z]\\.com$\n", i)
	}
	return b.String()
}

// blockList is n names to block, of two to four labels.
type blockList struct {
	n, at int
	rest  []byte
	line  []byte
}

func (l *blockList) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(l.rest) == 0 {
			if l.at == l.n {
				break
			}
			l.line = append(l.line[:0], blockName(l.at)...)
			l.line = append(l.line, '\n')
			l.rest, l.at = l.line, l.at+1
		}
		k := copy(p[n:], l.rest)
		n, l.rest = n+k, l.rest[k:]
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func blockName(i int) string {
	name := syllables(spread(i)) + [...]string{".com", ".net", ".co.uk", ".xyz"}[i&3]
	switch i % 3 {
	case 0:
		return "ads." + name
	case 1:
		return "a1.metrics." + name
	}
	return name
}

func read(t testing.TB, r io.Reader) *Set {
	t.Helper()
	b := NewBuilder(0)
	if err := b.Read(r, Domain); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

func TestCountryList(t *testing.T) {
	s := read(t, strings.NewReader(countryList()))
	if got, want := s.Stats(), (Stats{Full: 1247, Domain: 142_316, Regexp: 163}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	s := mapOf(t, `full:full.example domain:suffix.example keyword:word regexp:^r[0-9]+\.pattern\.example$ `+
		`regexp:(^|\.)exact\.example$ regexp:inner.*x regexp:^(a|b)+$`)
	for _, text := range []string{"full.example", "a.suffix.example", "a-word.example", "r17.pattern.example", "rx.pattern.example",
		"a.exact.example", "an.inner.text", "abab", `miss.example`, `ODD\255\@.example`, "."} {
		name, l := nameOf(t, text)
		if n := testing.AllocsPerRun(100, func() { s.Match(name, l); s.Find(name, l) }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

// resident is the memory of the process, in octets.
func resident(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc")
	}
	var size, pages int
	if _, err := fmt.Fscan(bytes.NewReader(raw), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// A million names are 40 MiB at most, and there is no more memory in use while
// they are read: the set takes over what the builder fills.
func TestMemory(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("takes a second, and the memory of the detector")
	}
	runtime.GC()
	before := resident(t)
	s := read(t, &blockList{n: 1_000_000})
	grown := resident(t) - before
	t.Logf("%d names: %d octets, resident memory grew by %d", s.Len(), s.Bytes(), grown)
	if s.Bytes() > 40<<20 || grown > 40<<20 {
		t.Errorf("%d octets, resident memory grew by %d", s.Bytes(), grown)
	}
	if s.Len() != 1_000_000 {
		t.Errorf("%d names", s.Len())
	}
	runtime.KeepAlive(s)
}

func BenchmarkMatch(b *testing.B) {
	country := read(b, strings.NewReader(countryList()))
	for _, c := range []struct{ about, name string }{
		{"full", "www." + syllables(spread(3)) + ".com"},
		{"suffix", "a.b." + syllables(spread(2)>>8) + ".com"},
		{"miss-2", "bench-miss-17.example"},
		{"miss-3", "www.unlisted-name.com"},
		{"miss-6", "a.b.c-17.region.unlisted-name.com"},
		{"regexp-runs", syllables(spread(4)>>20) + "_." + syllables(spread(4)>>12) + ".cn"},
	} {
		b.Run(c.about, func(b *testing.B) {
			name, l := nameOf(b, c.name)
			b.ReportAllocs()
			for b.Loop() {
				country.Match(name, l)
			}
		})
	}
}

// Names that are not in the processor's caches: the table is probed all over. The
// hashes that a query brings are counted in.
func BenchmarkMatchSpread(b *testing.B) {
	for _, c := range []struct {
		about string
		list  io.Reader
	}{{"country", strings.NewReader(countryList())}, {"1M", &blockList{n: 1_000_000}}} {
		s := read(b, c.list)
		rng := rand.New(rand.NewPCG(1, 2))
		const many = 1 << 15
		for _, hit := range []bool{true, false} {
			names := make([]wire.Name, many)
			for i := range names {
				text := "www." + syllables(rng.Uint64()>>30) + "-x.com"
				if hit {
					text = "www." + blockName(rng.IntN(1_000_000))
				}
				names[i], _ = nameOf(b, text)
			}
			b.Run(fmt.Sprintf("%s/listed=%v", c.about, hit), func(b *testing.B) {
				i := 0
				var l wire.Labels
				for b.Loop() {
					name := names[i&(many-1)]
					l.Scan(name)
					s.Match(name, &l)
					i++
				}
			})
		}
	}
}

func BenchmarkKeywords(b *testing.B) {
	var words []string
	for i := range 1_000 {
		words = append(words, "keyword:"+syllables(spread(i)>>8))
	}
	s := mapOf(b, strings.Join(words, " "))
	name, l := nameOf(b, "a.b.c-17.region.unlisted-name.com")
	b.ReportAllocs()
	for b.Loop() {
		s.Match(name, l)
	}
}

func BenchmarkRead(b *testing.B) {
	list, err := io.ReadAll(&blockList{n: 1_000_000})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(list)))
	b.ReportAllocs()
	for b.Loop() {
		read(b, bytes.NewReader(list))
	}
}
