//go:build unix

// Package durable is files that are there after a power cut, whole or as they were
// before. It knows nothing of what is in them; caches, logs, stores and histories call
// it.
package durable

import (
	"io/fs"
	"os"
	"syscall"
)

// SyncFolder makes sure that a file renamed in a folder is found after a power
// cut.
func SyncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// own gives f the owner and the group of another file.
func own(f *os.File, like fs.FileInfo) error {
	have, err := f.Stat()
	if err != nil {
		return err
	}
	is, ok := have.Sys().(*syscall.Stat_t)
	want, known := like.Sys().(*syscall.Stat_t)
	if !ok || !known || is.Uid == want.Uid && is.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}

// OwnAs gives the file at path the owner and the group of another, where it has
// others.
func OwnAs(path, like string) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = own(f, info)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
