package search

import (
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// block is the rows of one file that are meant, in columns.
type block struct {
	times []int64
	order []int32 // rows by time, those of the same time as they stood
	cols  [numColumns]values
}

// values is one column: numbers, or places in the texts.
type values struct {
	ids []uint32
	texts
}

// row makes row i of the order. Its strings share the memory of the block.
func (b *block) row(i int, into *qlog.Row) {
	k := b.order[i]
	into.Time = b.times[k]
	for c := range columns {
		v := &b.cols[c]
		if get := columns[c].text; get != nil {
			*get(into) = v.at(v.ids[k])
		} else {
			columns[c].set(into, v.ids[k])
		}
	}
}

func (b *block) time(i int) int64 { return b.times[b.order[i]] }

// sort makes the order, by time.
func (b *block) sort() {
	b.order = make([]int32, len(b.times))
	for i := range b.order {
		b.order[i] = int32(i)
	}
	if !slices.IsSorted(b.times) {
		slices.SortStableFunc(b.order, func(x, y int32) int {
			switch a, c := b.times[x], b.times[y]; {
			case a < c:
				return -1
			case a > c:
				return 1
			}
			return 0
		})
	}
}

// readBlock finds the rows of a segment that are meant and reads them, the first
// ones of the order if only so many can be needed.
func (s *segment) readBlock(f *Filter) (*block, error) {
	b := &block{}
	first, last := s.span()
	low, high := f.span()
	for _, g := range s.groups() {
		sel, err := g.match(f, low <= first && last <= high)
		if err != nil {
			return nil, err
		}
		if sel.len() == 0 {
			continue
		}
		if err := g.gather(&sel, f, b); err != nil {
			return nil, err
		}
	}
	b.sort()
	return b, nil
}

// gather reads the selected rows into the block.
func (g group) gather(s *selection, f *Filter, b *block) error {
	r, err := g.open("time", parquet.Int64)
	if err != nil {
		return err
	}
	defer r.close()
	times := make([]int64, 0, s.len())
	if err := walk(s, r.timesFrom, func(page []int64) { times = append(times, page...) }); err != nil {
		return err
	}
	b.times = append(b.times, g.cut(s, times, f)...)
	for c := range columns {
		if err := g.column(c, s, &b.cols[c]); err != nil {
			return err
		}
	}
	return nil
}

// cut takes rows out of the selection that cannot come up, since so many of the
// group come before. It gives the times of those that are left.
func (g group) cut(s *selection, times []int64, f *Filter) []int64 {
	most := f.most()
	if len(times) <= most {
		return times
	}
	if slices.IsSorted(times) {
		from, to := 0, most
		if !f.Oldest {
			from, to = len(times)-most, len(times)
		}
		if s.listed {
			s.list = s.list[from:to]
		} else {
			s.lo, s.hi = s.lo+from, s.lo+to
		}
		return times[from:to]
	}
	sorted := slices.Sorted(slices.Values(times))
	ok := func(t int64) bool { return t <= sorted[most-1] }
	if !f.Oldest {
		ok = func(t int64) bool { return t >= sorted[len(sorted)-most] }
	}
	var list []int32
	var left []int64
	for i, t := range times {
		if !ok(t) {
			continue
		}
		left = append(left, t)
		if s.listed {
			list = append(list, s.list[i])
		} else {
			list = append(list, int32(s.lo+i))
		}
	}
	s.list, s.listed = list, true
	return left
}

// column reads the selected rows of one column and puts them behind what v has.
// Where few are selected, v does not hold on to the dictionary.
func (g group) column(c int, s *selection, v *values) error {
	kind := parquet.Int32
	if columns[c].text != nil {
		kind = parquet.ByteArray
	}
	r, err := g.open(columns[c].name, kind)
	if err != nil {
		return err
	}
	defer r.close()
	at := len(v.ids)
	if v.ids == nil {
		v.ids = make([]uint32, 0, s.len())
	}
	err = walk(s, r.from, func(ids []uint32) { v.ids = append(v.ids, ids...) })
	if err != nil || kind == parquet.Int32 {
		return err
	}
	if at == 0 && len(v.ids) >= r.dict.len() {
		v.texts = r.dict
		v.settle()
		return nil
	}
	v.copyTexts(at, &r.dict)
	return nil
}

// copyTexts puts the texts that the ids from at on refer to behind the own ones,
// and makes the ids refer to these.
func (v *values) copyTexts(at int, from *texts) {
	v.settle()
	own := map[uint32]uint32{}
	var b strings.Builder
	b.WriteString(v.all)
	for i, id := range v.ids[at:] {
		k, ok := own[id]
		if !ok {
			k = uint32(len(v.ends))
			own[id] = k
			b.WriteString(from.at(id))
			v.ends = append(v.ends, uint32(b.Len()))
		}
		v.ids[at+i] = k
	}
	v.all = b.String()
}

// builder makes a block of rows that come one by one.
type builder struct {
	block
	known [numColumns]map[string]uint32
}

func (b *builder) add(r *qlog.Row) {
	b.times = append(b.times, r.Time)
	for c := range columns {
		v := &b.cols[c]
		if columns[c].text == nil {
			v.ids = append(v.ids, columns[c].number(r))
			continue
		}
		if b.known[c] == nil {
			b.known[c] = map[string]uint32{}
		}
		s := *columns[c].text(r)
		id, ok := b.known[c][s]
		if !ok {
			id = uint32(v.len())
			b.known[c][strings.Clone(s)] = id
			v.add(s)
		}
		v.ids = append(v.ids, id)
	}
}

func (b *builder) done() *block {
	for c := range b.cols {
		b.cols[c].settle()
	}
	b.known = [numColumns]map[string]uint32{}
	b.sort()
	return &b.block
}
