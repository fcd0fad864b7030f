package qlog

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The names of files: when the first row came, so that names are in order.
const (
	nameLayout = "20060102T150405.000000Z"
	segmentExt = ".parquet"
	tailExt    = ".tail"
	partExt    = ".part" // of what is being written
)

// File is a segment or a tail.
type File struct {
	Path  string
	Tail  bool
	First time.Time // when its first row came, as its name says
	Size  int64     // octets
}

// Files lists the segments and tails of a folder, oldest first. A tail that has been
// made a segment is left out. A file may be gone, or a tail have become a segment,
// before it is opened. Rows of one file may be a little older than those of the file
// before: they waited for an upstream.
func Files(dir string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []File
	for _, entry := range entries {
		stem, ext := strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name())), filepath.Ext(entry.Name())
		first, err := time.Parse(nameLayout, stem)
		if err != nil || ext != segmentExt && ext != tailExt || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, File{Path: filepath.Join(dir, entry.Name()), Tail: ext == tailExt, First: first, Size: info.Size()})
	}
	slices.SortFunc(all, func(a, b File) int {
		if c := a.First.Compare(b.First); c != 0 {
			return c
		}
		return cmp.Compare(a.Path, b.Path) // a segment before its tail
	})
	return slices.DeleteFunc(all, func(f File) bool {
		return f.Tail && slices.ContainsFunc(all, func(g File) bool { return !g.Tail && g.First.Equal(f.First) })
	}), nil
}

// fileName is the name of a file whose first row came then.
func fileName(first int64, ext string) string {
	return time.UnixMicro(first).UTC().Format(nameLayout) + ext
}
