package nameset

import (
	"fmt"
	"strings"
	"testing"
)

// show writes tails as a reader would: $ behind all, ^ where the tail is the whole
// text, = where it is all that is asked.
func show(p *pattern) string {
	var list []string
	for _, t := range p.tails {
		s := t.text + "$"
		if t.whole {
			s = "^" + s
		}
		if t.exact {
			s = "=" + s
		}
		list = append(list, s)
	}
	return strings.Join(list, " ")
}

func TestTails(t *testing.T) {
	for _, c := range []struct {
		expr, tails, inner string
	}{
		{`\.example\.com$`, "=.example.com$", ""},
		{`(^|\.)example\.com$`, "=^example.com$ =.example.com$", ""},
		{`(?:^|\.)example\.com$`, "=^example.com$ =.example.com$", ""},
		{`^example\.com$`, "=^example.com$", ""},
		{`^(.+\.)?example\.com$`, ".example.com$ =^example.com$", ""},
		{`(^|\.)ad[0-9]+\.example\.com$`, ".example.com$", "ad"},
		{`ad[0-9]+example\.com$`, "example.com$", "ad"},
		{`\.(com|net)$`, "=.com$ =.net$", ""},
		{`\.goog(\.cn)?$`, "=.goog.cn$ =.goog$", ""},
		{`a[bc]\.d$`, "=ab.d$ =ac.d$", ""},
		{`a[0-9]\.d$`, ".d$", ""},
		{`a+$`, "a$", ""},
		{`a*$`, "$", ""},
		{`(?i)EXAMPLE$`, "=example$", ""},
		{`EXAMPLE$`, "$", ""},
		{`a{2}b$`, "=aab$", ""},
		{`a{2,3}b$`, "=aaab$ =aab$", ""},
		{`example`, "$", "example"},
		{`^ad[0-9]+\.`, "$", "ad"},
		{`com$|net`, "$", ""},
		{`com$|net$`, "=com$ =net$", ""},
		{`(a$)`, "=a$", ""},
		{`a\z`, "=a$", ""},
		{`(?m)a$`, "=a$", ""},
		{`a$b`, "$", ""},
		{`$^`, "$", ""},
		{`$^$`, "$", ""},
		{`a$b$`, "$", ""},
		{`(?i)[ab]\.d$`, "=a.d$ =b.d$", ""},
		{`(?:adx)*b\.com$`, "b.com$", ""},
		{`^$`, "=^$", ""},
		{``, "$", ""},
		{`\\\.com$`, ".com$", `\.com`},
		{`a@b\.com$`, "b.com$", "a@b.com"},
		{`\\$`, "$", ""},
		{`ü\.com$`, "$", ""},
		{`[A-Z]\.com$`, ".com$", ""},
		{`\bcom$`, "com$", ""},
		{`(^a)+$`, "^a$", ""},
	} {
		p, err := newPattern(c.expr, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(&p); got != c.tails || p.inner != c.inner {
			t.Errorf("%s: %s, inner %q; want %s, inner %q", c.expr, got, p.inner, c.tails, c.inner)
		}
	}
}

// Too many suffixes are not told apart, and still none is missed.
func TestManySuffixes(t *testing.T) {
	var words []string
	for i := range 100 {
		words = append(words, fmt.Sprintf("n%dn", i))
	}
	for _, c := range []struct{ expr, tails string }{
		{`\.(` + strings.Join(words, "|") + `)$`, "$"},
		{`[abcd][abcd][abcd][abcd]\.com$`, ""},
	} {
		p, err := newPattern(c.expr, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.tails) > maxSuffixes || c.tails != "" && show(&p) != c.tails {
			t.Errorf("%.20s: %d tails: %s", c.expr, len(p.tails), show(&p))
		}
	}
	s := mapOf(t, `regexp:[abcd][abcd][abcd][abcd]\.com$ regexp:\.(`+strings.Join(words, "|")+`)$`)
	for text, want := range map[string]uint32{"abcd.com": 1, "aaab.com": 1, "abce.com": 0, "x.n17n": 2, "n17n": 0, "x.n100n": 0} {
		name, l := nameOf(t, text)
		if got, _ := s.Find(name, l); got != want {
			t.Errorf("%s: %d; want %d", text, got, want)
		}
	}
}

// A regular expression does not run on names that end otherwise, or that lack a
// text it asks for.
func TestFiltered(t *testing.T) {
	s := mapOf(t, `regexp:(^|\.)x[0-9]+\.example\.com$ regexp:ad.*ample\.net$ regexp:(^|\.)exact\.example$ `+
		`regexp:[0-9]ight\.org$ regexp:^in.*ner`)
	for i := range s.patterns.all {
		s.patterns.all[i].re = nil // panics where it runs
	}
	if l := mapOf(t, `regexp:[0-9][bc]\.d$`).patterns.lists; len(l) != 1 || len(l[0].ids) != 1 {
		t.Errorf("one expression is filed as %+v", l)
	}
	runs := func(text string) (ran bool) {
		name, l := nameOf(t, text)
		defer func() { ran = recover() != nil }()
		s.Match(name, l)
		return false
	}
	for text, want := range map[string]bool{
		".": false, "a.com": false, "xample.com": false, "b.example.org": false, "1.example.com": true, "example.com": false,
		"xexample.com": false, "a.example.net": false, "ad.example.net": true, "ad.other.net": false, "ample.net.ad": false,
		"exact.example": false, "a.exact.example": false, "light.org": true, "igh.org": false, "inn.er": false, "i.ner": true, "xner": true,
	} {
		if runs(text) != want {
			t.Errorf("an expression runs on %s: %v", text, !want)
		}
	}
}
