// Package search reads the query log: which rows a filter means, how many have
// which value of a column, how many there were when, and exports of them. It reads
// the segments and the tails of a folder, whether or not a server writes there at
// the time. It writes no log and keeps nothing between two calls; the command line
// and the HTTP API call it.
//
// Files are read in the order in which a question meets them: footer, dictionaries
// of the columns that the filter names, the numbers of these columns, and last the
// other columns of the rows that are left.
package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// workers is how many files are read at once. It is bounded because each takes
// some tens of MiB when all of its rows are meant.
const workers = 2

// Report is what there is to say about a question besides its rows.
type Report struct {
	Next    Cursor  // where the next question goes on; the zero Cursor where no row is left
	Files   int     // segments and tails of the folder
	Skipped []error // files that could not be read, each with its path
}

// Search gives the rows that a filter means to each, in the order of the filter,
// until each returns false, the limit is reached or ctx ends. The row is each's for
// the time of the call only, its strings for as long as it likes. A file that
// cannot be read is skipped and told in the report; one that has vanished held what
// nobody has any more. The error is about the folder, which may not be there
// (fs.ErrNotExist), or of ctx.
func Search(ctx context.Context, dir string, f Filter, each func(*qlog.Row) bool) (Report, error) {
	r, err := begin(ctx, dir, &f)
	if err != nil {
		return Report{}, err
	}
	next, err := r.give(each)
	return r.report(next), err
}

// run is one question on one folder.
type run struct {
	ctx    context.Context
	f      *Filter
	schema *parquet.Schema
	files  int
	parts  []*part
	seen   map[string]int // rows of tails, and whole for segments, by the stem of the file

	mu      sync.Mutex // guards skipped
	skipped []error
}

// part is a file that may have rows that are meant.
type part struct {
	path        string
	tail        bool  // block is there from the start
	first, last int64 // times of its rows, or wider
	block       *block
	done        chan struct{} // closed when block is there; nil: it failed
}

func newRun(ctx context.Context, f *Filter) *run {
	return &run{ctx: ctx, f: f, schema: parquet.SchemaOf(qlog.Row{}), seen: map[string]int{}}
}

// begin lists the folder, reads its tails, and finds the segments whose times are
// within the filter's. Tails are read at once, because they become segments.
func begin(ctx context.Context, dir string, f *Filter) (*run, error) {
	r := newRun(ctx, f)
	const tries = 3
	for try := 1; ; try++ {
		files, err := list(dir)
		if err != nil {
			return nil, fmt.Errorf("reading the query log: %w", err)
		}
		r.files, r.parts = len(files), nil
		clear(r.seen)
		again := false
		for i := range files {
			again = r.take(&files[i]) || again
		}
		if !again || try == tries { // a tail that became a segment meanwhile is in the next list
			break
		}
		r.skipped = nil
	}
	r.spans()
	return r, ctx.Err()
}

// take makes a file a part, unless it is of another time, and tells whether it has
// vanished.
func (r *run) take(file *file) (gone bool) {
	low, high := r.f.span()
	switch {
	case file.Tail:
		return r.tail(file)
	case file.reached(low, high):
		r.parts = append(r.parts, &part{path: file.Path})
	}
	r.seen[file.stem] = whole
	return false
}

// tail reads a tail and tells whether it has vanished.
func (r *run) tail(file *file) (gone bool) {
	var b builder
	rows := 0
	defer func() { r.seen[file.stem] = rows }()
	err := guarded(func() error {
		return qlog.ReadTail(file.Path, func(row *qlog.Row) bool {
			if r.f.Matches(row) {
				b.add(row)
			}
			rows++
			return rows%1024 != 0 || r.ctx.Err() == nil
		})
	})
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		r.skip(file.Path, err)
	}
	if len(b.times) == 0 {
		return false
	}
	p := &part{path: file.Path, tail: true, block: b.done(), done: make(chan struct{})}
	p.first, p.last = p.block.time(0), p.block.time(len(p.block.order)-1)
	close(p.done)
	r.parts = append(r.parts, p)
	return false
}

// spans finds the times of the segments, takes out those that the filter does not
// reach, and puts the others in the order in which the filter needs them.
func (r *run) spans() {
	low, high := r.f.span()
	r.parallel(func(p *part) {
		if p.tail {
			return
		}
		err := r.inSegment(p, func(s *segment) error {
			p.first, p.last = s.span()
			return nil
		})
		if err == nil && p.first <= high && p.last >= low {
			p.done = make(chan struct{})
		}
	})
	r.parts = slices.DeleteFunc(r.parts, func(p *part) bool { return p.done == nil })
	if !r.f.Oldest { // of files that end at the same time, the one that was begun last
		slices.Reverse(r.parts)
	}
	slices.SortStableFunc(r.parts, func(a, b *part) int {
		if r.f.Oldest {
			return compare(a.first, b.first)
		}
		return compare(b.last, a.last)
	})
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// parallel does something with every part, by two goroutines, until ctx ends.
func (r *run) parallel(do func(*part)) {
	var wg sync.WaitGroup
	queue := make(chan *part)
	for range min(workers, len(r.parts)) {
		wg.Go(func() {
			for p := range queue {
				do(p)
			}
		})
	}
	for _, p := range r.parts {
		if r.ctx.Err() != nil {
			break
		}
		queue <- p
	}
	close(queue)
	wg.Wait()
}

// inSegment does something with an open segment. Its error is also told in the
// report.
func (r *run) inSegment(p *part, do func(*segment) error) error {
	err := guarded(func() error {
		s, err := openSegment(p.path, r.schema)
		if err != nil {
			return err
		}
		defer s.close()
		return do(s)
	})
	if err != nil {
		r.skip(p.path, err)
	}
	return err
}

// guarded makes a panic an error: what stands in damaged files is checked by
// nobody on the way to the library's decoders.
func guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding: %v", p)
		}
	}()
	return do()
}

// skip notes a file that could not be read, unless it has vanished.
func (r *run) skip(path string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !strings.HasPrefix(err.Error(), "reading "+path) { // a tail says so itself
		err = fmt.Errorf("reading %s: %w", path, err)
	}
	r.skipped = append(r.skipped, err)
}

func (r *run) report(next Cursor) Report {
	slices.SortFunc(r.skipped, func(a, b error) int {
		if a.Error() < b.Error() {
			return -1
		}
		return 1
	})
	return Report{Next: next, Files: r.files, Skipped: slices.CompactFunc(r.skipped, func(a, b error) bool { return a.Error() == b.Error() })}
}
