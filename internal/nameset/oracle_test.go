package nameset

import (
	"regexp"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"pgregory.net/rapid"

	"github.com/waymark-dns/waymark/internal/wire"
)

// oracle finds by walking over all expressions, by text alone.
type oracle []struct {
	Expr
	value uint32
}

// textOf is the text of a name by another library, whose escapes differ in one:
// that of a dot within a label.
func textOf(t rapid.TB, name wire.Name) string {
	t.Helper()
	s, _, err := dns.UnpackDomainName(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for s = strings.ToLower(strings.TrimSuffix(s, ".")); s != ""; {
		size := 1
		if s[0] == '\\' {
			size = 2
		}
		if strings.HasPrefix(s, `\.`) {
			b.WriteString(`\046`)
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

var escapes = regexp.MustCompile(`\\[0-9]{3}|\\[^0-9]|[^\\]`)

// canonical is the text of a pattern of a name, or false where no name has it.
func canonical(t rapid.TB, pattern string) (string, bool) {
	parts := escapes.FindAllString(pattern, -1)
	if strings.Join(parts, "") != pattern {
		return "", false
	}
	if pattern == "" || pattern == "." {
		return "", true
	}
	if parts[len(parts)-1] != "." {
		pattern += "."
	}
	name, err := wire.ParseName(pattern)
	if err != nil {
		return "", false
	}
	return textOf(t, name), true
}

func (o oracle) find(t rapid.TB, name wire.Name) (value uint32, ok bool) {
	text := textOf(t, name)
	values := map[Expr]uint32{}
	for _, e := range o {
		values[o.key(t, e.Expr)] = e.value
	}
	deepest := -1
	for _, e := range o {
		k := o.key(t, e.Expr)
		if k.Kind == Full && k.Pattern == text+"." {
			return values[k], true
		}
		if k.Kind == Domain && len(k.Pattern) > deepest && strings.HasSuffix("."+text+".", k.Pattern) {
			deepest = len(k.Pattern)
			value = values[k]
		}
	}
	if deepest >= 0 {
		return value, true
	}
	for _, e := range o {
		if e.Kind == Regexp && regexp.MustCompile(e.Pattern).MatchString(text) {
			return values[o.key(t, e.Expr)], true
		}
	}
	for _, e := range o {
		if k := o.key(t, e.Expr); k.Kind == Keyword && strings.Contains(text, k.Pattern) {
			return values[k], true
		}
	}
	return 0, false
}

// key is an expression that equals the keys of those that mean the same. The
// pattern of a full name ends in a dot, that of a suffix begins with one too.
func (o oracle) key(t rapid.TB, e Expr) Expr {
	p := e.Pattern
	cut := endsInDot(p)
	switch e.Kind {
	case Keyword:
		if cut {
			p = p[:len(p)-1]
		}
		return Expr{Keyword, strings.ToLower(p)}
	case Full:
		if text, ok := canonical(t, p); ok {
			return Expr{Full, text + "."}
		}
		return Expr{Full, "none"}
	case Domain:
		if text, ok := canonical(t, suffixOf(p)); ok && text != "" {
			return Expr{Domain, "." + text + "."}
		} else if ok {
			return Expr{Domain, "."}
		}
		return Expr{Domain, "none"}
	}
	return e
}

// endsInDot tells whether a dot that is no part of a label comes last.
func endsInDot(p string) bool {
	parts := escapes.FindAllString(p, -1)
	return len(parts) > 0 && strings.HasSuffix(p, ".") && parts[len(parts)-1] == "."
}

// suffixOf cuts what mosdns cuts: a dot in front, and one of two behind.
func suffixOf(p string) string {
	if endsInDot(p) && endsInDot(p[:len(p)-1]) {
		p = p[:len(p)-1]
	}
	if strings.HasPrefix(p, ".") && strings.Trim(p, ".") != "" {
		p = p[1:]
	}
	return p
}

func (o oracle) build(t rapid.TB) *Set {
	b := NewBuilder(0)
	for _, e := range o {
		if err := b.Add(e.Expr, e.value); err != nil {
			t.Fatalf("%v: %v", e.Expr, err)
		}
	}
	return b.Build()
}

func compare(t rapid.TB, s *Set, o oracle, name wire.Name) {
	t.Helper()
	var l wire.Labels
	l.Scan(name)
	want, found := o.find(t, name)
	if got, ok := s.Find(name, &l); got != want || ok != found {
		t.Fatalf("%q: finds %d, %v for %s; want %d, %v", o, got, ok, name, want, found)
	}
	if s.Match(name, &l) != found {
		t.Fatalf("%q: matches %s: %v", o, name, !found)
	}
}

// Few labels and pieces, so that names and patterns meet.
var (
	someLabels = []string{"a", "b", "ab", "bab", "A", `a\.b`, `\255`, `\@`, `\\`, "-1", "com"}
	somePieces = []string{"a", "b", `\.`, ".", "^", "$", `(^|\.)`, "(a|b)", "[ab]", "[a-z]", "[a-z0-9-]", "a?", "b+", ".*", `(\.com)?`,
		`(?i)A`, `\\`, "255", `(.+\.)?`, "com", "A", `\b`, "(a$|b)", "(^a)+", "a{2}", "(?:)", "[0-9]{1,3}", "@", "(com|ab)$", `\.(a|com)$`, "[A-Z]", "ü"}
)

func TestAgainstOracle(t *testing.T) {
	names := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(someLabels), 0, 4), func(labels []string) string {
		return strings.Join(labels, ".")
	})
	regexps := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(somePieces), 0, 5), func(pieces []string) string {
		return strings.Join(pieces, "")
	}).Filter(func(s string) bool { _, err := regexp.Compile(s); return err == nil })
	dots := rapid.SampledFrom([]string{"", "", "", "."})
	rapid.Check(t, func(rt *rapid.T) {
		var o oracle
		for i := range rapid.IntRange(0, 8).Draw(rt, "expressions") {
			e := Expr{Kind: Kind(rapid.IntRange(0, 3).Draw(rt, "kind"))}
			if e.Kind == Regexp {
				e.Pattern = regexps.Draw(rt, "regexp")
			} else {
				e.Pattern = dots.Draw(rt, "before") + names.Draw(rt, "pattern") + dots.Draw(rt, "behind")
			}
			o = append(o, struct {
				Expr
				value uint32
			}{e, uint32(i)})
		}
		s := o.build(rt)
		for range 8 {
			name, err := wire.ParseName(names.Draw(rt, "name"))
			if err != nil {
				rt.Fatal(err)
			}
			compare(rt, s, o, name)
		}
	})
}

