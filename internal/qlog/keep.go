package qlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/waymark-dns/waymark/internal/durable"
)

// keeper knows the files of a folder and keeps them within bounds. The writer and who
// makes segments use it.
type keeper struct {
	dir    string
	keep   int64
	age    time.Duration
	log    *slog.Logger
	wall   func() time.Time
	create func(path string) (file, error)

	failures atomic.Uint64

	mu     sync.Mutex // guards what follows
	files  []File     // segments, and tails that are left of former runs or could not be made one
	warned time.Time
}

// file is what a log needs of a file.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
	io.Seeker
}

func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
}

// open finds what is there. What was being written is of no use.
func (k *keeper) open() error {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), segmentExt+partExt) {
			_ = os.Remove(filepath.Join(k.dir, e.Name()))
		}
	}
	k.files, err = Files(k.dir)
	return err
}

// orphans is the tails that should be segments.
func (k *keeper) orphans() (all []File) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.files {
		if f.Tail {
			all = append(all, f)
		}
	}
	return all
}

// replace notes that old is gone and that f is there; an empty path is none.
func (k *keeper) replace(old string, f File) {
	k.mu.Lock()
	defer k.mu.Unlock()
	files := k.files[:0]
	for _, have := range k.files {
		if have.Path != old && have.Path != f.Path {
			files = append(files, have)
		}
	}
	k.files = files
	if f.Path == "" {
		return
	}
	at := len(k.files)
	for at > 0 && k.files[at-1].First.After(f.First) {
		at--
	}
	k.files = append(k.files, File{})
	copy(k.files[at+1:], k.files[at:])
	k.files[at] = f
}

// held is how many files there are, and their octets.
func (k *keeper) held() (files int, octets int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.files {
		octets += f.Size
	}
	return len(k.files), octets
}

// retain removes the oldest files while there is more than is to be kept, or older;
// growing is the octets of the tail that is being written.
func (k *keeper) retain(growing int64) {
	for {
		_, octets := k.held()
		over := k.keep > 0 && octets+growing > k.keep
		if !over && !k.tooOld() {
			return
		}
		if !k.removeOldest() {
			return
		}
	}
}

// tooOld tells whether all of the oldest file is over its age: what came after it
// begins where it ends.
func (k *keeper) tooOld() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.age == 0 || len(k.files) == 0 {
		return false
	}
	end := k.files[0].First.Add(segmentAge)
	if len(k.files) > 1 && k.files[1].First.Before(end) {
		end = k.files[1].First
	}
	return end.Before(k.wall().Add(-k.age))
}

// removeOldest removes the oldest file. It is false where there is none.
func (k *keeper) removeOldest() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.files) == 0 {
		return false
	}
	f := k.files[0]
	k.files = k.files[1:]
	if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.log.Warn("removing an old file of the query log failed", "error", err)
	}
	return true
}

// large tells whether a tail is so large that little else could be kept beside it.
func (k *keeper) large(tail int64) bool { return k.keep > 0 && tail > k.keep/4 }

// room does what writes. While the disk is full the oldest file goes, and it is tried
// again: undo makes good what was written of it.
func (k *keeper) room(write func() error, undo func()) error {
	for {
		err := write()
		if err == nil {
			return nil
		}
		k.failures.Add(1)
		undo()
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			return err
		}
		k.warn("the disk is full: the oldest files of the query log go", err)
		if !k.removeOldest() {
			return err
		}
	}
}

const warnEvery = time.Hour

// warn logs a failure, once in an hour.
func (k *keeper) warn(what string, err error) {
	k.mu.Lock()
	now := k.wall()
	silent := !k.warned.IsZero() && now.Sub(k.warned) < warnEvery && !now.Before(k.warned)
	if !silent {
		k.warned = now
	}
	k.mu.Unlock()
	if !silent {
		k.log.Warn(what, "dir", k.dir, "error", err)
	}
}

// unused is a path for a file whose first row came then.
func (k *keeper) unused(first int64, ext string) string {
	for {
		stem := filepath.Join(k.dir, fileName(first, ""))
		_, tail := os.Lstat(stem + tailExt)
		_, segment := os.Lstat(stem + segmentExt)
		if errors.Is(tail, fs.ErrNotExist) && errors.Is(segment, fs.ErrNotExist) {
			return stem + ext
		}
		first++
	}
}

// writeSegment writes rows as the segment at path, in place of what is there, if
// anything. It is there whole or not at all.
func (k *keeper) writeSegment(enc *encoder, path string, t *table) (size int64, err error) {
	part := path + partExt
	write := func() error {
		_ = os.Remove(part)
		f, err := k.create(part)
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(f, 1<<18)
		if size, err = enc.write(w, t); err == nil {
			err = w.Flush()
		}
		if err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return os.Rename(part, path)
	}
	if err := k.room(write, func() { _ = os.Remove(part) }); err != nil {
		return 0, fmt.Errorf("writing segment %s: %w", path, err)
	}
	return size, durable.SyncFolder(k.dir)
}
