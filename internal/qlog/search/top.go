package search

import (
	"context"

	"github.com/parquet-go/parquet-go"
)

// Value is a value of a column, and how often it occurs.
type Value struct {
	Value string  `json:"value"`
	Count uint64  `json:"count"`
	Share float64 `json:"share"` // of all rows that were counted, from 0 to 1
}

// Table is the most frequent values of a column.
type Table struct {
	Values   []Value // the most frequent first
	Rows     uint64  // all that were counted
	Distinct int     // values that occur
}

// Top counts how often each value of a column occurs in the rows that a filter
// means, and gives the n most frequent; 0 is all. The filter's order, limit and
// cursor do not count. Columns that it knows are those of Columns; a column that is
// not known is a *FilterError, other errors and skipped files are as with Search.
func Top(ctx context.Context, dir string, f Filter, column string, n int) (Table, Report, error) {
	col, of, err := counted(column)
	if err != nil {
		return Table{}, Report{}, err
	}
	f.Limit, f.After = 0, Cursor{}
	r, err := begin(ctx, dir, &f)
	if err != nil {
		return Table{}, Report{}, err
	}
	t := newTally(of)
	r.parallel(func(p *part) {
		if p.tail {
			t.addBlock(p.block, col)
			return
		}
		_ = r.inSegment(p, func(s *segment) error { return s.tally(r.f, col, t) })
	})
	return t.table(n), r.report(Cursor{}), ctx.Err()
}

func (t *tally) addBlock(b *block, col int) {
	v := &b.cols[col]
	if columns[col].text == nil {
		counts := map[uint32]uint64{}
		for _, n := range v.ids {
			counts[n]++
		}
		t.addNumbers(counts)
		return
	}
	counts := make([]uint64, v.len())
	for _, id := range v.ids {
		counts[id]++
	}
	t.add(&v.texts, counts)
}

// tally counts the values of a column in the rows that are meant.
func (s *segment) tally(f *Filter, col int, t *tally) error {
	first, last := s.span()
	low, high := f.span()
	for _, g := range s.groups() {
		sel, err := g.match(f, low <= first && last <= high)
		if err == nil && sel.len() > 0 {
			err = g.tally(&sel, col, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g group) tally(s *selection, col int, t *tally) error {
	if columns[col].text == nil {
		return g.tallyNumbers(s, col, t)
	}
	r, err := g.open(columns[col].name, parquet.ByteArray)
	if err != nil {
		return err
	}
	defer r.close()
	counts := make([]uint64, r.dict.len())
	err = walk(s, r.from, func(ids []uint32) {
		if n := r.dict.len(); n > len(counts) { // pages may bring values that are not in the dictionary
			counts = append(counts, make([]uint64, n-len(counts))...)
		}
		for _, id := range ids {
			counts[id]++
		}
	})
	if err == nil {
		t.add(&r.dict, counts)
	}
	return err
}

func (g group) tallyNumbers(s *selection, col int, t *tally) error {
	r, err := g.open(columns[col].name, parquet.Int32)
	if err != nil {
		return err
	}
	defer r.close()
	counts := map[uint32]uint64{}
	err = walk(s, r.from, func(page []uint32) {
		for _, n := range page {
			counts[n]++
		}
	})
	if err == nil {
		t.addNumbers(counts)
	}
	return err
}
