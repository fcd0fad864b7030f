//go:build unix

package cache

import "os"

// syncFolder makes sure that a file renamed in a folder is found after a power
// cut.
func syncFolder(path string) error {
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
