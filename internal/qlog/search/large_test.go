package search

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// The large log, for figures: go test -run TestLarge -rows 50000000 -segments DIR.
// Made once, the folder is used again.
var (
	largeRows = flag.Int("rows", 0, "rows of the log that TestLarge makes and asks; 0 skips it")
	largeDir  = flag.String("segments", "", "folder of the log that TestLarge makes; empty is one that is removed")
)

const largeSegment = 250_000

// TestLarge asks a log of many rows what people ask most, once each, and tells how
// long it took. It judges nothing: machines differ.
func TestLarge(t *testing.T) {
	if *largeRows == 0 {
		t.Skip("without -rows")
	}
	dir := *largeDir
	if dir == "" {
		dir = t.TempDir()
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*.parquet")); len(found) == 0 {
		start := time.Now()
		makeLarge(t, dir, *largeRows)
		t.Logf("made %d rows in %s", *largeRows, time.Since(start).Round(time.Millisecond))
		debug.FreeOSMemory()
	}
	last := large.Add(time.Duration(*largeRows) * largeGap)
	hour := fmt.Sprintf("%s/%s", last.Add(-3*time.Hour).Format(time.RFC3339), last.Add(-2*time.Hour).Format(time.RFC3339))
	for _, q := range []struct{ name, filter, top string }{
		{"one frequent name", "name=www20.shop.example limit=100", ""},
		{"one rare name, all of it", "name=cdn200001.news.example", ""},
		{"a name that is not there", "name=nobody.example", ""},
		{"top clients of an hour", "hour", "client"},
		{"top clients of everything", "", "client"},
		{"top names of a client", "client=192.0.2.7", "name"},
		{"a suffix", "suffix=shop.example rcode=SERVFAIL limit=100", ""},
		{"the newest", "limit=100", ""},
	} {
		values := map[string][]string{}
		for _, kv := range strings.Fields(q.filter) {
			key, v, ok := strings.Cut(kv, "=")
			if !ok {
				from, until, _ := strings.Cut(hour, "/")
				values["from"], values["until"] = []string{from}, []string{until}
				continue
			}
			values[key] = []string{v}
		}
		f, err := ParseFilter(values, last)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		start, n := time.Now(), 0
		if q.top != "" {
			table, _, err := Top(t.Context(), dir, f, q.top, 20)
			if err != nil {
				t.Fatal(err)
			}
			n = int(table.Rows)
		} else if _, err := Search(t.Context(), dir, f, func(*qlog.Row) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
		t.Logf("%-28s %8s, %d rows, peak %s", q.name, time.Since(start).Round(time.Millisecond), n, peak())
	}
}

// peak is the highest RSS of the process so far, where the system tells it.
func peak() string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			return fmt.Sprintf("%d MiB", kb>>10)
		}
	}
	return "unknown"
}

// The large log is 2,000 queries a second from here on.
var large = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const largeGap = 500 * time.Microsecond

// makeLarge writes segments of names by Zipf's law, of a million.
func makeLarge(t *testing.T, dir string, n int) {
	const names = 1_000_000
	rng := rand.New(rand.NewPCG(1, 2))
	zipf, clients := rand.NewZipf(rng, 1.05, 1, names-1), rand.NewZipf(rng, 1.1, 5, 1999)
	rows := make([]qlog.Row, 0, largeSegment)
	for i := 0; i < n; {
		rows = rows[:0]
		for ; len(rows) < largeSegment && i < n; i++ {
			rows = append(rows, largeRow(rng, int(zipf.Uint64()), int(clients.Uint64()), i))
		}
		writeLarge(t, filepath.Join(dir, time.UnixMicro(rows[0].Time).UTC().Format("20060102T150405.000000Z")+".parquet"), rows)
	}
}

func largeRow(rng *rand.Rand, name, client, i int) qlog.Row {
	r := qlog.Row{Time: large.Add(time.Duration(i) * largeGap).UnixMicro(), Latency: uint32(rng.IntN(200)), QuerySize: uint16(40 + name%20), Size: uint16(60 + name%50)}
	r.Client = fmt.Sprintf("192.0.%d.%d", 2+client/250, client%250)
	r.ClientPort = uint16(rng.IntN(1 << 16))
	r.Protocol, r.Listener, r.Class, r.Flags, r.Source, r.Rcode, r.Type = "udp", "udp://0.0.0.0:53", "IN", "RD RA", "cache", "NOERROR", "A"
	r.Name = fmt.Sprintf("%s%d.%s.example.", []string{"www", "cdn", "api", "img"}[name%4], name, []string{"shop", "news", "video", "mail", "cloud"}[name%5])
	r.Answers = fmt.Sprintf("198.%d.%d.%d", name>>16, name>>8&255, name&255)
	if rng.IntN(5) == 0 {
		r.Source, r.Upstream, r.Latency, r.Rule = "forward", "udp://9.9.9.9:53", uint32(5000+rng.IntN(50_000)), "waymark.yaml:12"
	}
	if rng.IntN(1000) == 0 {
		r.Rcode, r.Answers = "SERVFAIL", ""
	}
	return r
}

func writeLarge(t *testing.T, path string, rows []qlog.Row) {
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[qlog.Row](f, parquet.Compression(&parquet.Zstd), parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.RLEDictionary),
		parquet.DefaultEncodingFor(parquet.Int64, &parquet.DeltaBinaryPacked), parquet.DefaultEncodingFor(parquet.Int32, &parquet.DeltaBinaryPacked))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
