package qlog

import (
	"errors"
	"io"
	"os"
)

// tailFile is the tail that is being written.
type tailFile struct {
	keeper *keeper
	path   string
	out    file // nil before the first block
	size   int64
	mark   mark // what of the table is in it
	block  []byte
}

// write appends what t has behind the mark.
func (f *tailFile) write(t *table) error {
	if f.path == "" {
		f.path = f.keeper.unused(t.rows[0].time, tailExt)
	}
	f.block = f.block[:0]
	if f.size == 0 {
		f.block = append(f.block, tailHeader()...)
	}
	f.block = t.appendBlock(f.block, f.mark)
	err := f.keeper.room(func() error { return f.put(f.block) }, f.restore)
	if err == nil {
		f.size += int64(len(f.block))
		f.mark = t.mark()
	}
	return err
}

func (f *tailFile) put(b []byte) (err error) {
	if f.out == nil {
		if f.out, err = f.keeper.create(f.path); err != nil {
			f.out = nil
			return err
		}
	}
	_, err = f.out.Write(b)
	return err
}

// restore makes the file end where it was good.
func (f *tailFile) restore() {
	if f.out == nil {
		return
	}
	err := f.out.Truncate(f.size)
	if err == nil {
		_, err = f.out.Seek(f.size, io.SeekStart)
	}
	if err == nil && f.size > 0 {
		return
	}
	// Begin anew: nothing is in it, or nobody knows what.
	_ = f.out.Close()
	_ = os.Remove(f.path)
	*f = tailFile{keeper: f.keeper, block: f.block}
}

// leave closes the file and gives it up. Its path is empty where nothing is in it.
func (f *tailFile) leave(t *table) (left tail) {
	left = tail{path: f.path, size: f.size, first: t.rows[0].time}
	if f.out == nil {
		left.path = ""
	} else if err := f.out.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		f.keeper.warn("closing a tail of the query log failed", err)
	}
	*f = tailFile{keeper: f.keeper, block: f.block}
	return left
}

// tail is a tail that is not written to any more.
type tail struct {
	path  string
	size  int64
	first int64 // microseconds
}
