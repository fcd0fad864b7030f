package search

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// file is a segment or a tail.
type file struct {
	qlog.File
	stem string // of its name: a segment has that of the tail it was
}

// The rows of a file are no older than its first one less early, since some waited
// for an upstream, and no younger than that plus late: a tail becomes a segment
// long before. Both are wide, as clocks are set and servers stopped.
const (
	early = time.Hour
	late  = 48 * time.Hour
)

// list finds the files of a folder, the oldest first.
func list(dir string) ([]file, error) {
	found, err := qlog.Files(dir)
	if err != nil {
		return nil, err
	}
	files := make([]file, 0, len(found))
	for _, f := range found {
		files = append(files, file{f, strings.TrimSuffix(filepath.Base(f.Path), filepath.Ext(f.Path))})
	}
	return files, nil
}

// reached tells whether a file may have rows between two times, both included, from
// its name alone.
func (f *file) reached(low, high int64) bool {
	first := f.First.UnixMicro()
	return first-early.Microseconds() <= high && first+late.Microseconds() >= low
}
