//go:build unix && !race

package cache

import "golang.org/x/sys/unix"

// reserve asks the system for size octets, zero, outside the heap: nothing is
// scanned or moved, and what is never written to costs nothing. Builds with the
// race detector use the heap, which it watches.
func reserve(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// release gives back what reserve gave.
func release(mem []byte) error { return unix.Munmap(mem) }
