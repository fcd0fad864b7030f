package mosdns

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzLoad: any text gives a plan or problems that stand in it, and what Explain
// writes of a plan is that plan again.
func FuzzLoad(f *testing.F) {
	formats := []string{".yaml", ".toml", ".json"}
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		first := archive.Files[0]
		f.Add(first.Data, byte(max(0, slices.Index(formats, filepath.Ext(first.Name)))))
	}
	f.Fuzz(func(t *testing.T, src []byte, format byte) {
		path := "config" + formats[int(format)%len(formats)]
		p, problems := load(path, src, none)
		lines := strings.Count(string(src), "\n") + 1
		for _, problem := range problems {
			if problem.Pos.File != path || problem.Pos.Line < 1 || problem.Pos.Line > lines || problem.Pos.Column < 1 ||
				problem.Text == "" || strings.ContainsAny(problem.Error(), "\r\n") {
				t.Fatalf("%q", problem.Error())
			}
		}
		if len(problems) == 0 {
			again(t, p, testTables().Explain(p))
		}
	})
}
