package search

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/parquet-go/parquet-go"
)

// Bucket is how many rows there were in a stretch of time.
type Bucket struct {
	Time  int64  `json:"time"` // microseconds since 1970 UTC, of its start
	Count uint64 `json:"count"`
}

// maxBuckets bounds the memory of a plot.
const maxBuckets = 100_000

// Count counts the rows that a filter means in stretches of time of equal length,
// which start at multiples of the length since 1970 UTC. The first bucket is the
// first one with rows, the last the last one; those between are all there. A length
// under a microsecond and more than 100,000 buckets are errors; others are as with
// Search. The filter's order, limit and cursor do not count.
func Count(ctx context.Context, dir string, f Filter, length time.Duration) ([]Bucket, Report, error) {
	step := length.Microseconds()
	if step <= 0 {
		return nil, Report{}, fmt.Errorf("counting rows: a stretch of %s is too short", length)
	}
	f.Limit, f.After = 0, Cursor{}
	r, err := begin(ctx, dir, &f)
	if err != nil {
		return nil, Report{}, err
	}
	h := histogram{step: step, counts: map[int64]uint64{}}
	r.parallel(func(p *part) {
		if p.tail {
			h.add(func(count func([]int64)) { count(p.block.times) })
			return
		}
		_ = r.inSegment(p, func(s *segment) error { return s.histogram(r.f, &h) })
	})
	buckets, err := h.buckets()
	if err == nil {
		err = ctx.Err()
	}
	return buckets, r.report(Cursor{}), err
}

// histogram is counts by the number of the stretch since 1970.
type histogram struct {
	step int64

	mu     sync.Mutex // guards counts
	counts map[int64]uint64
}

// add counts the times that do hands over.
func (h *histogram) add(do func(count func(times []int64))) {
	own := map[int64]uint64{}
	run, n := int64(math.MinInt64), uint64(0) // times come nearly in order: few look-ups
	do(func(times []int64) {
		for _, t := range times {
			if k := floor(t, h.step); k != run {
				own[run] += n
				run, n = k, 0
			}
			n++
		}
	})
	own[run] += n
	h.mu.Lock()
	defer h.mu.Unlock()
	for k, n := range own {
		if n > 0 {
			h.counts[k] += n
		}
	}
}

func floor(t, step int64) int64 {
	k := t / step
	if t%step < 0 {
		k--
	}
	return k
}

// histogram counts the rows that are meant by their times.
func (s *segment) histogram(f *Filter, h *histogram) error {
	first, last := s.span()
	low, high := f.span()
	for _, g := range s.groups() {
		sel, err := g.match(f, low <= first && last <= high)
		if err == nil && sel.len() > 0 {
			err = g.histogram(&sel, h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g group) histogram(s *selection, h *histogram) error {
	r, err := g.open("time", parquet.Int64)
	if err != nil {
		return err
	}
	defer r.close()
	h.add(func(times func([]int64)) { err = walk(s, r.timesFrom, times) })
	return err
}

func (h *histogram) buckets() ([]Bucket, error) {
	if len(h.counts) == 0 {
		return nil, nil
	}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for k := range h.counts {
		first, last = min(first, k), max(last, k)
	}
	if last-first >= maxBuckets {
		return nil, fmt.Errorf("counting rows: %d stretches of time, at most %d are possible: take longer ones", last-first+1, maxBuckets)
	}
	all := make([]Bucket, 0, last-first+1)
	for k := first; k <= last; k++ {
		all = append(all, Bucket{k * h.step, h.counts[k]})
	}
	return all, nil
}
