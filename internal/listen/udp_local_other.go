//go:build !linux && !darwin && !dragonfly && !freebsd && !openbsd

package listen

// platformOptions does nothing: here one socket has one port, and the kernel
// chooses the address that a response leaves from. Listen on each address.
func platformOptions(string, uintptr) error { return nil }

// answerFrom is the control message of a response.
func answerFrom([]byte) []byte { return nil }

// SharesPort tells whether several sockets can have one port, as several workers
// need.
const SharesPort = false
