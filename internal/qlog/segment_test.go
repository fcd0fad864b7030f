package qlog

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// filled is a table with n rows of traffic, and the clock they were made by.
func filled(t testing.TB, n, names, perSecond int, answers, ports bool) *table {
	t.Helper()
	f := newTraffic(t, names, perSecond)
	r := f.request()
	g := NewRing(func() time.Duration { return f.now + time.Duration(5+f.rng.IntN(60))*time.Microsecond })
	g.Attach(answers)
	s := &scribe{epoch: 1_800_000_000_000_000, names: Names{
		Rule:     func(n uint16) string { return "waymark.yaml:17" },
		Upstream: func(n uint16) string { return []string{"", "udp://192.0.2.53:53"}[n] },
		Listener: func(n uint16) string { return []string{"udp://127.0.0.1:53", "tcp://127.0.0.1:53"}[n] },
	}}
	tab := newTable()
	for i := range n {
		f.next(r)
		g.Observe(r)
		if i%4 < 2 || i == n-1 { // batches of one or two, as at such rates
			g.Flush()
			g.Drain(func(rec *Record) {
				if !ports {
					rec.Port = 0
				}
				tab.add(rec, s)
			})
		}
	}
	if len(tab.rows) != n {
		t.Fatalf("%d rows of %d", len(tab.rows), n)
	}
	tab.sort()
	return tab
}

func encoded(t testing.TB, tab *table) []byte {
	t.Helper()
	e, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	size, err := e.write(&b, tab)
	if err != nil || size != int64(b.Len()) {
		t.Fatalf("%d octets of %d: %v", b.Len(), size, err)
	}
	return b.Bytes()
}

// The library's own reader gives back every row.
func TestSegment(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 1000, pageRows, pageRows + 3, 3*pageRows - 1} {
		tab := filled(t, n, 5000, 1000, true, true)
		rows, err := parquet.Read[Row](bytes.NewReader(encoded(t, tab)), int64(len(encoded(t, tab))))
		if err != nil {
			t.Fatalf("%d rows: %v", n, err)
		}
		if len(rows) != n {
			t.Fatalf("%d rows of %d", len(rows), n)
		}
		for i := range rows {
			if want := tab.row(i); rows[i] != want {
				t.Fatalf("row %d of %d is\n%+v, want\n%+v", i, n, rows[i], want)
			}
		}
	}
}

// TestSize holds the octets of a query against what was promised.
func TestSize(t *testing.T) {
	for _, c := range []struct {
		name           string
		answers, ports bool
		most           float64
	}{
		{"every column", true, true, 12},
		{"without client ports and addresses in answers", false, false, 8},
	} {
		tab := filled(t, maxRows, 100_000, 20_000, c.answers, c.ports)
		file := encoded(t, tab)
		if got := float64(len(file)) / maxRows; got > c.most {
			t.Errorf("%s: %.2f octets a query, at most %v", c.name, got, c.most)
		} else {
			t.Logf("%s: %.2f octets a query", c.name, got)
		}
		f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range f.Metadata().RowGroups[0].Columns {
			t.Logf("%-12s %6.3f", chunk.MetaData.PathInSchema[0], float64(chunk.MetaData.TotalCompressedSize)/maxRows)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	f := newTraffic(b, 100_000, 100_000)
	r := f.request()
	g := NewRing(func() time.Duration { return f.now })
	g.Attach(true)
	s, tab := &scribe{}, newTable()
	b.ReportAllocs()
	for b.Loop() {
		for range 64 {
			f.next(r)
			g.Observe(r)
		}
		g.Flush()
		g.Drain(func(rec *Record) { tab.add(rec, s) })
		if tab.full() {
			tab.reset()
		}
	}
}

func BenchmarkSegment(b *testing.B) {
	tab := filled(b, maxRows, 100_000, 100_000, true, true)
	e, err := newEncoder()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := e.write(io.Discard, tab); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/maxRows, "ns/row")
}
