package cache

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/waymark-dns/waymark/internal/durable"
)

// SaveFile dumps the cache into a file and tells how many entries that were. The
// file is replaced when the new one is whole and on disk; where anything fails,
// the old one stays. The new one grows beside it, always under the same name, so
// that a process that is killed leaves no more than one. One at a time may call it
// for a path.
func (c *Cache) SaveFile(path string, now time.Duration, wall time.Time) (n int, err error) {
	folder := filepath.Dir(path)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("saving the cache to %s: %w", path, err)
	}
	if n, err = c.save(f, now, wall); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what failed before is what counts
		return 0, fmt.Errorf("saving the cache to %s: %w", path, err)
	}
	if err = durable.SyncFolder(folder); err != nil {
		return n, fmt.Errorf("saving the cache to %s, which may be the old one after a power cut: %w", path, err)
	}
	return n, nil
}

// save writes, syncs and closes f.
func (c *Cache) save(f *os.File, now time.Duration, wall time.Time) (n int, err error) {
	w := bufio.NewWriterSize(f, 64<<10)
	if n, err = c.Dump(w, now, wall); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return n, err
}

// LoadFile loads a file that SaveFile wrote, or mosdns, as LoadAny does.
func (c *Cache) LoadFile(path string, now time.Duration, wall time.Time) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("loading the cache: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	if n, err = c.LoadAny(f, now, wall); err != nil {
		return n, fmt.Errorf("loading the cache from %s: %w", path, err)
	}
	return n, nil
}