// A set of any text that reads as expressions finds what the oracle finds, for
// any name.
func FuzzMatch(f *testing.F) {
	for _, c := range [][2]string{
		{"full:a.example\ndomain:example\nkeyword:x\nregexp:^a", "\x01a\x07example\x00"},
		{"regexp:(^|\\.)ad[0-9]*\\.com$\nregexp:\\.(com|net)$\nkeyword:\\046", "\x03a.b\x02ad\x03com\x00"},
		{"domain:.\nfull:\\255\ndomain:a\\..b..", "\x01\xff\x00"},
		{"regexp:b\\\\@c$\nkeyword:@\nregexp:", "\x03B@c\x00"},
		{"keyword:ab\nkeyword:bab\nkeyword:", "\x05ababa\x00"},
	} {
		f.Add(c[0], []byte(c[1]))
	}
	f.Fuzz(func(t *testing.T, text string, raw []byte) {
		if wire.UncompressedEnd(raw, 0) != len(raw) || len(text) > 300 {
			return
		}
		var o oracle
		for i, line := range strings.Split(text, "\n") {
			e, err := ParseExpr(line, Domain)
			if err != nil {
				continue
			}
			if _, err := regexp.Compile(e.Pattern); e.Kind == Regexp && err != nil {
				continue
			}
			o = append(o, struct {
				Expr
				value uint32
			}{e, uint32(i)})
		}
		compare(t, o.build(t), o, wire.Name(raw))
	})
}
