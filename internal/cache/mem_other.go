//go:build !unix || race

package cache

import "unsafe"

// reserve allocates size octets, zero, aligned and without pointers.
func reserve(size int) ([]byte, error) {
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size), nil
}

// release leaves the memory to the garbage collector.
func release([]byte) error { return nil }
