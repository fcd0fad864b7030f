package upstream

import (
	"sync"
	"time"
)

// Sizes of the wheel.
const (
	wheelStep   = 10 * time.Millisecond
	wheelSlots  = 512 // events further off go round more than once
	wheelShards = 8
	chunkSize   = 32
)

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

// chunk is a piece of a slot's list.
type chunk struct {
	next   *chunk
	n      int
	events [chunkSize]event
}

// each calls do for every event of a list, in no order.
func (c *chunk) each(do func(e *event)) {
	for ; c != nil; c = c.next {
		for i := range c.events[:c.n] {
			do(&c.events[i])
		}
	}
}

// wheel is the timing wheel of a group. Chunks are used again, so that nothing is
// allocated once it has grown.
type wheel struct{ shards [wheelShards]wheelShard }

type wheelShard struct {
	mu    sync.Mutex // guards what follows
	done  int64      // the last step that was looked at
	count int        // events on the wheel
	slots [wheelSlots]*chunk
	free  *chunk
}

// add puts e on the wheel. It comes back in the step after its time or, where
// that has passed, in the next one.
func (w *wheel) add(e *event) {
	s := &w.shards[(e.id^uint16(e.gen)>>1)%wheelShards]
	s.mu.Lock()
	step := max(int64((e.due+wheelStep-1)/wheelStep), s.done+1)
	head := &s.slots[step%wheelSlots]
	if *head == nil || (*head).n == chunkSize {
		c := s.free
		if c == nil {
			c = new(chunk)
		} else {
			s.free = c.next
		}
		c.next = *head
		*head = c
	}
	c := *head
	c.events[c.n] = *e
	c.n++
	s.count++
	s.mu.Unlock()
}

// take is the next list of events that may be due, nil where there is none. What
// is not due must be added again. The list is given back with release.
func (s *wheelShard) take(now time.Duration) *chunk {
	step := int64(now / wheelStep)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = max(s.done, step-wheelSlots)
	for s.done < step {
		s.done++
		if c := s.slots[s.done%wheelSlots]; c != nil {
			s.slots[s.done%wheelSlots] = nil
			s.uncount(c)
			return c
		}
	}
	return nil
}

// takeAny is some list, due or not.
func (s *wheelShard) takeAny() *chunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.slots {
		if c != nil {
			s.slots[i] = nil
			s.uncount(c)
			return c
		}
	}
	return nil
}

func (s *wheelShard) uncount(c *chunk) {
	for ; c != nil; c = c.next {
		s.count -= c.n
	}
}

// release gives a list back. Its events must not point anywhere any more.
func (s *wheelShard) release(c *chunk) {
	last := c
	for {
		clear(last.events[:last.n])
		last.n = 0
		if last.next == nil {
			break
		}
		last = last.next
	}
	s.mu.Lock()
	last.next = s.free
	s.free = c
	s.mu.Unlock()
}

// empty tells whether nothing is on the wheel.
func (w *wheel) empty() bool {
	for i := range w.shards {
		s := &w.shards[i]
		s.mu.Lock()
		n := s.count
		s.mu.Unlock()
		if n > 0 {
			return false
		}
	}
	return true
}
