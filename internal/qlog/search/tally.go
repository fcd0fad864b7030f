package search

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
)

// tally is counts of values, of all files together. It is split by the hash of the
// value: each shard is small enough for the processor's cache while a file's values
// are added, and two files can be added at once.
type tally struct {
	of     func(string) string // what is counted of a value
	seed   maphash.Seed
	shards [numShards]shard
}

const numShards = 16

// shard is the counts of some values. There may be millions, so that they lie in a few
// slices without pointers.
type shard struct {
	mu     sync.Mutex // guards all below
	slots  []slot     // where the hash points, or behind
	octets []byte     // of all values
	ends   []int      // of each value
	counts []uint64
}

// slot is a value's number plus one, and what tells most others from it.
type slot struct{ number, tag uint32 }

func newTally(of func(string) string) *tally { return &tally{of: of, seed: maphash.MakeSeed()} }

// add counts values of a dictionary, by their places.
func (t *tally) add(d *texts, counts []uint64) {
	values := make([]hashed, 0, len(counts))
	for id, n := range counts {
		if n > 0 {
			v := t.of(d.at(uint32(id)))
			values = append(values, hashed{v, maphash.String(t.seed, v), n})
		}
	}
	t.put(values)
}

// addNumbers counts values of a column of numbers.
func (t *tally) addNumbers(counts map[uint32]uint64) {
	values := make([]hashed, 0, len(counts))
	for n, count := range counts {
		v := decimal(n)
		values = append(values, hashed{v, maphash.String(t.seed, v), count})
	}
	t.put(values)
}

// hashed is a count to be added.
type hashed struct {
	value string
	hash  uint64
	count uint64
}

// put adds counts; t keeps no memory of the caller's.
func (t *tally) put(values []hashed) {
	for i := range t.shards {
		t.shards[i].put(values, uint64(i))
	}
}

// put adds the counts of those values that are of this shard.
func (s *shard) put(values []hashed, which uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range values {
		if v := &values[i]; v.hash%numShards == which {
			s.add(v)
		}
	}
}

func (s *shard) add(v *hashed) {
	if 4*len(s.ends) >= 3*len(s.slots) {
		s.grow()
	}
	tag := uint32(v.hash >> 32)
	mask := uint32(len(s.slots) - 1)
	at := tag & mask
	for ; s.slots[at].number > 0; at = (at + 1) & mask {
		if k := s.slots[at].number - 1; s.slots[at].tag == tag && string(s.value(int(k))) == v.value {
			s.counts[k] += v.count
			return
		}
	}
	s.octets = append(s.octets, v.value...)
	s.ends = append(s.ends, len(s.octets))
	s.counts = append(s.counts, v.count)
	s.slots[at] = slot{uint32(len(s.ends)), tag}
}

// grow doubles the slots.
func (s *shard) grow() {
	old := s.slots
	s.slots = make([]slot, max(1<<8, 2*len(old)))
	mask := uint32(len(s.slots) - 1)
	for _, o := range old {
		if o.number == 0 {
			continue
		}
		at := o.tag & mask
		for s.slots[at].number > 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = o
	}
}

func (s *shard) value(i int) []byte {
	start := 0
	if i > 0 {
		start = s.ends[i-1]
	}
	return s.octets[start:s.ends[i]]
}

// table is the n most frequent values, those that are equally frequent in the order
// of their letters. Nothing is added any more.
func (t *tally) table(n int) Table {
	var table Table
	for i := range t.shards {
		table.Distinct += len(t.shards[i].counts)
	}
	if n <= 0 || n > table.Distinct {
		n = table.Distinct
	}
	least := t.least(n)
	for i := range t.shards {
		s := &t.shards[i]
		for k, count := range s.counts {
			table.Rows += count
			if count >= least {
				table.Values = append(table.Values, Value{Value: string(s.value(k)), Count: count})
			}
		}
	}
	slices.SortFunc(table.Values, func(a, b Value) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
	})
	table.Values = slices.Clip(table.Values[:n])
	for i := range table.Values {
		table.Values[i].Share = float64(table.Values[i].Count) / float64(table.Rows)
	}
	return table
}

// least is the count of the n-th most frequent value.
func (t *tally) least(n int) uint64 {
	if n == 0 {
		return 0
	}
	var top []uint64
	for i := range t.shards { // n of the largest are among n of each shard
		counts := slices.Clone(t.shards[i].counts)
		slices.Sort(counts)
		top = append(top, counts[max(0, len(counts)-n):]...)
	}
	slices.Sort(top)
	return top[len(top)-n]
}
