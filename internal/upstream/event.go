package upstream

import "time"

// event is something to be looked at when it is due. It is never taken back: it
// carries what it needs to see that it has become pointless.
type event struct {
	due    time.Duration
	last   time.Duration // when a hedgeDue is due as tryDue
	line   line
	x      *Exchange
	gen    uint32 // of x
	serial uint32 // of the try in the line's table
	id     uint16 // of the try
	try    uint8  // of x
	kind   eventKind
}

// eventKind says what is to be looked at.
type eventKind uint8

const (
	hedgeDue    eventKind = iota // the try is slower than usual
	tryDue                       // the try has timed out
	tryLost                      // the socket under the try was closed
	tryBroken                    // the socket under the try failed
	retryDue                     // servers that could not be reached may be asked again
	exchangeDue                  // the time of the whole exchange is over
	lineDue                      // the socket or connection looks after itself
)
