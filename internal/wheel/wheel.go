// Package wheel is a timing wheel: it keeps what is due at some time, cheaply, and
// gives it back when that time has come. Nothing can be taken off it before; what is
// kept has to tell by itself whether it still matters.
package wheel

import (
	"sync"
	"time"
)

// Sizes of a wheel.
const (
	Step      = 10 * time.Millisecond
	slots     = 512 // events further off go round more than once
	shards    = 8
	chunkSize = 32
)

// List is a piece of a slot's list.
type List[E any] struct {
	next   *List[E]
	n      int
	events [chunkSize]E
}

// Each calls do for every event of a list, in no order.
func (c *List[E]) Each(do func(e *E)) {
	for ; c != nil; c = c.next {
		for i := range c.events[:c.n] {
			do(&c.events[i])
		}
	}
}

// Wheel is a timing wheel. Lists are used again, so that nothing is allocated once it
// has grown. The zero value is empty; any goroutine may use it.
type Wheel[E any] struct{ shards [shards]Shard[E] }

// Shard is a part of a wheel.
type Shard[E any] struct {
	mu    sync.Mutex // guards what follows
	done  int64      // the last step that was looked at
	count int        // events on the wheel
	slots [slots]*List[E]
	free  *List[E]
}

// Add puts a copy of e on the wheel. It comes back in the step after due or, where
// that has passed, in the next one. spread is any number that differs between events.
func (w *Wheel[E]) Add(e *E, due time.Duration, spread uint16) {
	s := &w.shards[spread%shards]
	s.mu.Lock()
	step := max(int64((due+Step-1)/Step), s.done+1)
	head := &s.slots[step%slots]
	if *head == nil || (*head).n == chunkSize {
		c := s.free
		if c == nil {
			c = new(List[E])
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

// Take is the next list of events that may be due, nil where there is none. What
// is not due must be added again. The list is given back with Release.
func (s *Shard[E]) Take(now time.Duration) *List[E] {
	step := int64(now / Step)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = max(s.done, step-slots)
	for s.done < step {
		s.done++
		if c := s.slots[s.done%slots]; c != nil {
			s.slots[s.done%slots] = nil
			s.uncount(c)
			return c
		}
	}
	return nil
}

// TakeAny is some list, due or not.
func (s *Shard[E]) TakeAny() *List[E] {
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

func (s *Shard[E]) uncount(c *List[E]) {
	for ; c != nil; c = c.next {
		s.count -= c.n
	}
}

// Release gives a list back. Its events must not point anywhere any more.
func (s *Shard[E]) Release(c *List[E]) {
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

// Shards is the parts of the wheel.
func (w *Wheel[E]) Shards() *[shards]Shard[E] { return &w.shards }

// Empty tells whether nothing is on the wheel.
func (w *Wheel[E]) Empty() bool {
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

// Each calls do for everything on the wheel, in no order; do must not call the wheel.
func (w *Wheel[E]) Each(do func(e *E)) {
	for i := range w.shards {
		s := &w.shards[i]
		s.mu.Lock()
		for _, c := range s.slots {
			c.Each(do)
		}
		s.mu.Unlock()
	}
}
