package store

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// benchRecords is the size of the zones that benchmarks import.
var benchRecords = flag.Int("records", 100_000, "records of the zones that benchmarks import")

func BenchmarkImport(b *testing.B) {
	s := open(b)
	zone := many(*benchRecords)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Import(b.Context(), Import{Zone: apexName(), Source: text(s, zone), Expect: *benchRecords}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Delete(b.Context(), apexName(), nil); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkReplace imports a zone of which every record is another.
func BenchmarkReplace(b *testing.B) {
	s := open(b)
	zones := [2]string{many(*benchRecords), strings.ReplaceAll(many(*benchRecords), " 10.", " 11.")}
	load(b, s, zones[0])
	for i := 1; b.Loop(); i++ {
		load(b, s, zones[i%2])
	}
}

func BenchmarkEdit(b *testing.B) {
	s := open(b)
	load(b, s, many(*benchRecords))
	for i := 0; b.Loop(); i++ {
		edit(b, s, fmt.Sprintf("set h77.example.org. 60 IN A 192.0.2.%d", i%250))
	}
}

// An error far down in a large zone names its line and changes nothing.
func TestImportLateError(t *testing.T) {
	s := open(t)
	load(t, s, small)
	lines := strings.Split(many(100_000), "\n")
	lines[90_000-1] = "h A 1.2.3"
	_, err := s.Import(t.Context(), Import{Zone: apexName(), Source: text(s, strings.Join(lines, "\n"))})
	var bad *zonefile.ProblemsError
	if !errors.As(err, &bad) || len(bad.Problems) != 1 || bad.Problems[0].Line != 90_000 {
		t.Errorf("got %v", err)
	}
	if info, err := s.Info(apexName()); err != nil || info.Serial != 10 || info.Records != 6 {
		t.Errorf("%+v, %v", info, err)
	}
}
