//go:build unix

// Package durable is files that are there after a power cut, whole or as they were
// before. It knows nothing of what is in them; caches, logs, stores and histories call
// it.
package durable

import "os"

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
