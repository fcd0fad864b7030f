package sections

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/qlog/sink"
)

type sinkList struct{ Sinks []plan.Sink }

var sinkListRows = []row[sinkList]{sinksRow(func(l *sinkList) *[]plan.Sink { return &l.Sinks })}

// readSinks reads a configuration that is sinks and nothing else.
func readSinks(text string) ([]plan.Sink, []plan.Problem) {
	src := &tree.Source{File: filepath.Join("dir", "waymark.yaml")}
	roots, _ := src.Parse([]byte(text))
	r := &reader{Source: src, dir: "dir", where: map[string]plan.Pos{}, manual: manual}
	var l sinkList
	for _, root := range roots {
		readPairs(r, spot{node: root}, sinkListRows, &l, map[string]plan.Pos{})
	}
	return l.Sinks, src.Sorted()
}

func TestReadSinks(t *testing.T) {
	sinks, problems := readSinks("sinks:\n  - {kind: json, file: q.json, rotate: 1MiB, keep: 2}\n" +
		"  - {kind: clickhouse, to: 'https://ch.example', table: t, interval: 2s, spill: sp, verify: no}\n")
	if len(problems) > 0 || len(sinks) != 2 {
		t.Fatalf("got %+v, %v", sinks, problems)
	}
	if s := sinks[0]; s.Kind != "json" || s.File != filepath.Join("dir", "q.json") || s.Rotate != 1<<20 || s.Keep != 2 || s.Pos.Line != 2 {
		t.Errorf("got %+v", s)
	}
	if s := sinks[1]; s.To != "https://ch.example" || s.Table.Table != "t" || s.Table.Verify || s.Table.Spill != filepath.Join("dir", "sp") || s.Pos.Line != 3 {
		t.Errorf("got %+v", s)
	}
}

func TestSinkProblems(t *testing.T) {
	for text, want := range map[string]string{
		"sinks: [{to: stdout}]":                      "the key kind is missing",
		"sinks: [{kind: json, fil: x}]":              "unknown key",
		"sinks: [{kind: json, queue: many}]":         "expected a size",
		"sinks: [json]":                              "expected keys and values",
		"sinks: [{kind: clickhouse, verify: maybe}]": "expected true or false",
	} {
		_, problems := readSinks(text)
		if len(problems) == 0 || !strings.Contains(problems[0].Text, want) || problems[0].Pos.Line != 1 || problems[0].Mend == "" {
			t.Errorf("%s: got %v, want %q with a line and a mend", text, problems, want)
		}
	}
}

// Every default of the manual is the one that holds, and every key of a kind is there.
func TestSinkRows(t *testing.T) {
	known := map[string]bool{}
	for _, r := range sinkRows {
		known[r.key] = true
		if !strings.HasSuffix(r.doc, ".") || r.example == "" {
			t.Errorf("%s: doc %q, example %q", r.key, r.doc, r.example)
		}
		if r.preset == "" {
			continue
		}
		sinks, problems := readSinks("sinks: [{kind: json, " + r.key + ": " + r.preset + "}]")
		want := plan.DefaultSink()
		want.Kind = "json"
		if len(problems) > 0 {
			t.Fatalf("%s: %v", r.key, problems)
		}
		sinks[0].Pos = plan.Pos{}
		if sinks[0] != want {
			t.Errorf("%s: %s is not the default", r.key, r.preset)
		}
	}
	for _, k := range sink.Kinds() {
		for _, key := range k.Keys {
			if !known[key] {
				t.Errorf("%s has the key %s, which no row reads", k.Name, key)
			}
		}
	}
}
