package limit

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestShed(t *testing.T) {
	for _, c := range []struct{ limit, unknown, known int }{
		{-1, 0, 0}, {0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 3, 4}, {5, 4, 5}, {7, 6, 7}, {8, 6, 8}, {100, 75, 100}, {16384, 12288, 16384},
	} {
		s := NewShed(c.limit)
		fill := func(known bool) {
			for range c.limit + 5 {
				s.Enter(known)
			}
		}
		if fill(false); s.Len() != c.unknown {
			t.Errorf("limit %d: %d unknown got in, want %d", c.limit, s.Len(), c.unknown)
		}
		if fill(true); s.Len() != c.known {
			t.Errorf("limit %d: %d in all, want %d", c.limit, s.Len(), c.known)
		}
		tried := max(c.limit+5, 0)
		known, unknown := s.Counts()
		if int(known) != tried-(c.known-c.unknown) || int(unknown) != tried-c.unknown {
			t.Errorf("limit %d: shed %d known, %d unknown", c.limit, known, unknown)
		}
		for range c.known {
			s.Leave()
		}
		if got := s.Enter(false); s.Len() != min(c.unknown, 1) || got != (c.unknown > 0) {
			t.Errorf("limit %d: after all left, %d are in", c.limit, s.Len())
		}
	}
}

// Known clients that hold more than three quarters keep others out.
func TestShedKnownHoldTheRoom(t *testing.T) {
	s := NewShed(4)
	for range 3 {
		s.Enter(true)
	}
	if s.Enter(false) || !s.Enter(true) || s.Enter(true) {
		t.Error("the last quarter is for known clients, and ends")
	}
}

func TestShedLeaveTooOften(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Leave without Enter went well")
		}
	}()
	NewShed(4).Leave()
}

func TestShedAtOnce(t *testing.T) {
	const workers, times = 6, 20_000
	for _, limit := range []int{1, 2, 4} {
		s := NewShed(limit)
		var in, entered, shed atomic.Int64
		var all sync.WaitGroup
		for w := range workers {
			known := w%2 == 0
			all.Go(func() {
				for range times {
					if !s.Enter(known) {
						shed.Add(1)
						continue
					}
					entered.Add(1)
					if n := in.Add(1); n > int64(limit) {
						t.Errorf("%d of %d places are taken", n, limit)
					}
					in.Add(-1)
					s.Leave()
				}
			})
		}
		all.Wait()
		known, unknown := s.Counts()
		if s.Len() != 0 || int64(known+unknown) != shed.Load() || entered.Load()+shed.Load() != workers*times {
			t.Errorf("limit %d: %d are in; %d + %d shed, want %d; %d entered", limit, s.Len(), known, unknown, shed.Load(), entered.Load())
		}
	}
}
