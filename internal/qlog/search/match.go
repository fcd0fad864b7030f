package search

import (
	"math"
	"slices"
	"sort"

	"github.com/parquet-go/parquet-go"
)

// selection is the rows of a group that are still meant: those from lo to hi, and
// of these the listed ones where list is not nil. Rows are in ascending order.
type selection struct {
	lo, hi int
	list   []int32
	listed bool
}

func (s *selection) len() int {
	if s.listed {
		return len(s.list)
	}
	return s.hi - s.lo
}

// pages walks over the selected rows, a page at a time: page gives the values from a
// row to the end of its page, of which do gets those that may be selected, the number
// of their first row, and which rows are: nil is all of them.
func pages[T any](s *selection, page func(row int) ([]T, error), do func(first int, values []T, listed []int32)) error {
	if !s.listed {
		for at := s.lo; at < s.hi; {
			values, err := page(at)
			if err != nil {
				return err
			}
			values = values[:min(len(values), s.hi-at)]
			do(at, values, nil)
			at += len(values)
		}
		return nil
	}
	for i := 0; i < len(s.list); {
		first := int(s.list[i])
		values, err := page(first)
		if err != nil {
			return err
		}
		end := i + sort.Search(len(s.list)-i, func(k int) bool { return int(s.list[i+k]) >= first+len(values) })
		do(first, values, s.list[i:end])
		i = end
	}
	return nil
}

// walk gives the values of the selected rows, a page at a time.
func walk[T any](s *selection, page func(row int) ([]T, error), do func(values []T)) error {
	var few []T
	return pages(s, page, func(first int, values []T, listed []int32) {
		if listed == nil {
			do(values)
			return
		}
		few = few[:0]
		for _, row := range listed {
			few = append(few, values[int(row)-first])
		}
		do(few)
	})
}

// keep leaves the rows whose value is ok.
func keep[T any](s *selection, page func(row int) ([]T, error), ok func(T) bool) error {
	var left []int32
	if s.listed {
		left = s.list[:0]
	}
	err := pages(s, page, func(first int, values []T, listed []int32) {
		if listed == nil {
			left = keepAll(left, first, values, ok)
			return
		}
		for _, row := range listed {
			if ok(values[int(row)-first]) {
				left = append(left, row)
			}
		}
	})
	s.list, s.listed = left, true
	if n := len(left); n > 0 && int(left[n-1]-left[0]) == n-1 { // a run is cheaper without its list
		s.lo, s.hi, s.list, s.listed = int(left[0]), int(left[n-1])+1, nil, false
	}
	return err
}

// keepAll appends the rows whose value is ok; the first value is that of row first.
func keepAll[T any](left []int32, first int, values []T, ok func(T) bool) []int32 {
	for i, v := range values {
		if ok(v) {
			left = append(left, int32(first+i))
		}
	}
	return left
}

// pending is a condition that has still to be asked row by row.
type pending struct {
	test *test
	r    *reader
	ok   []bool // by number in the dictionary; nil of numbers
}

// match finds the rows of a group that are meant. inside says that all of its
// times are within the bounds of the filter.
func (g group) match(f *Filter, inside bool) (selection, error) {
	s := selection{hi: g.rows}
	asks, possible, err := g.askAll(f)
	defer func() {
		for _, a := range asks {
			a.r.close()
		}
	}()
	if err != nil || !possible {
		return selection{}, err
	}
	if !inside {
		if err := g.keepSpan(f, &s); err != nil {
			return s, err
		}
	}
	for i := 0; i < len(asks) && s.len() > 0 && err == nil; i++ {
		err = asks[i].narrow(&s)
	}
	return s, err
}

// askAll looks all conditions up in their dictionaries. It is not possible that a row
// is meant where one has no value that will do. The caller closes the readers.
func (g group) askAll(f *Filter) (asks []pending, possible bool, err error) {
	for _, t := range g.cheapFirst(f.tests) {
		a, err := g.ask(t)
		if err != nil {
			return asks, false, err
		}
		asks = append(asks, a)
		if a.r.whole && a.ok != nil && !slices.Contains(a.ok, true) {
			return asks, false, nil
		}
	}
	return asks, true, nil
}

// cheapFirst orders conditions by the size of their columns: where a small one
// excludes the group, the large ones are not read.
func (g group) cheapFirst(tests []test) []*test {
	all := make([]*test, len(tests))
	for i := range tests {
		all[i] = &tests[i]
	}
	size := func(t *test) int64 {
		c := g.seg.p.Root().Column(columns[t.col].name)
		meta := g.seg.p.Metadata().RowGroups[g.at].Columns
		if c == nil || !c.Leaf() || c.Index() >= len(meta) {
			return 0
		}
		return meta[c.Index()].MetaData.TotalCompressedSize
	}
	slices.SortStableFunc(all, func(a, b *test) int { return int(size(a) - size(b)) })
	return all
}

// ask looks the condition up in the dictionary of its column.
func (g group) ask(t *test) (pending, error) {
	if t.number != nil {
		r, err := g.open(columns[t.col].name, parquet.Int32)
		return pending{test: t, r: r}, err
	}
	r, err := g.open(columns[t.col].name, parquet.ByteArray)
	if err != nil {
		return pending{}, err
	}
	a := pending{test: t, r: r, ok: []bool{}}
	if t.accept == nil && r.whole {
		a.ok = make([]bool, r.dict.len())
		for _, want := range t.exact {
			r.dict.find(want, a.ok)
		}
		return a, nil
	}
	a.extend()
	return a, nil
}

// extend asks for the values that have come to the dictionary.
func (a *pending) extend() {
	for len(a.ok) < a.r.dict.len() {
		a.ok = append(a.ok, a.test.text(a.r.dict.at(uint32(len(a.ok)))))
	}
}

// narrow leaves the rows that the condition holds for.
func (a *pending) narrow(s *selection) error {
	if a.test.number != nil {
		return keep(s, a.r.from, a.test.number)
	}
	if a.r.whole && !slices.Contains(a.ok, false) {
		return nil
	}
	if !a.r.whole {
		page := func(row int) ([]uint32, error) {
			ids, err := a.r.from(row)
			a.extend()
			return ids, err
		}
		return keep(s, page, func(id uint32) bool { return a.ok[id] })
	}
	return keep(s, a.r.from, func(id uint32) bool { return a.ok[id] })
}

// keepSpan leaves the rows between the bounds of the filter.
func (g group) keepSpan(f *Filter, s *selection) error {
	first, last := f.span()
	if first == math.MinInt64 && last == math.MaxInt64 {
		return nil
	}
	r, err := g.open("time", parquet.Int64)
	if err != nil {
		return err
	}
	defer r.close()
	return keep(s, r.timesFrom, func(t int64) bool { return first <= t && t <= last })
}
