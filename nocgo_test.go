//go:build !cgo

package main

// usesCgo tells whether C code is linked in, as the race detector needs.
func usesCgo() bool { return false }
