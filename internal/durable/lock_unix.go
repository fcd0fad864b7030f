//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

// Lock locks f against every other opening of it, until it is closed.
func Lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
