package limit

import "sync/atomic"

// Shed is the budget of parked requests: those that wait for an upstream or for
// recursion. Beyond it the newest are shed, those of unknown clients first. Many
// may ask it at once.
type Shed struct {
	limit, unknown int64 // places for known clients, and for the others

	_     [64]byte // what every request writes, on a line of its own
	taken atomic.Int64
	_     [64]byte

	shedKnown, shedUnknown atomic.Uint64
}

// NewShed makes a budget of limit places; below 1 nothing may be parked. The
// last quarter, rounded down, is for known clients: where it has begun, others are
// shed.
func NewShed(limit int) *Shed {
	n := int64(max(limit, 0))
	return &Shed{limit: n, unknown: (n*3 + 3) / 4}
}

// Enter takes a place for a request and says whether there was one; then Leave
// must follow once. A request that got none is counted as shed.
func (s *Shed) Enter(known bool) bool {
	limit, shed := s.unknown, &s.shedUnknown
	if known {
		limit, shed = s.limit, &s.shedKnown
	}
	for {
		n := s.taken.Load()
		if n >= limit {
			shed.Add(1)
			return false
		}
		if s.taken.CompareAndSwap(n, n+1) { // else another got in or out: there is progress
			return true
		}
	}
}

// Leave gives a place back. It panics when none is taken.
func (s *Shed) Leave() {
	if s.taken.Add(-1) < 0 {
		panic("limit: Leave without Enter")
	}
}

// Len is how many places are taken.
func (s *Shed) Len() int { return int(s.taken.Load()) }

// Counts are how many requests were shed since the start, of known clients and
// of others.
func (s *Shed) Counts() (known, unknown uint64) { return s.shedKnown.Load(), s.shedUnknown.Load() }
