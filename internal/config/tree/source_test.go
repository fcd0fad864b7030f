package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/plan"
)

// TestOneLine: what stands in the file cannot break the line of a problem.
func TestOneLine(t *testing.T) {
	s := &Source{}
	s.Problem(plan.Pos{}, "a\r\x1b[1m", "b\nc\x00")
	if p := s.Sorted()[0]; p.Text != "b\ufffdc\ufffd" || p.Mend != "a\ufffd\ufffd[1m" {
		t.Errorf("%q", p)
	}
}

// placed is a tree with the line and column of every key and value.
func placed(n *Node) string {
	at := fmt.Sprintf("@%d:%d", n.Pos.Line, n.Pos.Column)
	var parts []string
	switch n.Kind {
	case List:
		for _, item := range n.Items {
			parts = append(parts, placed(item))
		}
		return "[" + strings.Join(parts, " ") + "]" + at
	case Mapping:
		for _, p := range n.Pairs {
			parts = append(parts, fmt.Sprintf("%s@%d:%d=%s", p.Key, p.Pos.Line, p.Pos.Column, placed(p.Value)))
		}
		return "{" + strings.Join(parts, " ") + "}" + at
	case Null:
		return "null" + at
	}
	if n.Plain {
		return n.Text + at
	}
	return fmt.Sprintf("%q%s", n.Text, at)
}

// TestFormats: the same tree out of each format, each value at its place.
func TestFormats(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"a.yaml", "a: 1\nb:\n  - x: '2'\n    y: [true, é]\n", `{a@1:1=1@1:4 b@2:1=[{x@3:5="2"@3:8 y@4:5=[true@4:9 é@4:15]@4:8}@3:5]@3:3}@1:1`},
		{"a.yml", "a: x y # z\r\n", `{a@1:1=x y@1:4}@1:1`},
		{"a", "a: {b: ~}", `{a@1:1={b@1:5=null@1:8}@1:4}@1:1`},
		{"a.yaml", "a:\tb\t# c\n", `{a@1:1=b@1:3}@1:1`}, // the library counts a tab as nothing
		{"a.json", "{\n\t\"a\": 1.50, \"b\" : [\n {\"x\":\"\\u00e9\", \"y\":[true,null]}]}", `{a@2:2=1.50@2:7 b@2:13=[{x@3:3="é"@3:7 y@3:17=[true@3:22 null@3:27]@3:21}@3:2]@2:19}@1:1`},
		{"a.JSON", " \n", `null@1:1`},
		{"a.toml", "a = 1\n[[b]]\nx = '2'\n  y = [true, \"é\"]\n[[b]]\nz.w = 1\n[b.v]\nu={t=-1}\n", `{a@1:1=1@1:5 b@2:3=[{x@3:1="2"@3:5 y@4:3=[true@4:8 "é"@4:14]@4:3}@2:3 {z@6:1={w@6:3=1@6:7}@6:1 v@7:4={u@8:1={t@8:4=-1@8:6}@8:3}@7:4}@5:3]@2:3}@1:1`},
		{"a.toml", "# nothing\n", `null@1:1`},
	} {
		t.Run(c.file, func(t *testing.T) {
			s := &Source{File: c.file}
			roots, whole := s.Parse([]byte(c.text))
			if problems := s.Sorted(); len(problems) > 0 || !whole {
				t.Fatal(problems, whole)
			}
			got := "null@1:1"
			if len(roots) == 1 {
				got = placed(roots[0])
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestFormatsWrong(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"a.json", `{"a": 1,}`, "a.json:1:8: cannot be read as JSON"},
		{"a.json", "{\"a\": 1\n", "a.json:2:1: cannot be read as JSON: the text ends too early"},
		{"a.json", `{"a": 1} {}`, "cannot be read as JSON: more than one value"},
		{"a.json", `[1]`, "a.json:1:1: expected sections, got a list"},
		{"a.json", strings.Repeat(`{"a":`, 100), "nested deeper than 64"},
		{"a.json", strings.Repeat("[", 100_000), "nested deeper than 64"},
		{"a.json", "{\"a\": \"\xff\"}", "a.json:1:8: octet 0xff is not UTF-8"},
		{"a.toml", "a = 1\nb = \n", "a.toml:2:"},
		{"a.toml", "a = 1\na = 2\n", "a.toml:2:"},
		{"a.toml", "a = " + strings.Repeat("[", 20_000), "cannot be read as TOML"},
		{"a.toml", "a = " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "nested too deep"},
		{"a.toml", "a = '\x01'", "a.toml:1:6: control character U+0001"},
	} {
		s := &Source{File: c.file}
		_, whole := s.Parse([]byte(c.text))
		problems := s.Sorted()
		if whole || len(problems) != 1 || !strings.Contains(problems[0].Error(), c.want) {
			t.Errorf("%.40q: got %v, want %q", c.text, problems, c.want)
		}
	}
}

// TestLoose: merge keys and standard tags, where they are taken.
func TestLoose(t *testing.T) {
	text := "a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  L: 3\nc: {<<: [*x, {m: 4}], k: 5}\nd: !!str 12\n"
	s := &Source{File: "a.yaml", Loose: true}
	roots, whole := s.Parse([]byte(text))
	if problems := s.Sorted(); len(problems) > 0 || !whole {
		t.Fatal(problems)
	}
	if got, want := written(roots[0]), "{a: {k: 1, l: 2}, b: {L: 3, k: 1}, c: {k: 5, l: 2, m: 4}, d: 12}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s = &Source{File: "a.yaml"}
	s.Parse([]byte(text))
	lines := []int{}
	for _, p := range s.Sorted() {
		lines = append(lines, p.Pos.Line)
	}
	if !slices.Equal(lines, []int{3, 5, 6}) {
		t.Errorf("not loose: %v", s.Sorted())
	}
	s = &Source{File: "a.yaml", Loose: true}
	s.Parse([]byte("a: !qname x\nb: {<<: 1}\n"))
	if got := s.Sorted(); len(got) != 2 || got[0].Mend != "put a value that starts with ! in quotes" {
		t.Errorf("%v", got)
	}
}
