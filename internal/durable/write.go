package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	errNotRegular = errors.New("not a regular file")
	errDangling   = errors.New("a symbolic link that leads nowhere")
)

// WriteFile replaces the file at path with text. Whenever the machine stops, the
// file is the old one or the new one, whole; when WriteFile has returned nil it is
// the new one. Of an error the file is the old one, but for that of syncing the
// folder, behind which it may be either.
//
// The new file has the mode and the owner of the old one, or mode where there was
// none; where the owner cannot be kept, that is an error. A symbolic link stays, and
// what it leads to is replaced. What is no regular file is refused.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
	return writer{}.write(path, text, mode)
}

// writer is WriteFile with a place to stop at.
type writer struct {
	at func(step string) error // is told of each step before it; may be nil
}

func (w writer) step(name string) error {
	if w.at == nil {
		return nil
	}
	return w.at(name)
}

func (w writer) write(path string, text []byte, mode fs.FileMode) (err error) {
	path, old, err := target(path)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", path, err)
		}
	}()
	if err := w.step("create"); err != nil {
		return err
	}
	folder, base := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Join(folder, "."), prefix(base)+"*"+suffix)
	if err != nil {
		return err
	}
	if err := w.fill(f, text, old, mode); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := w.step("rename"); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := w.step("folder"); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// fill makes f what the new file is to be, on the disk, and closes it.
func (w writer) fill(f *os.File, text []byte, old fs.FileInfo, mode fs.FileMode) (err error) {
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if err := w.step("own"); err != nil {
		return err
	}
	if old != nil {
		mode = old.Mode()
		if err := own(f, old); err != nil {
			return fmt.Errorf("keeping the owner: %w", err)
		}
	}
	if err := f.Chmod(mode.Perm()); err != nil {
		return err
	}
	if err := w.step("write"); err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := w.step("sync"); err != nil {
		return err
	}
	return f.Sync()
}

// target is the file that is meant by path, and what is there; old is nil where
// nothing is.
func target(path string) (real string, old fs.FileInfo, err error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return path, nil, nil
	}
	real, err = filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, errDangling
	}
	if err != nil {
		return path, nil, err
	}
	if old, err = os.Lstat(real); err != nil {
		return path, nil, err
	}
	if !old.Mode().IsRegular() {
		return path, nil, errNotRegular
	}
	return real, old, nil
}

// suffix ends the names of files that are being written.
const suffix = ".tmp"

// prefix begins the name of a file that is being written to become base.
func prefix(base string) string { return "." + base + "." }

// Clean removes what writers of the file at path left behind that were stopped
// before their end. None may be writing it.
func Clean(path string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	folder := filepath.Dir(path)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("cleaning up: %w", err)
	}
	var errs []error
	for _, e := range entries {
		middle, ok := strings.CutPrefix(e.Name(), prefix(filepath.Base(path)))
		random, ended := strings.CutSuffix(middle, suffix)
		if ok && ended && random != "" && strings.Trim(random, "0123456789") == "" && e.Type().IsRegular() {
			errs = append(errs, os.Remove(filepath.Join(folder, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// Remove removes the file at path, so that it is gone after a power cut. That it is
// gone already is no error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}
