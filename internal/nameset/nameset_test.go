package nameset

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/waymark-dns/waymark/internal/wire"
)

// mapOf is the map of expressions parted by white space; the value of each is its
// place, counted from 1.
func mapOf(t testing.TB, exprs string) *Set {
	t.Helper()
	words := strings.Fields(exprs)
	b := NewBuilder(len(words))
	for i, text := range words {
		e, err := ParseExpr(text, Domain)
		if err == nil {
			err = b.Add(e, uint32(i+1))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

func nameOf(t testing.TB, text string) (wire.Name, *wire.Labels) {
	t.Helper()
	name, err := wire.ParseName(text)
	if err != nil {
		t.Fatal(err)
	}
	l := &wire.Labels{}
	l.Scan(name)
	return name, l
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		about, exprs, name string
		want               uint32 // 0: not found
	}{
		{"full", "full:a.example", "a.example.", 1},
		{"full is not below", "full:a.example", "b.a.example.", 0},
		{"full is not above", "full:a.example", "example.", 0},
		{"letters of the pattern", "full:A.Example", "a.example.", 1},
		{"letters of the name: RFC 4343 §3", "full:a.example domain:b.example keyword:kw regexp:^re", "A.EXAMPLE.", 1},
		{"final dot of a full name", "full:a.example.", "a.example.", 1},
		{"two final dots of a full name", "full:a.example..", "a.example.", 0},
		{"empty full name is the root", "full:", ".", 1},
		{"dot as full name is the root", "full:.", ".", 1},
		{"empty full name is nothing else", "full:", "example.", 0},
		{"full name with empty label", "full:a..example full:.example", "example.", 0},

		{"suffix itself", "domain:example", "example.", 1},
		{"below a suffix", "domain:example", "x.y.example.", 1},
		{"suffix ends at labels", "domain:ample", "example.", 0},
		{"suffix of two labels", "domain:b.example", "a.b.example.", 1},
		{"beside a suffix", "domain:b.example", "a.c.example.", 0},
		{"default kind", "b.example", "a.b.example.", 1},
		{"default kind before a colon", ":b.example", "a.b.example.", 1},
		{"deepest suffix", "domain:example domain:b.a.example domain:a.example", "c.b.a.example.", 2},
		{"deepest suffix but one", "domain:example domain:b.a.example domain:a.example", "c.a.example.", 3},
		{"dots around a suffix", "domain:.example..", "a.example.", 1},
		{"too many dots before a suffix", "domain:..example", "a.example.", 0},
		{"root suffix", "domain:", "a.example.", 1},
		{"root suffix as dot", "domain:.", "a.example.", 1},
		{"root suffix as two dots", "domain:..", "a.example.", 1},
		{"three dots", "domain:...", "a.example.", 0},
		{"root suffix holds the root", "domain:.", ".", 1},
		{"root suffix last", "domain:. domain:example", "a.example.", 2},

		{"keyword", "keyword:amp", "example.", 1},
		{"keyword across labels", "keyword:a.ex", "a.example.", 1},
		{"keyword at the end", "keyword:e", "example.", 1},
		{"keyword has no final dot", "keyword:example.", "example.", 1},
		{"keyword ends before the final dot", "keyword:example..", "example.", 0},
		{"keyword in letters", "keyword:AMP", "eXaMPLe.", 1},
		{"no keyword", "keyword:amq", "example.", 0},
		{"empty keyword", "keyword:", "example.", 1},
		{"empty keyword and the root", "keyword:.", ".", 1},
		{"first of two keywords", "keyword:ple keyword:ex", "example.", 1},
		{"first of two keywords, one in the other", "keyword:xam keyword:a", "example.", 1},
		{"first of two keywords, the shorter", "keyword:a keyword:xam", "example.", 1},
		{"keyword after a false start", "keyword:abac keyword:bab", "ababac.", 1},
		{"keyword behind a false start", "keyword:abacx keyword:bad", "abad.", 2},

		{"keyword that ends two others' beginnings", "keyword:xabz keyword:aby keyword:b", "xab.", 3},

		{"regexp", "regexp:^a[0-9]+\\.example$", "a17.example.", 1},
		{"regexp is not anchored", "regexp:m.l", "example.", 1},
		{"regexp sees no final dot", "regexp:e$", "example.", 1},
		{"regexp sees lower case", "regexp:^example$", "EXAMPLE.", 1},
		{"regexp in upper case", "regexp:^EXAMPLE$", "example.", 0},
		{"regexp that folds", "regexp:(?i)^EXAMPLE$", "example.", 1},
		{"empty regexp", "regexp:", "example.", 1},
		{"regexp of the root", "regexp:^$", ".", 1},
		{"regexp with a colon", "regexp:(?:amp)", "example.", 1},
		{"regexp of a whole name", `regexp:^b\.example$`, "b.example.", 1},
		{"regexp of a whole name is not below", `regexp:^b\.example$`, "a.b.example.", 0},
		{"regexps with and without inner text", `regexp:ad[0-9]+\.b\.example$ regexp:[0-9]x\.example$`, "ad1.b.example.", 1},
		{"first of two regexps", "regexp:le$ regexp:^ex", "example.", 1},
		{"first of two regexps, filed deeper", "regexp:^a regexp:a\\.example$ regexp:.a\\.example$", "a.a.example.", 1},
		{"second of two regexps", "regexp:^b regexp:a\\.example$", "a.a.example.", 2},

		{"full before suffix", "keyword:a regexp:a domain:a.example full:a.example", "a.example.", 4},
		{"suffix before regexp", "keyword:a regexp:a domain:a.example", "a.example.", 3},
		{"regexp before keyword", "keyword:a regexp:a", "a.example.", 2},
		{"higher suffix before regexp", "regexp:a domain:example full:b.a.example", "a.example.", 2},
		{"nothing", "full:a domain:b keyword:c regexp:d", "example.", 0},
		{"no expressions", "", "example.", 0},

		{"last of two values, full", "full:a full:b full:a", "a.", 3},
		{"last of two values, suffix", "domain:a domain:b domain:A.", "a.", 3},
		{"last of two values, keyword", "keyword:a keyword:b keyword:A", "ab.", 3},
		{"last of two values, regexp", "regexp:a regexp:b regexp:a", "ab.", 3},

		{"dot in a label parts nothing", `domain:b.example`, `a\.b.example.`, 0},
		{"dot in a label, keyword", `keyword:a.b`, `a\.b.example.`, 0},
		{"dot in a label, regexp", `regexp:(^|\.)b\.example$`, `a\.b.example.`, 0},
		{"dot in a label, regexp that runs", `regexp:(^|\.)b[0-9]*\.example$`, `a\.b.example.`, 0},
		{"dot in a label as text", `keyword:\.b keyword:\046b`, `a\.b.example.`, 2},
		{"dot in a label of a pattern: RFC 1035 §5.1", `full:a\.b.example`, `a\.b.example.`, 1},
		{"octet by number: RFC 1035 §5.1", `domain:\097\255.example`, `x.a\255.example.`, 1},
		{"escaped dot at the end", `full:example\.`, `example\..`, 1},
		{"malformed escapes", `full:a\256 full:a\ full:a\1 full:a\1x2`, `a.`, 0},
		{"number beyond 255", `full:a\256`, `a\000.`, 0},
		{"escape in the text", `keyword:a\@b`, `A\@B.example.`, 1},
		{"number in the text", `keyword:\255`, `a\255b.example.`, 1},
		{"number in the text, regexp", `regexp:\\255b\.example$`, `a\255b.example.`, 1},
		{"regexp that ends within a number", `regexp:55b\.example$`, `a\255b.example.`, 1},
		{"underscore", `domain:_tcp.example`, `_sip._tcp.example.`, 1},
	} {
		s := mapOf(t, c.exprs)
		name, l := nameOf(t, c.name)
		if got, ok := s.Find(name, l); got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %q finds %d, %v for %s; want %d", c.about, c.exprs, got, ok, c.name, c.want)
		}
		if s.Match(name, l) != (c.want > 0) {
			t.Errorf("%s: %q matches %s: %v", c.about, c.exprs, c.name, c.want == 0)
		}
	}
}

func TestNilSet(t *testing.T) {
	var s *Set
	name, l := nameOf(t, "example.")
	if _, ok := s.Find(name, l); ok || s.Match(name, l) || s.Len() != 0 || s.Bytes() != 0 || s.Unfiltered() != nil || s.Stats() != (Stats{}) {
		t.Error("a nil set holds something")
	}
}

func TestStats(t *testing.T) {
	long := strings.Repeat("a", 64)
	s := mapOf(t, "full:a full:A. full:b domain:a domain:. keyword:k keyword:K keyword:ü "+
		"regexp:ab regexp:ab regexp:^[a-z]+$ regexp:[.] full:a..b full:"+long+" domain:"+strings.Repeat("a.", 127)+"a")
	if got, want := s.Stats(), (Stats{Full: 2, Domain: 2, Keyword: 1, Regexp: 3, Always: 2, Dead: 4}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
	if s.Len() != 8 {
		t.Errorf("%d expressions", s.Len())
	}
	if got := s.Unfiltered(); !slices.Equal(got, []string{"^[a-z]+$", "[.]"}) {
		t.Errorf("unfiltered: %q", got)
	}
	if n := mapOf(t, "domain:.").Len(); n != 1 {
		t.Errorf("a set of the root has %d expressions", n)
	}
	if a, b := mapOf(t, "full:a"), s; a.Bytes() <= 0 || a.Bytes() > 200 || b.Bytes() < a.Bytes() {
		t.Errorf("%d octets, and %d", a.Bytes(), b.Bytes())
	}
}

func TestLongestName(t *testing.T) {
	label := strings.Repeat("a", 63)
	text := label + "." + label + "." + label + "." + label[:61]
	for _, kind := range kinds {
		s := mapOf(t, kind+":"+text)
		if name, l := nameOf(t, text); !s.Match(name, l) {
			t.Errorf("%s does not match the longest name", kind)
		}
		if name, l := nameOf(t, "b"+text[1:]); s.Match(name, l) {
			t.Errorf("%s matches another name", kind)
		}
	}
	if got := mapOf(t, "full:"+text+"a").Stats(); got != (Stats{Dead: 1}) {
		t.Errorf("a name too long: %+v", got)
	}
	// The longest text: every octet takes four.
	octets := strings.Repeat(`\255`, 63)
	name, l := nameOf(t, octets+"."+octets+"."+octets+"."+octets[:4*61])
	if s := mapOf(t, `regexp:^(\\255)+\.[^a-z]+5$`); !s.Match(name, l) {
		t.Error("the longest text does not match")
	}
	many := strings.Repeat("a.", 127)
	name, l = nameOf(t, many)
	exact := "regexp:^" + strings.ReplaceAll(many[:253], ".", `\.`) + "$"
	for _, expr := range []string{exact, "full:" + many, "domain:" + many[2:], "domain:a", "keyword:" + many, "regexp:^" + many[2:]} {
		if !mapOf(t, expr).Match(name, l) {
			t.Errorf("%.20s does not match a name of 127 labels", expr)
		}
	}
}

// Records of many names fill several chunks, and the table still tells them apart.
func TestManyNames(t *testing.T) {
	const n = 60_000
	texts := [...]string{Full: "www.n%d.example", Domain: "n%d.example"}
	b := NewBuilder(0)
	for i := range n {
		kind := Kind(i % 2)
		if err := b.Add(Expr{kind, fmt.Sprintf(texts[kind], i)}, uint32(i)); err != nil {
			t.Fatal(err)
		}
	}
	s := b.Build()
	if len(s.table.chunks) < 3 || len(s.table.slots) < far || s.Len() != n {
		t.Fatalf("%d chunks, %d slots, %d expressions", len(s.table.chunks), len(s.table.slots), s.Len())
	}
	for i := 0; i < n; i += 7 {
		name, l := nameOf(t, fmt.Sprintf("WWW.n%d.example", i))
		if v, ok := s.Find(name, l); !ok || v != uint32(i) {
			t.Fatalf("%s: %d, %v", name, v, ok)
		}
		for _, text := range []string{"n%d.example", "x.www.n%d.example", "mail.n%d.example"} {
			name, l = nameOf(t, fmt.Sprintf(text, i))
			if _, ok := s.Find(name, l); ok != (i%2 == 1) {
				t.Fatalf("%s: %v", name, ok)
			}
		}
	}
}

// Two names may have the same hash; the octets tell them apart.
func TestSameHash(t *testing.T) {
	s := mapOf(t, "full:a.example domain:b.example")
	for _, text := range []string{"b.example", "x.example", "example", "aa.example"} {
		other, _ := nameOf(t, text)
		for _, c := range []struct {
			text string
			mark byte
		}{{"a.example", markFull}, {"b.example", markDomain}} {
			name, l := nameOf(t, c.text)
			_, ok := s.table.get(l.Hash[0], other[:len(other)-1], c.mark)
			if ok != (text == c.text) {
				t.Errorf("%s is found as %s: %v", other, name, ok)
			}
		}
	}
}

// Many may ask at once: what a look-up writes to is its own.
func TestAtOnce(t *testing.T) {
	s := mapOf(t, `keyword:word regexp:^r[0-9]+\.(a|b)[a-z]*\.example$`)
	var wg sync.WaitGroup
	for i := range 4 {
		name, l := nameOf(t, fmt.Sprintf("r%d.b.example", i))
		other, m := nameOf(t, fmt.Sprintf("r%d.c.example", i))
		wg.Go(func() {
			for range 500 {
				if v, ok := s.Find(name, l); !ok || v != 2 || s.Match(other, m) {
					t.Errorf("%s: %d, %v", name, v, ok)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestAddErrors(t *testing.T) {
	b := NewBuilder(0)
	for _, c := range []struct {
		e       Expr
		mistake string
	}{
		{Expr{Regexp, "("}, "missing closing"},
		{Expr{Regexp, "(?<x"}, "invalid"},
		{Expr{Kind(9), "x"}, "no such kind 9"},
	} {
		if err := b.Add(c.e, 0); err == nil || !strings.Contains(err.Error(), c.mistake) {
			t.Errorf("%v: %v; want an error with %q", c.e, err, c.mistake)
		}
	}
	b.keywordBytes = maxKeywords
	if err := b.Add(Expr{Keyword, "k"}, 0); err != ErrKeywords {
		t.Errorf("one keyword too many: %v", err)
	}
	b.chunks = make([][]byte, maxChunks)
	b.chunks[maxChunks-1] = make([]byte, chunkSize)
	for _, kind := range []Kind{Full, Domain, Regexp} {
		if err := b.Add(Expr{kind, "n"}, 0); err != ErrNames {
			t.Errorf("one %v too many: %v", kind, err)
		}
	}
}

func TestParseExpr(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    Expr
		mistake string
	}{
		{text: "full:a", want: Expr{Full, "a"}},
		{text: "domain:a", want: Expr{Domain, "a"}},
		{text: "keyword:a", want: Expr{Keyword, "a"}},
		{text: "regexp:a:b", want: Expr{Regexp, "a:b"}},
		{text: "a", want: Expr{Keyword, "a"}},
		{text: "", want: Expr{Keyword, ""}},
		{text: ":full:a", want: Expr{Keyword, "full:a"}},
		{text: "domian:a", mistake: `unknown kind of expression "domian": the nearest is "domain"`},
		{text: "Full:a", mistake: `the nearest is "full"`},
		{text: "regex:a", mistake: `the nearest is "regexp"`},
		{text: "keywords:a", mistake: `the nearest is "keyword"`},
		{text: " full:a", mistake: `the nearest is "full"`},
		{text: strings.Repeat("x", 1<<16) + ":", mistake: `"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"`},
	} {
		got, err := ParseExpr(c.text, Keyword)
		switch {
		case c.mistake == "" && (err != nil || got != c.want):
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		case c.mistake != "" && (err == nil || !strings.Contains(err.Error(), c.mistake)):
			t.Errorf("%.20q: %v, %v; want an error with %q", c.text, got, err, c.mistake)
		}
	}
}

func FuzzParseExpr(f *testing.F) {
	for _, seed := range []string{"full:a", "domain:", ":x", "regexp:a:b", "domian:x", "plain", "\xff:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseExpr(text, Domain)
		word, rest, found := strings.Cut(text, ":")
		known := slices.Contains(kinds[:], word)
		if (err != nil) != (found && word != "" && !known) {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		if want := rest; found && e.Pattern != want || !found && e.Pattern != text {
			t.Fatalf("%q: pattern %q", text, e.Pattern)
		}
		if known && found != (e.Kind.String() == word) {
			t.Fatalf("%q: %v", text, e.Kind)
		}
		if again, err := ParseExpr(e.String(), Full); err != nil || again != e {
			t.Fatalf("%q: %v reads as %v, %v", text, e, again, err)
		}
	})
}
