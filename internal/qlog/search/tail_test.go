package search

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// writer is a log that is being kept, in the time of a bubble.
type writer struct {
	t     *testing.T
	log   *qlog.Log
	ring  *qlog.Ring
	start time.Time
	n     int
}

func keepLog(t *testing.T, dir string) *writer {
	t.Helper()
	w := &writer{t: t, start: time.Now()}
	var err error
	w.log, err = qlog.Open(qlog.Config{Dir: dir, Now: w.now, Wall: time.Now, Log: slog.New(slog.DiscardHandler), Names: qlog.Names{
		Listener: func(uint16) string { return "udp://127.0.0.1:53" },
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.ring = qlog.NewRing(w.now)
	w.log.Add(w.ring)
	return w
}

func (w *writer) now() time.Duration { return time.Since(w.start) }

// queries observes n queries for n0.example, n1.example and so on, and lets time go
// by until they are in the tail.
func (w *writer) queries(n int) {
	for range n {
		name, err := wire.ParseName(fmt.Sprintf("N%d.example.", w.n))
		if err != nil {
			w.t.Fatal(err)
		}
		r := &serve.Request{Client: netip.MustParseAddrPort("192.0.2.7:4711"), Peer: &serve.Peer{}, At: w.now()}
		r.Name, r.Hash, r.Type, r.Class = name, wire.HashName(name), wire.TypeA, wire.ClassIN
		r.Msg = make([]byte, wire.HeaderSize+len(name)+4)
		r.Note = serve.Note{Source: serve.SourceZone, Size: 60}
		r.Out = append(make([]byte, wire.HeaderSize), name...)
		r.Out = append(r.Out, 0, 1, 0, 1)
		w.ring.Observe(r)
		if w.n++; w.n%256 == 0 {
			w.ring.Flush()
		}
		time.Sleep(time.Millisecond)
	}
	w.ring.Flush()
	time.Sleep(2 * time.Second)
}

func names(rows []qlog.Row) (all []string) {
	for _, r := range rows {
		all = append(all, r.Name)
	}
	return all
}

// numbered are the names of queries from to until.
func numbered(from, until int) (all []string) {
	for i := from; i < until; i++ {
		all = append(all, fmt.Sprintf("n%d.example.", i))
	}
	return all
}

// exts are the kinds of files in a folder.
func exts(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != "" { // the lock has none
			all = append(all, ext)
		}
	}
	return all
}

// What is in a tail is found, followed, and found and followed no second time when
// the tail has become a segment.
func TestTails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		w := keepLog(t, dir)
		w.queries(10)
		if got := exts(t, dir); !slices.Equal(got, []string{".tail"}) {
			t.Fatalf("the folder has %v", got)
		}
		rows, _ := find(t, dir, Filter{Oldest: true})
		if !slices.Equal(names(rows), numbered(0, 10)) || rows[0].Client != "192.0.2.7" || rows[0].ClientPort != 4711 || rows[0].Time != w.start.UnixMicro() {
			t.Fatalf("the tail has %+v", rows)
		}
		rows, report := find(t, dir, Filter{Limit: 3})
		if want := []string{"n9.example.", "n8.example.", "n7.example."}; !slices.Equal(names(rows), want) || report.Next.Rows == 0 {
			t.Fatalf("the newest are %v", names(rows))
		}

		var got []qlog.Row
		each := func(r *qlog.Row) bool { got = append(got, *r); return true }
		follower, _, err := Follow(t.Context(), dir, Filter{Limit: 3}, each)
		if err != nil || !slices.Equal(names(got), numbered(7, 10)) {
			t.Fatalf("followed from %v, %v", names(got), err)
		}
		next := func(want []string) {
			t.Helper()
			got = nil
			if err := follower.Next(t.Context(), each); err != nil || !slices.Equal(names(got), want) {
				t.Fatalf("came %v, %v, want %v", names(got), err, want)
			}
		}
		next(nil)
		w.queries(5)
		next(numbered(10, 15))
		w.queries(4) // not looked at before the tail is a segment
		if err := w.log.Close(); err != nil {
			t.Fatal(err)
		}
		if got := exts(t, dir); !slices.Equal(got, []string{".parquet"}) {
			t.Fatalf("the folder has %v", got)
		}
		next(numbered(15, 19))
		next(nil)

		w = keepLog(t, dir)
		w.n = 19
		w.queries(3)
		next(numbered(19, 22))
		rows, _ = find(t, dir, Filter{Limit: 2, After: report.Next})
		if want := []string{"n6.example.", "n5.example."}; !slices.Equal(names(rows), want) {
			t.Fatalf("the cursor of the tail goes on with %v", names(rows))
		}
		f, err := ParseFilter(map[string][]string{"suffix": {"example"}, "name": {"n3.example,n20.example"}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if table, _, err := Top(t.Context(), dir, f, "name", 0); err != nil || table.Rows != 2 {
			t.Fatalf("segment and tail have %+v, %v", table, err)
		}
		if buckets, _, err := Count(t.Context(), dir, Filter{}, time.Hour); err != nil || len(buckets) != 1 || buckets[0].Count != 22 {
			t.Fatalf("segment and tail have %+v, %v", buckets, err)
		}
		if err := w.log.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A tail that is damaged gives what is in front of the damage, and is named.
func TestDamagedTail(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := keepLog(t, dir)
		w.queries(4)
		tails, err := filepath.Glob(filepath.Join(dir, "*.tail"))
		if err != nil || len(tails) != 1 {
			t.Fatal(tails, err)
		}
		text, err := os.ReadFile(tails[0])
		if err != nil {
			t.Fatal(err)
		}
		w.queries(4)
		more, err := os.ReadFile(tails[0])
		if err != nil || len(more) <= len(text) {
			t.Fatal(len(more), err)
		}
		if err := w.log.Close(); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"*.parquet", "*.tail"} {
			found, _ := filepath.Glob(filepath.Join(dir, path))
			for _, f := range found {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
		}
		more[len(text)+20] ^= 1
		if err := os.WriteFile(tails[0], more, 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		report, err := Search(t.Context(), dir, Filter{}, func(*qlog.Row) bool { n++; return true })
		if err != nil || n != 4 || len(report.Skipped) != 1 {
			t.Errorf("%d rows, %v, skipped %v", n, err, report.Skipped)
		}
	})
}

// A segment of more than one page: the pages before a row are passed by, and what
// lies on both sides of a border is found.
func TestPagesOfSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		w := keepLog(t, dir)
		const all, page = 70_000, 1 << 15
		w.queries(all)
		if err := w.log.Close(); err != nil {
			t.Fatal(err)
		}
		if got := exts(t, dir); len(got) != 1 || got[0] != ".parquet" {
			t.Fatalf("the folder has %v", got)
		}
		at := func(i int) int64 { return w.start.Add(time.Duration(i) * time.Millisecond).UnixMicro() }
		for _, c := range []struct {
			name     string
			f        Filter
			from, to int
		}{
			{"over a border", Filter{From: at(page - 2), Until: at(page + 2), Oldest: true}, page - 2, page + 2},
			{"from a border on", Filter{From: at(2 * page), Until: at(2*page + 3), Oldest: true}, 2 * page, 2*page + 3},
			{"the first", Filter{Limit: 2, Oldest: true}, 0, 2},
			{"behind a cursor", Filter{Limit: 2, Oldest: true, After: Cursor{at(page - 1), 1}}, page, page + 2},
		} {
			if rows, _ := find(t, dir, c.f); !slices.Equal(names(rows), numbered(c.from, c.to)) {
				t.Errorf("%s: %v", c.name, names(rows))
			}
		}
		f, err := ParseFilter(map[string][]string{"name": {"n1.example,n40000.example,n69999.example"}, "order": {"oldest"}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if rows, _ := find(t, dir, f); !slices.Equal(names(rows), []string{"n1.example.", "n40000.example.", "n69999.example."}) {
			t.Errorf("three of three pages: %v", names(rows))
		}
		if table, _, err := Top(t.Context(), dir, Filter{}, "name", 2); err != nil || table.Distinct != all || table.Rows != all || table.Values[0].Value != "n0.example." {
			t.Errorf("all names: %d of %d, %v, %v", table.Distinct, table.Rows, table.Values, err)
		}
		if table, _, err := Top(t.Context(), dir, Filter{From: at(page)}, "query_size", 1); err != nil || table.Rows != all-page {
			t.Errorf("sizes of the last pages: %+v, %v", table, err)
		}
	})
}
