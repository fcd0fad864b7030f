package stats

import "sync"

// How far back a series goes: each second of an hour, each minute of a week.
const (
	SecondsKept = 3600
	MinutesKept = 7 * 24 * 60
)

// Series is what some counters grew by in each second of the last hour, and in each
// minute of the last week. It takes a fixed amount of memory. Its methods may be
// called by any goroutine.
type Series struct {
	mu      sync.Mutex // guards what follows
	last    []uint64   // what the counters were
	seconds span
	minutes span
}

// span is rows of equal length in time, around a ring.
type span struct {
	step   int64 // seconds
	newest int64 // row number, counted since 1970
	rows   [][]uint64
	filled []int64 // by place: which row it is, plus one
}

// Point is one row of a series.
type Point struct {
	Time   int64    // seconds since 1970 UTC, of its beginning
	Values []uint64 // what each counter grew by
}

// NewSeries makes a series of counters that are these now.
func NewSeries(now []uint64) *Series {
	s := &Series{last: append([]uint64(nil), now...)}
	s.seconds.make(1, SecondsKept, len(now))
	s.minutes.make(60, MinutesKept, len(now))
	return s
}

func (p *span) make(step int64, rows, width int) {
	p.step = step
	p.rows, p.filled = make([][]uint64, rows), make([]int64, rows)
	all := make([]uint64, rows*width)
	for i := range p.rows {
		p.rows[i] = all[i*width : (i+1)*width : (i+1)*width]
	}
}

// Add notes what the counters are at that time, in seconds since 1970. A counter that
// went back began anew.
func (s *Series) Add(at int64, now []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, n := range now {
		grown := n - s.last[i]
		if n < s.last[i] {
			grown = n
		}
		s.last[i] = n
		s.seconds.add(at, i, grown)
		s.minutes.add(at, i, grown)
	}
}

func (p *span) add(at int64, column int, n uint64) {
	row := at / p.step
	i := int(row % int64(len(p.rows)))
	if p.filled[i] != row+1 {
		clear(p.rows[i])
		p.filled[i] = row + 1
	}
	p.newest = max(p.newest, row)
	p.rows[i][column] += n
}

// Points is the rows from one time on and before another, in seconds since 1970, in
// steps of a second or, with minutes, of a minute. What was not noted is left out.
func (s *Series) Points(from, until int64, minutes bool) (all []Point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.seconds
	if minutes {
		p = &s.minutes
	}
	first := max(from/p.step, p.newest-int64(len(p.rows))+1)
	for row := first; row <= p.newest && row*p.step < until; row++ {
		i := int(row % int64(len(p.rows)))
		if row >= 0 && p.filled[i] == row+1 && row*p.step >= from {
			all = append(all, Point{row * p.step, append([]uint64(nil), p.rows[i]...)})
		}
	}
	return all
}
