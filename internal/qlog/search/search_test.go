package search

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// now is the clock of all tests: rows are of the hours before.
var now = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// pick takes one of a few.
func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// randomRow is a row of the three hours before now. Few values make many matches.
func randomRow(rng *rand.Rand) qlog.Row {
	r := qlog.Row{
		Time:    now.Add(-time.Duration(rng.IntN(3*3600*4)) * 250 * time.Millisecond).UnixMicro(),
		Latency: uint32(rng.IntN(100_000)), QuerySize: uint16(30 + rng.IntN(30)), Size: uint16(rng.IntN(3) * 100),
	}
	r.Client = pick(rng, "192.0.2.1", "192.0.2.17", "198.51.100.1", "2001:db8::1", "2001:db8:1::1", "c-0123456789abcdef")
	r.ClientPort = uint16(rng.IntN(1 << 16))
	r.Protocol = pick(rng, "udp", "tcp")
	r.Listener = pick(rng, "udp://127.0.0.1:53", "tcp://127.0.0.1:53")
	r.Name = pick(rng, ".", "org.", "example.org.", "www.example.org.", "a.b.example.org.", "wwwexample.org.", `dot\.example.org.`, "track.example.net.")
	r.Type = pick(rng, "A", "AAAA", "MX", "TYPE65280")
	r.Class = "IN"
	r.ECS = pick(rng, "", "192.0.2.0/24")
	r.Rcode = pick(rng, "NOERROR", "NXDOMAIN", "SERVFAIL", "REFUSED")
	r.Flags = pick(rng, "RD RA", "AA RD DO")
	r.Source = pick(rng, "zone", "cache", "forward", "error")
	r.Rule = pick(rng, "", "waymark.yaml:12", "waymark.yaml:13", "block.txt:7")
	r.Upstream = pick(rng, "", "udp://9.9.9.9:53", "tcp://192.0.2.53:53")
	r.EDE = pick(rng, "", "", "0", "15", "18", "22")
	r.Answers = pick(rng, "", "192.0.2.80", "192.0.2.80 198.51.100.80", "2001:db8::80")
	return r
}

// writeSegment writes rows as they stand. With small a dictionary outgrows its
// bounds, so that pages without one follow.
func writeSegment(t testing.TB, path string, rows []qlog.Row, small bool) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	options := []parquet.WriterOption{
		parquet.Compression(&parquet.Zstd), parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.RLEDictionary),
		parquet.DefaultEncodingFor(parquet.Int64, &parquet.DeltaBinaryPacked), parquet.DefaultEncodingFor(parquet.Int32, &parquet.RLEDictionary),
		parquet.PageBufferSize(512),
	}
	if small {
		options = append(options, parquet.DictionaryMaxBytes(16), parquet.MaxRowsPerRowGroup(100))
	}
	w := parquet.NewGenericWriter[qlog.Row](f, options...)
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

// segmentName is the name of a segment whose first row came some minutes after the
// rows of the tests begin.
func segmentName(i int) string {
	return now.Add(-3*time.Hour+time.Duration(i)*time.Minute).Format("20060102T150405.000000Z") + ".parquet"
}

