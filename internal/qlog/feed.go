package qlog

import "sync/atomic"

// Feed is the rows of a log as they come.
type Feed struct {
	C       <-chan Row // closed with the log
	c       chan Row
	dropped atomic.Uint64
}

// Follow begins a feed that keeps up to that many rows for who is slow. It is to be
// ended with Leave.
func (l *Log) Follow(buffer int) *Feed {
	c := make(chan Row, buffer)
	f := &Feed{C: c, c: c}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feeds = append(l.feeds[:len(l.feeds):len(l.feeds)], f)
	return f
}

// Leave ends a feed. Rows may still come until it returns, and a few after that.
func (l *Log) Leave(f *Feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var left []*Feed
	for _, g := range l.feeds {
		if g != f {
			left = append(left, g)
		}
	}
	l.feeds = left
}

// Dropped is how many rows did not fit.
func (f *Feed) Dropped() uint64 { return f.dropped.Load() }

func (f *Feed) put(rows []Row) {
	for i := range rows {
		select {
		case f.c <- rows[i]:
		default:
			f.dropped.Add(uint64(len(rows) - i))
			return
		}
	}
}

// close ends the channel. The writer has ended before.
func (f *Feed) close() { close(f.c) }
