//go:build unix

package store

import (
	"fmt"
	"os"
)

// syncFolder puts a new file's entry in its folder on disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("opening its folder: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing its folder: %w", err)
	}
	return nil
}
