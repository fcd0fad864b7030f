package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/waymark-dns/waymark/internal/config/mosdns"
	"github.com/waymark-dns/waymark/internal/config/sections"
	"github.com/waymark-dns/waymark/internal/plan"
)

var update = flag.Bool("update", false, "rewrite the expected part of testdata")

// TestGolden reads every testdata/NAME.txtar: the file waymark.yaml in it, or
// waymark with another extension, is the configuration, "plan" or "problems" what must come of it, and every
// other file lies beside the configuration. "\t", "\r" and other escapes in a
// file named waymark.yaml.quoted are those of a Go string.
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
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var inputs []txtar.File
	want, path := "", "waymark.yaml"
	for _, f := range archive.Files {
		switch f.Name {
		case "plan", "problems":
			want = f.Name + "\n" + string(f.Data)
			continue
		case "waymark.yaml.quoted":
			write(t, "waymark.yaml", unquote(t, string(f.Data)))
		default:
			write(t, f.Name, string(f.Data))
			if strings.HasPrefix(f.Name, "waymark.") {
				path = f.Name
			}
		}
		inputs = append(inputs, f)
	}
	kind, got := outcome(t, path)
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

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func unquote(t *testing.T, text string) string {
	t.Helper()
	var out string
	if _, err := fmt.Sscanf(`"`+strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", `\n`)+`\n"`, "%q", &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// outcome is what comes of a configuration, as text.
func outcome(t *testing.T, path string) (kind, text string) {
	t.Helper()
	p, problems, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if p == nil && len(problems) == 0 {
		t.Fatalf("plan %v and %d problems", p, len(problems))
	}
	var b strings.Builder
	for _, problem := range problems {
		fmt.Fprintln(&b, problem.Error())
	}
	if len(problems) > 0 {
		return "problems", b.String()
	}
	if p.Level2 || len(p.Rules)+len(p.Objects) > 0 {
		b.WriteString(mosdns.Known().Explain(p))
	}
	p.Where, p.Programs, p.Objects = nil, nil, nil // of no interest to one option
	dump(&b, "", reflect.ValueOf(*p), reflect.ValueOf(*plan.Default()))
	return "plan", b.String()
}

// dump writes every field that differs from its default, one a line.
func dump(b *strings.Builder, path string, v, preset reflect.Value) {
	if preset.IsValid() && reflect.DeepEqual(v.Interface(), preset.Interface()) {
		return
	}
	if s, ok := v.Interface().(fmt.Stringer); ok && (!strings.HasSuffix(path, "]") || v.Type().PkgPath() != reflect.TypeFor[plan.Plan]().PkgPath()) {
		fmt.Fprintf(b, "%s = %s\n", path, s)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			var inner reflect.Value
			if preset.IsValid() {
				inner = preset.Field(i)
			}
			dump(b, strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), v.Field(i), inner)
		}
	case reflect.Slice:
		if v.Len() == 0 && !v.IsNil() {
			fmt.Fprintf(b, "%s is empty\n", path)
		}
		for i := range v.Len() {
			var none reflect.Value
			if v.Type() == reflect.TypeFor[[]plan.Listen]() {
				none = reflect.ValueOf(plan.Listen{})
			}
			dump(b, fmt.Sprintf("%s[%d]", path, i), v.Index(i), none)
		}
	default:
		fmt.Fprintf(b, "%s = %#v\n", path, v.Interface())
	}
}

// TestManualLoads: the examples of plugins in the manual are configurations without
// problems.
func TestManualLoads(t *testing.T) {
	found := 0
	for _, block := range strings.Split(sections.Manual(), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(text, "plugins:") {
			continue
		}
		found++
		if _, problems := parse("waymark.yaml", []byte(text), none); len(problems) > 0 {
			t.Errorf("%s: %v", text, problems)
		}
	}
	if found == 0 {
		t.Error("no example of plugins")
	}
}

// TestExplain: level 1 as the program that it compiles to, with the reasons.
func TestExplain(t *testing.T) {
	p, problems := Parse("waymark.yaml", []byte("listen: [udp://127.0.0.1, tcp://127.0.0.1]\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p.Programs[0].Rules = p.Programs[0].Rules[:3]
	want := `# The program that the sections compile to. Zones, upstreams and all other data
# stay in the sections.
plugins:
  - tag: default
    type: sequence
    args:
      # who is asking is settled first, so that no other rule can be reached around it
      - exec: access
      # whoever asks too much is held back before there is any work to do
      - exec: limits
      # a zone is given away by permission only, and there is none to give yet
      - matches: transfer
        exec: reject REFUSED
  - type: udp_server
    args:
      entry: default
      listen: "127.0.0.1:53"
  - type: tcp_server
    args:
      entry: default
      listen: "127.0.0.1:53"
`
	if got := Explain(p); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
