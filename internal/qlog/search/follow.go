package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// Follower remembers what of a folder has been given.
type Follower struct {
	dir  string
	f    Filter
	seen map[string]int // rows by the stem of the file
}

// Follow gives the newest rows that a filter means, as many as its limit, the oldest
// of them first, and makes a follower for those that come. What is said of Search
// holds here.
func Follow(ctx context.Context, dir string, f Filter, each func(*qlog.Row) bool) (*Follower, Report, error) {
	f.Oldest, f.After = false, Cursor{}
	r, err := begin(ctx, dir, &f)
	if err != nil {
		return nil, Report{}, err
	}
	var last []qlog.Row
	if _, err := r.give(func(row *qlog.Row) bool { last = append(last, *row); return true }); err != nil {
		return nil, Report{}, err
	}
	for i := range slices.Backward(last) {
		if !each(&last[i]) {
			break
		}
	}
	f.Limit = 0
	return &Follower{dir, f, r.seen}, r.report(Cursor{}), nil
}

// Next gives the rows that have come since, file by file, and within a file in the
// order in which they came; it does not wait for any. It is for one goroutine. The
// error is about the folder, or of ctx; a file that cannot be read is tried again
// the next time.
func (w *Follower) Next(ctx context.Context, each func(*qlog.Row) bool) error {
	files, err := list(w.dir)
	if err != nil {
		return fmt.Errorf("reading the query log: %w", err)
	}
	r := newRun(ctx, &w.f)
	there := map[string]int{}
	for _, file := range files {
		rows, known := w.seen[file.stem]
		there[file.stem] = rows
		if !file.Tail && known && rows == whole {
			continue
		}
		if file.Tail {
			there[file.stem] = r.newRows(file, rows, each)
			continue
		}
		err := r.inSegment(&part{path: file.Path}, func(s *segment) error { return s.rowsFrom(&w.f, rows, each) })
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			there[file.stem] = whole
		}
	}
	w.seen = there
	return ctx.Err()
}

// whole stands for the rows of a segment, of which none can come.
const whole = -1

// newRows gives the rows of a tail behind those that were seen, and tells how many
// are seen then.
func (r *run) newRows(file file, seen int, each func(*qlog.Row) bool) int {
	rows := 0
	err := guarded(func() error {
		return qlog.ReadTail(file.Path, func(row *qlog.Row) bool {
			rows++
			return rows <= seen || !r.f.Matches(row) || each(row)
		})
	})
	if err != nil {
		r.skip(file.Path, err)
	}
	return max(rows, seen)
}

// rowsFrom gives the rows of a segment behind the first ones, which were seen while
// it was a tail.
func (s *segment) rowsFrom(f *Filter, seen int, each func(*qlog.Row) bool) error {
	before := 0
	for _, g := range s.groups() {
		sel, err := g.match(f, false)
		if err != nil {
			return err
		}
		sel.behind(seen - before)
		before += g.rows
		var b block
		if err := g.gather(&sel, f, &b); err != nil {
			return err
		}
		b.sort()
		var row qlog.Row
		for i := range b.order {
			b.row(i, &row)
			if !each(&row) {
				return nil
			}
		}
	}
	return nil
}

// behind takes the first n rows of the group out of the selection.
func (s *selection) behind(n int) {
	s.lo = min(max(s.lo, n), s.hi)
	if s.listed {
		s.list = slices.DeleteFunc(s.list, func(row int32) bool { return int(row) < n })
	}
}