// logFolder writes random rows into a folder of segments, whose times overlap a
// little, and gives all rows, the oldest first. Some segments are out of order
// inside.
func logFolder(t testing.TB, dir string, rng *rand.Rand, n int) []qlog.Row {
	t.Helper()
	all := make([]qlog.Row, n)
	for i := range all {
		all[i] = randomRow(rng)
	}
	byTime := func(a, b qlog.Row) int { return compare(a.Time, b.Time) }
	slices.SortStableFunc(all, byTime)
	rows := slices.Clone(all)
	for i := range 4 {
		rng.Shuffle(min(10, len(rows)), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
		part := rows[:len(rows)/(4-i)]
		rows = rows[len(part):]
		if i != 2 {
			slices.SortStableFunc(part, byTime)
		}
		writeSegment(t, filepath.Join(dir, segmentName(i)), part, i%2 == 1)
	}
	return all
}

func find(t testing.TB, dir string, f Filter) ([]qlog.Row, Report) {
	t.Helper()
	var got []qlog.Row
	report, err := Search(t.Context(), dir, f, func(r *qlog.Row) bool { got = append(got, *r); return true })
	if err != nil || report.Skipped != nil {
		t.Fatal(err, report.Skipped)
	}
	return got, report
}

// oracles are the filters as somebody would check them by reading a row. Each is
// asked for the values of its key in samples.
var oracles = map[string]func(r *qlog.Row, v string) bool{
	"from":     func(r *qlog.Row, v string) bool { return r.Time >= moment(v) },
	"until":    func(r *qlog.Row, v string) bool { return r.Time < moment(v) },
	"client":   func(r *qlog.Row, v string) bool { return v == r.Client || holds(v, r.Client) },
	"name":     func(r *qlog.Row, v string) bool { return strings.ToLower(v) == r.Name },
	"suffix":   func(r *qlog.Row, v string) bool { return under(r.Name, v) },
	"contains": func(r *qlog.Row, v string) bool { return strings.Contains(r.Name, strings.ToLower(v)) },
	"type":     func(r *qlog.Row, v string) bool { return strings.EqualFold(v, r.Type) },
	"rcode":    func(r *qlog.Row, v string) bool { return strings.EqualFold(v, r.Rcode) },
	"source":   func(r *qlog.Row, v string) bool { return v == r.Source },
	"rule":     func(r *qlog.Row, v string) bool { return v == r.Rule || strings.HasPrefix(r.Rule, v+":") },
	"upstream": func(r *qlog.Row, v string) bool { return v == r.Upstream || strings.HasSuffix(r.Upstream, "://"+v) },
	"listener": func(r *qlog.Row, v string) bool { return v == r.Listener || strings.HasSuffix(r.Listener, "://"+v) },
	"protocol": func(r *qlog.Row, v string) bool { return v == r.Protocol },
	"answer": func(r *qlog.Row, v string) bool {
		return slices.ContainsFunc(strings.Fields(r.Answers), func(a string) bool { return v == a || holds(v, a) })
	},
	"slower": func(r *qlog.Row, v string) bool {
		d, _ := time.ParseDuration(v)
		return time.Duration(r.Latency)*time.Microsecond > d
	},
	"blocked": func(r *qlog.Row, v string) bool { return (r.EDE == "15" || r.EDE == "18") == (v == "true") },
	"failed":  func(r *qlog.Row, v string) bool { return (r.Rcode == "SERVFAIL") == (v == "true") },
}

func moment(v string) int64 {
	if d, err := time.ParseDuration(v); err == nil {
		return now.Add(-d).UnixMicro()
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}

func holds(prefix, addr string) bool {
	p, err1 := netip.ParsePrefix(prefix)
	a, err2 := netip.ParseAddr(addr)
	return err1 == nil && err2 == nil && p.Contains(a)
}

func under(name, top string) bool {
	name, top = strings.ReplaceAll(name, `\.`, "_"), strings.TrimSuffix(top, ".")
	return top == "" || strings.HasSuffix("."+name, "."+top+".")
}

// samples are values of each key that some rows have and others do not.
var samples = map[string][]string{
	"from":     {"1h", "30m", "2026-03-14T13:00:00Z"},
	"until":    {"10m", "2026-03-14T14:30:00Z"},
	"client":   {"192.0.2.1", "192.0.2.0/24", "2001:db8::/48", "2001:db8:1::1", "203.0.113.9", "c-0123456789abcdef"},
	"name":     {"Example.org.", "www.example.org.", ".", "none.example."},
	"suffix":   {"example.org", "org.", ".", "b.example.org"},
	"contains": {"track", "WWW", "none"},
	"type":     {"a", "MX", "TYPE65280", "TXT"},
	"rcode":    {"nxdomain", "SERVFAIL", "FORMERR"},
	"source":   {"cache", "zone", "local"},
	"rule":     {"waymark.yaml", "waymark.yaml:12", "block.txt:8"},
	"upstream": {"udp://9.9.9.9:53", "192.0.2.53:53"},
	"listener": {"tcp://127.0.0.1:53", "127.0.0.1:53"},
	"protocol": {"tcp", "udp"},
	"answer":   {"192.0.2.80", "198.51.100.0/24", "2001:db8::80"},
	"slower":   {"50ms", "0s", "99.9ms"},
	"blocked":  {"true", "false"},
	"failed":   {"true", "false"},
}

func TestSamplesCoverKeys(t *testing.T) {
	for _, k := range Keys() {
		if k.test != nil && (oracles[k.Name] == nil || samples[k.Name] == nil) {
			t.Errorf("key %s has no oracle or no samples", k.Name)
		}
		if _, err := ParseFilter(map[string][]string{k.Name: {k.Example}}, now); err != nil {
			t.Errorf("the example of key %s: %v", k.Name, err)
		}
	}
}

// meant is what a reader of all rows would find.
func meant(all []qlog.Row, values map[string][]string) []qlog.Row {
	var want []qlog.Row
	for _, r := range all {
		ok := true
		for key, vs := range values {
			ok = ok && slices.ContainsFunc(vs, func(v string) bool { return oracles[key](&r, v) })
		}
		if ok {
			want = append(want, r)
		}
	}
	return want
}

// sameRows compares rows without their order among those of one time.
func sameRows(a, b []qlog.Row) bool {
	key := func(r qlog.Row) string { return fmt.Sprintf("%d %+v", r.Time, r) }
	x, y := make([]string, 0, len(a)), make([]string, 0, len(b))
	for i := range a {
		x = append(x, key(a[i]))
	}
	for i := range b {
		y = append(y, key(b[i]))
	}
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// Every filter, alone and with others, finds what reading all rows finds; so do the
// counts.
func TestFiltersByOracle(t *testing.T) {
	dir := t.TempDir()
	all := logFolder(t, dir, rand.New(rand.NewPCG(1, 2)), 1000)
	names := make([]string, 0, len(oracles))
	for name := range oracles {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		values := map[string][]string{}
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, func(s string) string { return s }).Draw(t, "keys") {
			most := 2
			if k := keys[slices.IndexFunc(keys, func(k Key) bool { return k.Name == key })]; k.single {
				most = 1
			}
			values[key] = rapid.SliceOfN(rapid.SampledFrom(samples[key]), 1, most).Draw(t, key)
		}
		f, err := ParseFilter(values, now)
		if err != nil && strings.Contains(err.Error(), "not behind from") {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Oldest = rapid.Bool().Draw(t, "oldest")
		want := meant(all, values)
		var got []qlog.Row
		if _, err := Search(context.Background(), dir, f, func(r *qlog.Row) bool { got = append(got, *r); return true }); err != nil {
			t.Fatal(err)
		}
		if !sameRows(got, want) {
			t.Fatalf("%v: %d rows, want %d", values, len(got), len(want))
		}
		if !slices.IsSortedFunc(got, func(a, b qlog.Row) int {
			if f.Oldest {
				return compare(a.Time, b.Time)
			}
			return compare(b.Time, a.Time)
		}) {
			t.Fatalf("%v: rows are not in order", values)
		}
		col := rapid.SampledFrom(Columns()).Draw(t, "column")
		checkTop(t, dir, f, col, want)
		checkCount(t, dir, f, want)
	})
}

type failer interface {
	Fatalf(string, ...any)
	Fatal(...any)
}

func checkTop(t failer, dir string, f Filter, col string, want []qlog.Row) {
	counts := map[string]uint64{}
	at, of, err := counted(col)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if columns[at].text != nil {
			counts[of(*columns[at].text(&want[i]))]++
		} else {
			counts[decimal(columns[at].number(&want[i]))]++
		}
	}
	table, _, err := Top(context.Background(), dir, f, col, 3)
	if err != nil {
		t.Fatal(err)
	}
	if table.Rows != uint64(len(want)) || table.Distinct != len(counts) || len(table.Values) != min(3, len(counts)) {
		t.Fatalf("top %s: %+v, want %d rows, %d values", col, table, len(want), len(counts))
	}
	for i, v := range table.Values {
		if v.Count != counts[v.Value] || i > 0 && v.Count > table.Values[i-1].Count || v.Share != float64(v.Count)/float64(len(want)) {
			t.Fatalf("top %s: %+v, want count %d", col, v, counts[v.Value])
		}
		delete(counts, v.Value)
	}
	for value, n := range counts {
		if len(table.Values) > 0 && n > table.Values[len(table.Values)-1].Count {
			t.Fatalf("top %s: %s with %d is missing", col, value, n)
		}
	}
}

func checkCount(t failer, dir string, f Filter, want []qlog.Row) {
	buckets, _, err := Count(context.Background(), dir, f, 7*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[int64]uint64{}
	for _, r := range want {
		counts[r.Time/420e6*420e6]++
	}
	for i, b := range buckets {
		if b.Count != counts[b.Time] || i > 0 && b.Time-buckets[i-1].Time != 420e6 {
			t.Fatalf("bucket %+v, want %d", b, counts[b.Time])
		}
		delete(counts, b.Time)
	}
	if len(counts) > 0 {
		t.Fatalf("%d buckets are missing", len(counts))
	}
}

// Pages of any size, one behind the other, are all rows once and in order.
func TestSearchPages(t *testing.T) {
	dir := t.TempDir()
	all := logFolder(t, dir, rand.New(rand.NewPCG(3, 4)), 240)
	for i := range all { // a time that fills more than one page
		if i < 30 {
			all[i].Time = all[0].Time
		}
	}
	writeSegment(t, filepath.Join(dir, segmentName(0)), all[:60], false)
	writeSegment(t, filepath.Join(dir, segmentName(1)), all[60:], true)
	for _, name := range []string{segmentName(2), segmentName(3)} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, oldest := range []bool{false, true} {
		whole, report := find(t, dir, Filter{Oldest: oldest})
		if report.Next != (Cursor{}) || len(whole) != len(all) {
			t.Fatalf("%d rows, next %s", len(whole), report.Next)
		}
		for _, size := range []int{1, 7, 60, 239, 240, 241} {
			var pages []qlog.Row
			f := Filter{Oldest: oldest, Limit: size}
			for n := 0; ; n++ {
				page, report := find(t, dir, f)
				pages = append(pages, page...)
				if report.Next == (Cursor{}) {
					break
				}
				if len(page) != size || n > len(all) {
					t.Fatalf("page %d of %d rows has %d", n, size, len(page))
				}
				parsed, err := ParseFilter(map[string][]string{"cursor": {report.Next.String()}}, now)
				if err != nil {
					t.Fatal(err)
				}
				f.After = parsed.After
			}
			if !slices.Equal(pages, whole) {
				t.Errorf("pages of %d, oldest first %v: %d rows, want %d in the same order", size, oldest, len(pages), len(whole))
			}
		}
	}
}

func TestExports(t *testing.T) {
	dir := t.TempDir()
	all := logFolder(t, dir, rand.New(rand.NewPCG(5, 6)), 1000)
	f := Filter{Oldest: true}
	want, _ := find(t, dir, f)
	if !sameRows(all, want) {
		t.Fatal("the search gives other rows")
	}
	export := func(format string) *bytes.Buffer {
		var b bytes.Buffer
		if n, _, err := Export(t.Context(), dir, f, format, &b); err != nil || n != len(want) {
			t.Fatal(format, n, err)
		}
		return &b
	}
	t.Run("json", func(t *testing.T) {
		var got []qlog.Row
		for dec := json.NewDecoder(export("json")); dec.More(); {
			var r qlog.Row
			if err := dec.Decode(&r); err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d rows, want %d", len(got), len(want))
		}
	})
	t.Run("csv", func(t *testing.T) {
		lines, err := csv.NewReader(export("csv")).ReadAll()
		if err != nil || len(lines) != len(want)+1 || len(lines[0]) != numColumns+1 {
			t.Fatal(len(lines), err)
		}
		for i, r := range want {
			line := lines[i+1]
			if line[0] != time.UnixMicro(r.Time).UTC().Format("2006-01-02T15:04:05.000000Z") || line[1] != r.Client || line[5] != r.Name || line[16] != fmt.Sprint(r.Latency) {
				t.Fatalf("line %q of %+v", line, r)
			}
		}
	})
	t.Run("parquet", func(t *testing.T) {
		other := t.TempDir()
		if err := os.WriteFile(filepath.Join(other, segmentName(0)), export("parquet").Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := find(t, other, f); !slices.Equal(got, want) {
			t.Errorf("%d rows, want %d", len(got), len(want))
		}
	})
	if _, _, err := Export(t.Context(), dir, f, "xml", &bytes.Buffer{}); err == nil {
		t.Error("xml is a format")
	}
	if _, _, err := Export(t.Context(), dir, f, "csv", full{}); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a disk that is full gives %v", err)
	}
}

// full is a disk that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, fs.ErrInvalid }

// Files that are damaged are skipped and named, whatever is wrong with them; the
// others are read.
func TestDamagedSegments(t *testing.T) {
	dir := t.TempDir()
	logFolder(t, dir, rand.New(rand.NewPCG(7, 8)), 1000)
	path := filepath.Join(dir, segmentName(1))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rest := 750
	rng := rand.New(rand.NewPCG(9, 10))
	for i := range 150 {
		bad := slices.Clone(good)
		switch {
		case i == 0:
			bad = nil
		case i < 20:
			bad = bad[:rng.IntN(len(bad))]
		default:
			for range 1 + i%5 {
				bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255))
			}
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		report, err := Search(t.Context(), dir, Filter{}, func(*qlog.Row) bool { n++; return true })
		if err != nil {
			t.Fatal(err)
		}
		if i < 20 && (n != rest || len(report.Skipped) != 1 || !strings.Contains(report.Skipped[0].Error(), "reading "+path)) {
			t.Errorf("damage %d: %d rows, skipped %v", i, n, report.Skipped)
		}
		if n < rest || n == rest && len(report.Skipped) == 0 {
			t.Errorf("damage %d: %d rows, skipped %v", i, n, report.Skipped)
		}
	}
}

func TestFolders(t *testing.T) {
	none := func(*qlog.Row) bool { return true }
	if _, err := Search(t.Context(), filepath.Join(t.TempDir(), "none"), Filter{}, none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is missing gives %v", err)
	}
	empty := t.TempDir()
	if report, err := Search(t.Context(), empty, Filter{}, none); err != nil || report.Files != 0 {
		t.Errorf("an empty folder gives %+v, %v", report, err)
	}
	if table, _, err := Top(t.Context(), empty, Filter{}, "name", 3); err != nil || table.Rows != 0 {
		t.Errorf("an empty folder has %+v, %v", table, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	logFolder(t, dir, rand.New(rand.NewPCG(11, 12)), 100)
	if _, err := Search(ctx, dir, Filter{}, none); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended gives %v", err)
	}
	var fe *FilterError
	if _, _, err := Top(t.Context(), dir, Filter{}, "cliant", 3); !errors.As(err, &fe) || fe.Near != "client" {
		t.Errorf("an unknown column gives %v", err)
	}
	if _, _, err := Count(t.Context(), dir, Filter{}, time.Microsecond); err == nil {
		t.Error("three hours of microseconds are a plot")
	}
	n := 0
	if report, err := Search(t.Context(), dir, Filter{}, func(*qlog.Row) bool { n++; return n < 5 }); err != nil || n != 5 || report.Next.Rows == 0 {
		t.Errorf("after the fifth row: %d rows, %+v, %v", n, report, err)
	}
}

// The table of columns is qlog.Row: every row goes in and comes out.
func TestColumnsAreOfRow(t *testing.T) {
	var names []string
	for _, c := range parquet.SchemaOf(qlog.Row{}).Columns() {
		names = append(names, strings.Join(c, "."))
	}
	if want := append([]string{"time"}, Columns()[:numColumns]...); !slices.Equal(names, want) {
		t.Fatalf("qlog.Row has %q, the table %q", names, want)
	}
	var b builder
	rng := rand.New(rand.NewPCG(13, 14))
	var rows []qlog.Row
	for i := range 50 {
		r := randomRow(rng)
		r.Time = int64(i)
		rows = append(rows, r)
		b.add(&r)
	}
	block := b.done()
	for i := range rows {
		var got qlog.Row
		block.row(i, &got)
		if got != rows[i] {
			t.Errorf("row %d is %+v, want %+v", i, got, rows[i])
		}
	}
}
