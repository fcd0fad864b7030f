package config

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/waymark-dns/waymark/internal/plan"
)

// FuzzLoad: any text gives a plan or problems, and every problem stands
// at a place that the text has.
func FuzzLoad(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		p, problems := parse("waymark.yaml", src, none)
		if p == nil && len(problems) == 0 {
			t.Fatalf("plan %v and %d problems", p, len(problems))
		}
		text := strings.TrimPrefix(strings.ReplaceAll(string(src), "\r\n", "\n"), "\ufeff")
		lines := strings.Split(text, "\n")
		for i, problem := range problems {
			if what := misplaced(problem, lines); what != "" {
				t.Fatalf("%s: %q", what, problem.Error())
			}
			if i > 0 && problems[i-1].Pos.Line > problem.Pos.Line {
				t.Fatalf("not in order: %q", problem.Error())
			}
		}
	})
}

// none is an open of which no file can be read.
func none(string) ([]byte, error) { return nil, fs.ErrNotExist }

// seed adds the configurations of the golden files.
func seed(f *testing.F) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if strings.HasPrefix(file.Name, "waymark.yaml") {
				f.Add(file.Data)
			}
		}
	}
}

// misplaced tells why a problem does not lead a reader to its place in the
// file; empty if it does.
func misplaced(problem plan.Problem, lines []string) string {
	pos := problem.Pos
	switch {
	case pos.File != "waymark.yaml" || pos.Line < 1 || pos.Line > len(lines):
		return "not in the file"
	case pos.Column < 1 || pos.Column > utf8.RuneCountInString(lines[pos.Line-1])+1:
		return "not on the line"
	case problem.Text == "" || strings.ContainsAny(problem.Error(), "\r\n"):
		return "not one line"
	}
	return ""
}
