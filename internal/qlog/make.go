package qlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// job is work for who makes segments: a table, or rows to be deleted.
type job struct {
	table  *table
	tail   tail
	delete *deletion
}

// makeLoop makes segments: of tails that were left at first, then of each table.
func (l *Log) makeLoop(enc *encoder) {
	l.adopt(enc)
	for j := range l.jobs {
		if j.delete != nil {
			j.delete.done <- l.rewrite(enc, j.delete)
			continue
		}
		l.makeSegment(enc, j)
		j.table.reset()
		l.spare <- j.table
	}
}

// makeSegment makes a table a segment. Where that cannot be, its tail stays until the
// next start.
func (l *Log) makeSegment(enc *encoder, j job) {
	first := time.UnixMicro(j.tail.first).UTC()
	path := strings.TrimSuffix(j.tail.path, tailExt) + segmentExt
	if j.tail.path == "" {
		path = l.keeper.unused(j.tail.first, segmentExt)
	} else if t, err := time.Parse(nameLayout, strings.TrimSuffix(filepath.Base(j.tail.path), tailExt)); err == nil {
		first = t
	}
	j.table.sort()
	size, err := l.keeper.writeSegment(enc, path, j.table)
	switch {
	case err != nil && j.tail.path == "":
		l.lost.Add(uint64(len(j.table.rows)))
		l.keeper.warn("rows of the query log are lost", err)
		return
	case err != nil:
		l.keeper.replace("", File{Path: j.tail.path, Tail: true, First: first, Size: j.tail.size})
		l.keeper.warn("making a segment of the query log failed; its tail is kept", err)
		return
	}
	l.keeper.replace(j.tail.path, File{Path: path, First: first, Size: size})
	if j.tail.path != "" {
		_ = os.Remove(j.tail.path) // the segment counts where both are there
	}
	l.keeper.retain(0)
}

// adopt makes segments of the tails of former runs.
func (l *Log) adopt(enc *encoder) {
	t := newTable()
	for _, f := range l.keeper.orphans() {
		t.reset()
		file, err := os.Open(f.Path)
		if err == nil {
			_, err = readTail(file, t)
			err = errors.Join(err, file.Close())
		}
		switch {
		case errors.Is(err, errVersion):
			l.cfg.Log.Warn("a tail of the query log is left as it is", "file", f.Path, "error", err)
			continue
		case err != nil:
			l.cfg.Log.Warn("a tail of the query log is damaged: the rows in front of the damage are kept", "file", f.Path, "rows", len(t.rows), "error", err)
		}
		if len(t.rows) == 0 {
			_ = os.Remove(f.Path)
			l.keeper.replace(f.Path, File{})
			continue
		}
		l.makeSegment(enc, job{table: t, tail: tail{path: f.Path, size: f.Size, first: f.First.UnixMicro()}})
	}
}

// deletion is rows to be deleted.
type deletion struct {
	ctx   context.Context
	match func(*Row) bool
	done  chan error
	count int
}

// Delete takes the rows that match out of every file. A file is rewritten whole or
// stays as it is. It returns how many rows are gone; sinks keep what they have.
func (l *Log) Delete(ctx context.Context, match func(*Row) bool) (int, error) {
	d := &deletion{ctx: ctx, match: match, done: make(chan error, 1)}
	sent := make(chan struct{})
	select {
	case l.requests <- func() {
		defer close(sent)
		l.turn()
		l.finish()
		l.jobs <- job{delete: d}
	}:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-l.ctx.Done():
		return 0, errClosed
	}
	<-sent
	err := <-d.done
	return d.count, err
}

// errClosed is the error of a log that has been closed.
var errClosed = errors.New("the query log is closed")

// rewrite does a deletion.
func (l *Log) rewrite(enc *encoder, d *deletion) error {
	files, err := Files(l.cfg.Dir)
	if err != nil {
		return fmt.Errorf("deleting from the query log: %w", err)
	}
	t := newTable()
	for _, f := range files {
		if d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		if f.Tail {
			continue // of another version
		}
		t.reset()
		gone, err := filterSegment(f.Path, t, d.match)
		if gone > 0 && err == nil {
			err = l.replace(enc, f, t)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was the oldest
		}
		if err != nil {
			return fmt.Errorf("deleting from %s: %w", f.Path, err)
		}
		d.count += gone
	}
	return nil
}

// replace writes t in place of a segment, or nothing where t has no rows.
func (l *Log) replace(enc *encoder, f File, t *table) error {
	if len(t.rows) == 0 {
		err := os.Remove(f.Path)
		if err == nil {
			l.keeper.replace(f.Path, File{})
		}
		return err
	}
	size, err := l.keeper.writeSegment(enc, f.Path, t)
	if err == nil {
		l.keeper.replace(f.Path, File{Path: f.Path, First: f.First, Size: size})
	}
	return err
}

// filterSegment reads the rows of a segment that do not match into t.
func filterSegment(path string, t *table, match func(*Row) bool) (gone int, err error) {
	err = ReadSegment(path, func(row *Row) bool {
		if match(row) {
			gone++
		} else {
			t.append(row)
		}
		return true
	})
	return gone, err
}

// ReadSegment hands each row of a segment to each, oldest first, until that is false.
// It reads every column; package search reads what it needs.
func ReadSegment(path string, each func(*Row) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := parquet.NewGenericReader[Row](f)
	defer r.Close()
	rows := make([]Row, 1024)
	for {
		n, err := r.Read(rows)
		for i := range rows[:n] {
			if !each(&rows[i]) {
				return nil
			}
		}
		if err != nil {
			return ended(err)
		}
	}
}
