package nameset

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/waymark-dns/waymark/internal/wire"
)

func TestRead(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for _, c := range []struct {
		about, text string
		holds       string // names parted by white space
		len         int
		mistake     string
	}{
		{about: "one a line", text: "a\nfull:b\nkeyword:ccc\nregexp:^d$", holds: "x.a b xcccx d", len: 4},
		{about: "comments and blank lines", text: "# a\n\n  \t\nb # c\nd#e\n#", holds: "b d", len: 2},
		{about: "a comment within a regexp", text: "regexp:^a#b\n", holds: "ax", len: 1},
		{about: "white space around", text: " a \n\tb\t\n\u00a0c\u2003\n", holds: "a b c", len: 3},
		{about: "CR LF", text: "a\r\nb\r\n\r\nfull:c\r\n", holds: "a b c", len: 3},
		{about: "byte order mark", text: "\ufeffa\nb", holds: "a b", len: 2},
		{about: "empty file", text: ""},
		{about: "the root", text: "domain:\n", holds: ". a", len: 1},
		{about: "names that cannot be", text: "a..b\n" + long[:300] + "\nc", holds: "c", len: 1},
		{about: "longest line", text: long[:maxLine-3] + "\r\na\n", holds: "a", len: 1},
		{about: "two words", text: "a\n\nb c\nd", holds: "a", len: 1, mistake: "line 3: white space within an expression"},
		{about: "two words parted by a space of Unicode", text: "b\u2003c", mistake: "line 1: white space"},
		{about: "unknown kind", text: "a\n#\ndoman:b # c", holds: "a", len: 1, mistake: `line 3: unknown kind of expression "doman": the nearest is "domain"`},
		{about: "regexp that does not compile", text: "a\r\nregexp:(\r\n", holds: "a", len: 1, mistake: "line 2: error parsing regexp"},
		{about: "line too long", text: "a\n" + long, holds: "a", len: 1, mistake: "line 2: line longer than 64 KiB"},
		{about: "comment too long", text: "a\n\n#" + long + "\nb", holds: "a", len: 1, mistake: "line 3: line longer"},
	} {
		b := NewBuilder(0)
		err := b.Read(strings.NewReader(c.text), Domain)
		if c.mistake == "" && err != nil || c.mistake != "" && (err == nil || !strings.Contains(err.Error(), c.mistake)) {
			t.Errorf("%s: %v; want %q", c.about, err, c.mistake)
		}
		s := b.Build()
		if s.Len() != c.len {
			t.Errorf("%s: %d expressions; want %d", c.about, s.Len(), c.len)
		}
		for _, text := range strings.Fields(c.holds) {
			if name, l := nameOf(t, text); !s.Match(name, l) {
				t.Errorf("%s: does not hold %s", c.about, text)
			}
		}
	}
}

func TestReadValues(t *testing.T) {
	errEmpty := errors.New("no address")
	var got []string
	value := func(rest []string) (uint32, error) {
		if len(rest) == 0 {
			return 0, errEmpty
		}
		got = append(got, strings.Join(rest, "+"))
		return uint32(len(got)), nil
	}
	b := NewBuilder(0)
	err := b.ReadValues(strings.NewReader("# hosts\na 192.0.2.1\r\n\tdomain:b\t 192.0.2.2  2001:db8::2 # two\nc #\nd 192.0.2.4"), Full, value)
	if !errors.Is(err, errEmpty) || !strings.HasPrefix(err.Error(), "line 4: ") {
		t.Errorf("a line of one word: %v", err)
	}
	if want := []string{"192.0.2.1", "192.0.2.2+2001:db8::2"}; !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
	s := b.Build()
	for text, want := range map[string]uint32{"a.": 1, "x.a.": 0, "x.b.": 2, "c.": 0, "d.": 0} {
		name, l := nameOf(t, text)
		if v, ok := s.Find(name, l); v != want || ok != (want > 0) {
			t.Errorf("%s: %d, %v; want %d", text, v, ok, want)
		}
	}
	if err := NewBuilder(0).ReadValues(strings.NewReader("x:y z"), Full, value); err == nil {
		t.Error("an unknown kind is no error")
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names.txt")
	if err := os.WriteFile(path, []byte("a 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := NewBuilder(0)
	if err := b.ReadFile(path, Domain); !errors.Is(err, ErrSpace) || !strings.HasPrefix(err.Error(), "reading names "+path+": line 1: ") {
		t.Errorf("%v", err)
	}
	if err := b.ReadValuesFile(path, Domain, func(rest []string) (uint32, error) { return uint32(len(rest)) + 6, nil }); err != nil {
		t.Error(err)
	}
	name, l := nameOf(t, "a.")
	if v, ok := b.Build().Find(name, l); !ok || v != 7 {
		t.Errorf("%d, %v", v, ok)
	}
	if err := NewBuilder(0).ReadFile(path+".none", Domain); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	broken := errors.New("broken")
	if err := NewBuilder(0).Read(iotest.ErrReader(broken), Domain); !errors.Is(err, broken) || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a broken reader: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"a\nfull:b # c\r\n\nregexp:^d$", "a b", "domian:x", "\ufeffkeyword:\u00a0", "regexp:(", "a..b\n\\256\n.", ":x\n:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b := NewBuilder(0)
		err := b.Read(strings.NewReader(text), Domain)
		want := NewBuilder(0)
		n, wrong := 0, false
		for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
			line, _, _ = strings.Cut(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), "#")
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			e, err := ParseExpr(line, Domain)
			if wrong = len(strings.Fields(line)) > 1 || err != nil || want.Add(e, 0) != nil; wrong {
				break
			}
			n++
		}
		if len(text) < maxLine && wrong != (err != nil) {
			t.Fatalf("%q: %v", text, err)
		}
		s, o := b.Build(), want.Build()
		if err == nil && (s.Stats() != o.Stats() || s.Len()+s.Stats().Dead > n) {
			t.Fatalf("%q: %+v; want %+v", text, s.Stats(), o.Stats())
		}
		for _, text := range []string{".", "a.", "b.", "x.a.", "d."} {
			name, _ := wire.ParseName(text)
			var l wire.Labels
			l.Scan(name)
			if s.Match(name, &l) != o.Match(name, &l) {
				t.Fatalf("%q: holds %s: %v", text, name, !o.Match(name, &l))
			}
		}
	})
}
