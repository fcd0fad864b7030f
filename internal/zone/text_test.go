package zone_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/waymark-dns/waymark/internal/testkit"
)

var update = flag.Bool("update", false, "write the responses of this build into testdata")

// TestText plays the files of testdata. In each, a file ORIGIN.zone is a zone
// (root.zone is the root's), and every other file is a question, whose content
// is the response: code, flags, and records in their order. A response stands
// in the file because someone judged it right; -update only writes it down.
func TestText(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { play(t, path) })
	}
}

func play(t *testing.T, path string) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var zones [][]dns.RR
	for _, f := range archive.Files {
		if origin, ok := strings.CutSuffix(f.Name, ".zone"); ok {
			origin = strings.TrimPrefix(origin+".", "root")
			zones = append(zones, testkit.Records(t, origin, string(f.Data)))
		}
	}
	us := testkit.NewAsker(table(t, zones...).Answer)
	asked := 0
	for i, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".zone") {
			continue
		}
		asked++
		q, err := testkit.ParseQuestion(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		got := testkit.Response(q, us.Ask(t, q))
		if *update {
			archive.Files[i].Data = []byte(got)
		} else if got != string(f.Data) {
			t.Errorf("%s\ngot\n%s\nwant\n%s", f.Name, got, f.Data)
		}
	}
	if asked == 0 {
		t.Error("no questions")
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
