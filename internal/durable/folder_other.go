//go:build !unix

package durable

import (
	"io/fs"
	"os"
)

// SyncFolder does nothing: a folder cannot be synced here.
func SyncFolder(string) error { return nil }

// own does nothing: owners are kept by what the folder says.
func own(*os.File, fs.FileInfo) error { return nil }

// OwnAs does nothing: owners are kept by what the folder says.
func OwnAs(string, string) error { return nil }
