//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sink

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks f against every other opening of it, until it is closed.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
