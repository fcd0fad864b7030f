//go:build !unix || race

package cache

import "unsafe"

// reserve allocates size octets, zero, aligned and without pointers. There is a word
// more, so that a pointer behind the last entry is still one into them.
func reserve(size int) ([]byte, error) {
	words := make([]uint64, (size+7)/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size), nil
}

// release leaves the memory to the garbage collector.
func release([]byte) error { return nil }
