package mosdns

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
)

var update = flag.Bool("update", false, "rewrite the expected part of testdata")

// Types of objects for tests: one of every kind of field.
type (
	setArgs struct {
		Exps  []string `key:"exps"`
		Sets  []string `key:"sets"`
		Files []string `key:"files"`
	}
	sleepArgs struct {
		Duration int `key:"duration"`
	}
	serverRow struct {
		Tag      string `key:"tag"`
		Addr     string `key:"addr"`
		Pipeline bool   `key:"enable_pipeline"`
		Idle     int    `key:"idle_timeout"`
	}
	groupArgs struct {
		Upstreams  []serverRow `key:"upstreams"`
		Concurrent int         `key:"concurrent"`
		Socks5     string      `key:"socks5"`
		Made       bool        // not of the configuration
	}
	oddArgs struct {
		Size  uint16  `key:"size"`
		Rate  float64 `key:"rate"`
		Small int8    `key:"small"`
		On    bool    `key:"on"`
		Ports []int   `key:"ports"`
		One   struct {
			Name string    `key:"name"`
			Two  serverRow `key:"two"`
		} `key:"one"`
	}
)

func testTables() Tables {
	row := func(typ string, args func() any) act.ObjectKind { return act.ObjectKind{Type: typ, Args: args} }
	return Tables{
		Objects: []act.ObjectKind{
			row("domain_set", func() any { return &setArgs{} }),
			row("sleep", func() any { return &sleepArgs{} }),
			row("forward", func() any { return &groupArgs{Concurrent: 1} }),
			row("odd", func() any { return &oddArgs{Size: 7, On: true, Ports: []int{1, 2}} }),
			row("fallback", func() any {
				return &struct {
					Primary   string `key:"primary"`
					Secondary string `key:"secondary"`
				}{}
			}),
			row("bare", nil),
		},
		Actions:  append([]string{"forward", "cache", "ttl", "sleep"}, control...),
		Matchers: []string{"qname", "qtype", "has_resp", "mark", "string_exp"},
	}
}

// load reads a configuration of level 2 alone.
func load(path string, src []byte, open func(string) ([]byte, error)) (*plan.Plan, []plan.Problem) {
	s := &tree.Source{File: path, Loose: true}
	roots, whole := s.Parse(src)
	_, level2, _ := Split(roots)
	p := plan.Default()
	problems := Loader{Tables: testTables(), Open: open, Whole: whole}.Read(s, level2, p)
	problems = append(problems, s.Sorted()...)
	plan.Sort(problems)
	return p, problems
}

// TestGolden reads every testdata/NAME.txtar: its first file is the configuration,
// "plan" what Explain says of it, or "problems" what is wrong; all other files
// lie in the working directory. "\t", "\r" and other escapes in a file whose name
// ends in .quoted are those of a Go string.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { golden(t, name) })
	}
}

func golden(t *testing.T, name string) {
	name, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile(name)
	if err != nil || len(archive.Files) == 0 {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	want := ""
	var inputs []txtar.File
	for _, f := range archive.Files {
		if f.Name == "plan" || f.Name == "problems" {
			want = f.Name + "\n" + string(f.Data)
			continue
		}
		inputs = append(inputs, f)
		write(t, f)
	}
	path := strings.TrimSuffix(archive.Files[0].Name, ".quoted")
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kind, got := "plan", ""
	p, problems := load(path, src, os.ReadFile)
	for _, problem := range problems {
		kind = "problems"
		got += problem.Error() + "\n"
	}
	if kind == "plan" {
		got = testTables().Explain(p)
		again(t, p, got)
	}
	if *update {
		archive.Files = append(inputs, txtar.File{Name: kind, Data: []byte(got)})
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got = kind + "\n" + got; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func write(t *testing.T, f txtar.File) {
	t.Helper()
	text, name := string(f.Data), f.Name
	if quoted, ok := strings.CutSuffix(name, ".quoted"); ok {
		name = quoted
		if _, err := fmt.Sscanf(`"`+strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", `\n`)+`\n"`, "%q", &text); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// again reads what Explain wrote: it must give the same plan.
func again(t *testing.T, p *plan.Plan, text string) {
	t.Helper()
	q, problems := load("again.yaml", []byte(text), none)
	if len(problems) > 0 {
		t.Fatalf("what Explain wrote has problems: %v\n%s", problems, text)
	}
	if a, b := placeless(p), placeless(q); !reflect.DeepEqual(a, b) {
		t.Fatalf("what Explain wrote is another plan:\n%+v\n%+v\n%s", a, b, text)
	}
}

func none(string) ([]byte, error) { return nil, os.ErrNotExist }

// placeless is the plan without its positions.
func placeless(p *plan.Plan) plan.Plan {
	c := *p
	c.Where, c.API.Pos = nil, plan.Pos{}
	c.Listen = append([]plan.Listen(nil), p.Listen...)
	for i := range c.Listen {
		c.Listen[i].Pos = plan.Pos{}
	}
	c.Objects = append([]plan.Object(nil), p.Objects...)
	for i := range c.Objects {
		c.Objects[i].Pos = plan.Pos{}
	}
	c.Programs = append([]plan.Program(nil), p.Programs...)
	for i := range c.Programs {
		program := &c.Programs[i]
		program.Pos = plan.Pos{}
		program.Rules = append([]plan.Rule(nil), program.Rules...)
		for j := range program.Rules {
			r := &program.Rules[j]
			r.Pos, r.Do.Pos = plan.Pos{}, plan.Pos{}
			r.If = append([]plan.Term(nil), r.If...)
			for k := range r.If {
				r.If[k].Pos = plan.Pos{}
			}
		}
	}
	return c
}
