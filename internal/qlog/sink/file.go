package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// file is an outlet to a file that is replaced by a new one when it is full.
type file struct {
	path string
	Files

	// header and footer make a file whole. With a header a file is never continued.
	header, footer []byte

	f    *os.File
	size int64
}

func (o *file) send(_ context.Context, b *batch) (items int, err error) {
	rest := b.rest()
	if err := o.ready(len(rest)); err != nil {
		return 0, err
	}
	n, err := o.f.Write(rest)
	if err == nil {
		o.size += int64(n)
		return b.left(), nil
	}
	// Half an item would spoil the file: it is taken back.
	if items = b.within(n); items > 0 {
		o.size += int64(b.ends[b.done+items-1] - b.start())
	}
	err = errors.Join(err, o.f.Truncate(o.size))
	return items, fmt.Errorf("writing: %w", err)
}

// ready makes o.f a file with room for n octets, if it can have that.
func (o *file) ready(n int) error {
	if o.f == nil {
		if err := o.open(); err != nil {
			return err
		}
	}
	begun := o.size > int64(len(o.header))
	if begun && o.size+int64(n+len(o.footer)) > o.Rotate {
		if err := o.finish(); err != nil {
			return err
		}
		return o.open()
	}
	return nil
}

// open opens the file. A full one, or one that cannot be continued, is put aside.
func (o *file) open() error {
	info, err := os.Stat(o.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("opening: %w", err)
	case info.Mode().IsRegular() && info.Size() > 0 && (o.header != nil || info.Size() >= o.Rotate):
		if err := o.shift(); err != nil {
			return err
		}
	}
	// Rows tell what people do: others have no business with them.
	f, err := os.OpenFile(o.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	if o.size, err = o.begin(f); err != nil {
		return fmt.Errorf("opening: %w", errors.Join(err, f.Close()))
	}
	o.f = f
	return nil
}

// begin writes what comes before the first item: the header, or the end of a line
// that a crash has cut off. It returns the file's size then.
func (o *file) begin(f *os.File) (size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	text, last := o.header, []byte{'\n'}
	if size = info.Size(); size > 0 {
		text = nil
		if _, err = f.ReadAt(last, size-1); err == nil && last[0] != '\n' {
			text = []byte{'\n'}
		}
	}
	if err == nil && len(text) > 0 {
		_, err = f.Write(text)
	}
	return size + int64(len(text)), err
}

// shift makes room for a new file: the file becomes FILE.1, FILE.1 becomes FILE.2, and
// the oldest is removed.
func (o *file) shift() error {
	old := func(n int) string { return o.path + "." + strconv.Itoa(n) }
	if o.Keep == 0 {
		return os.Remove(o.path)
	}
	for n := o.Keep - 1; n > 0; n-- {
		if err := os.Rename(old(n), old(n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotating: %w", err)
		}
	}
	if err := os.Rename(o.path, old(1)); err != nil {
		return fmt.Errorf("rotating: %w", err)
	}
	return nil
}

// finish closes a full file and puts it aside.
func (o *file) finish() error {
	if err := o.close(context.Background()); err != nil {
		return err
	}
	return o.shift()
}

func (o *file) close(context.Context) error {
	if o.f == nil {
		return nil
	}
	_, err := o.f.Write(o.footer)
	err = errors.Join(err, o.f.Close())
	o.f = nil
	if err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	return nil
}

// writer is an outlet to a writer that is not ours to close.
type writer struct{ w io.Writer }

func (o writer) send(_ context.Context, b *batch) (items int, err error) {
	n, err := o.w.Write(b.rest())
	return b.within(n), err
}

func (o writer) close(context.Context) error { return nil }
