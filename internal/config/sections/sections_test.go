package sections

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

var update = flag.Bool("update", false, "rewrite docs/CONFIG.md")

func TestManual(t *testing.T) {
	const file = "../../../docs/CONFIG.md"
	if *update {
		if err := os.WriteFile(file, []byte(Manual()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != Manual() {
		t.Error("docs/CONFIG.md is not what the tables say; run: go test ./internal/config/sections -run TestManual -update")
	}
}

// leaves calls f for every key that holds a single value or a list of them.
func leaves(all []entry, f func(entry)) {
	for _, e := range all {
		if len(e.keys) > 0 {
			leaves(e.keys, f)
			continue
		}
		f(e)
	}
}

// TestDocumented: every key has what the manual needs, and every number,
// duration and size a range.
func TestDocumented(t *testing.T) {
	leaves(manual(), func(e entry) {
		if e.want == "" || e.example == "" || !strings.HasSuffix(e.doc, ".") {
			t.Errorf("%s: want %q, example %q, doc %q", e.path, e.want, e.example, e.doc)
		}
		_, _, ok := plan.Range(e.path)
		need := strings.Contains(e.want, "a whole number") || strings.Contains(e.want, "a duration") || strings.Contains(e.want, "a size")
		if ok != need {
			t.Errorf("%s: %s, has a range: %v", e.path, e.want, ok)
		}
	})
}

// TestExamples: the examples of the manual are configurations without problems.
func TestExamples(t *testing.T) {
	for _, block := range strings.Split(Manual(), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		if strings.HasPrefix(text, "plugins:") {
			continue // level 2: package config reads it
		}
		if _, problems := Read("x/waymark.yaml", []byte(text)); len(problems) > 0 {
			t.Errorf("%s: %v", text, problems)
		}
	}
}

// TestPresets: what the manual names as a default is what holds without the
// key, none is missing, and none is written twice.
func TestPresets(t *testing.T) {
	leaves(manual(), func(e entry) {
		if e.must {
			return
		}
		without, problems := Read("waymark.yaml", []byte(config(e.path, "")))
		if len(problems) > 0 {
			t.Fatalf("%s: %v", config(e.path, ""), problems)
		}
		without.Where = nil
		if e.preset != "" {
			p, problems := Read("waymark.yaml", []byte(config(e.path, e.preset)))
			p.Where = nil
			if len(problems) > 0 || !reflect.DeepEqual(p, without) {
				t.Errorf("%s: %s is not the default: %+v %v", e.path, e.preset, p, problems)
			}
			return
		}
		// A plan whose default is something cannot have a key without one.
		p, _ := Read("waymark.yaml", []byte(config(e.path, e.example)))
		if changed := changed(reflect.ValueOf(*without), reflect.ValueOf(*p)); changed != "" {
			t.Errorf("%s: no default in its row, but plan has %s", e.path, changed)
		}
	})
}

// config is a configuration of one key, behind those that must stand beside it.
// Without a value the key is left out.
func config(path, value string) string {
	text := mappingOf(manual(), strings.Split(path, "."), value)
	return strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}") + "\n"
}

func mappingOf(all []entry, path []string, value string) string {
	var parts []string
	for _, e := range all {
		switch {
		case e.key != path[0] && e.must:
			parts = append(parts, e.key+": "+flow(e.example))
		case e.key == path[0] && len(path) > 1:
			parts = append(parts, e.key+": "+mappingOf(e.keys, path[1:], value))
		case e.key == path[0] && value != "":
			parts = append(parts, e.key+": "+flow(value))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// flow is an example on one line.
func flow(example string) string {
	if strings.Contains(example, "\n") {
		return "[" + strings.ReplaceAll(example, "\n", ", ") + "]"
	}
	return example
}

// changed names a field that is something in preset and something else in got.
func changed(preset, got reflect.Value) string {
	if preset.Type() == reflect.TypeFor[plan.Pos]() {
		return "" // a key in front moves those behind it
	}
	if preset.Kind() == reflect.Struct && preset.Type().PkgPath() == reflect.TypeFor[plan.Plan]().PkgPath() {
		for i := range preset.NumField() {
			if name := changed(preset.Field(i), got.Field(i)); name != "" {
				return preset.Type().Field(i).Name + "." + name
			}
		}
		return ""
	}
	if preset.Kind() == reflect.Slice && preset.Len() == got.Len() {
		for i := range preset.Len() {
			if name := changed(preset.Index(i), got.Index(i)); name != "" {
				return name
			}
		}
		return ""
	}
	if !preset.IsZero() && !reflect.DeepEqual(preset.Interface(), got.Interface()) {
		return preset.Type().String()
	}
	return ""
}

func TestDuration(t *testing.T) {
	for in, want := range map[string]string{
		"10s": "10s", "1d": "24h0m0s", "1d12h": "36h0m0s", "1h30m": "1h30m0s", "500ms": "500ms", "0": "0s", "1.5h": "1h30m0s",
	} {
		if d, ok := parseDuration(in); !ok || d.String() != want {
			t.Errorf("parseDuration(%q) = %v, %v, want %s", in, d, ok, want)
		}
	}
	for _, in := range []string{"", "10", "s", "-1s", "1d-1h", "d", "1dd", "1w", "9999999d", "1 s", "abc"} {
		if d, ok := parseDuration(in); ok {
			t.Errorf("parseDuration(%q) = %v, want a refusal", in, d)
		}
	}
}

func TestSize(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "4096": 4096, "1KiB": 1 << 10, "256MiB": 256 << 20, "1 GiB": 1 << 30, "2TiB": 2 << 40, "1KB": 1000, "3MB": 3e6, "1GB": 1e9, "1TB": 1e12,
	} {
		if n, ok := parseSize(in); !ok || n != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", in, n, ok, want)
		}
	}
	for _, in := range []string{"", "MiB", "-1MiB", "1.5GiB", "1M", "1mib", "1  MiB", "1MiB ", "99999999999TiB", "9223372036854775808", "0x10"} {
		if n, ok := parseSize(in); ok {
			t.Errorf("parseSize(%q) = %d, want a refusal", in, n)
		}
	}
}

// TestHostile: texts that were made to exhaust a parser are refused with a
// problem, and do not reach it.
func TestHostile(t *testing.T) {
	const n = 30_000
	for _, c := range []struct{ name, text, want string }{
		{"brackets", strings.Repeat("[", n), "nested deeper"},
		{"braces", strings.Repeat("{a: ", n), "nested deeper"},
		{"dashes", strings.Repeat("- ", n), "nested deeper"},
		{"complex keys", strings.Repeat("? ", n), "nested deeper"},
		{"keys", strings.Repeat("abc: 1\n", n), "keys in one mapping"},
		{"keys in braces", "a: {" + strings.Repeat("b: 1, ", n) + "}", "keys in one mapping"},
		{"keys with anchors", strings.Repeat("&a abc: 1\n", n), "keys in one mapping"},
		{"complex keys in lines", strings.Repeat("? a\n: b\n", n), "keys in one mapping"},
		{"anchors", "a: " + strings.Repeat("&a ", n), "too many anchors"},
		{"number anchors", "a: " + strings.Repeat("&1 ", n), "too many anchors"},
		{"tags", "a: " + strings.Repeat("!t ", n), "too many anchors"},
		{"documents", strings.Repeat("---\n", n), "second YAML document"},
		{"document ends", strings.Repeat("...\n", n), "second YAML document"},
		{"sections", func() string {
			var b strings.Builder
			for i := range 3000 {
				b.WriteString("abc" + strings.Repeat("x", i%7) + ":\n")
			}
			return b.String()
		}(), "more than 1000 problems"},
		{"size", strings.Repeat("#", tree.MaxSize+1), "larger than 16 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := Read("waymark.yaml", []byte(c.text))
			for _, p := range problems {
				if strings.Contains(p.Text, c.want) {
					return
				}
			}
			t.Errorf("no %q among %d problems: %.200v", c.want, len(problems), problems)
		})
	}
}
