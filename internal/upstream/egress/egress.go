// Package egress is how queries over UDP leave: from ports and with IDs that nobody
// can guess, by the device and with the mark that are wanted, and in as few messages
// to the kernel as their lengths allow. It does not read; internal/upstream calls it.
package egress

import "errors"

// ErrFull is the error of a socket whose buffers are full; it is as good as before.
var ErrFull = errors.New("no room to send")

// Way says how packets are to leave. The zero value leaves it to the system.
type Way struct {
	Mark   int    // SO_MARK; 0 is none
	Device string // SO_BINDTODEVICE; empty is any
}
