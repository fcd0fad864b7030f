package search

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// Filter says which rows are meant, in which order, and how many. All conditions
// must hold. The zero Filter is every row, newest first. It may be used by many at
// once and is made by ParseFilter.
type Filter struct {
	From   int64  // microseconds since 1970 UTC, included; 0: no bound
	Until  int64  // the same, not included; 0: no bound
	Limit  int    // rows that Search gives at most; 0: no bound
	Oldest bool   // oldest first
	After  Cursor // rows that the order has up to here are left out

	tests []test
}

// Cursor is a place in the order of rows. It stays right when tails become
// segments, since it is a time and not a place in a file. The zero Cursor is the
// start.
type Cursor struct {
	Time int64 // of the last row that was given
	Rows int   // how many rows of just this time were given; 0: no cursor
}

// String is what the key cursor takes; empty for the start.
func (c Cursor) String() string {
	if c.Rows == 0 {
		return ""
	}
	return strconv.FormatInt(c.Time, 10) + "-" + strconv.Itoa(c.Rows)
}

func parseCursor(s string) (Cursor, bool) {
	at, rows, ok := strings.Cut(s, "-")
	t, err1 := strconv.ParseInt(at, 10, 64)
	n, err2 := strconv.ParseInt(rows, 10, 32)
	return Cursor{t, int(n)}, ok && err1 == nil && err2 == nil && t > 0 && n > 0
}

// test is a condition on one column.
type test struct {
	col    int
	exact  []string            // one of these, or what accept says
	accept func(string) bool   // nil: exact decides
	number func(n uint32) bool // of a column of numbers
}

func (t *test) text(s string) bool {
	if t.accept != nil {
		return t.accept(s)
	}
	return slices.Contains(t.exact, s)
}

// span is the times that may be given, first and last included, with the cursor
// taken into account.
func (f *Filter) span() (first, last int64) {
	first, last = math.MinInt64, math.MaxInt64
	if f.From != 0 {
		first = f.From
	}
	if f.Until != 0 {
		last = f.Until - 1
	}
	if f.After.Rows > 0 && f.Oldest {
		first = max(first, f.After.Time)
	}
	if f.After.Rows > 0 && !f.Oldest {
		last = min(last, f.After.Time)
	}
	return first, last
}

// most is how many rows of one file can be needed: one more than are given tells
// that there are more.
func (f *Filter) most() int {
	if f.Limit <= 0 {
		return math.MaxInt
	}
	return f.Limit + f.After.Rows + 1
}

// Matches tells whether a row is meant, for rows that come one by one. Of limit and
// order it knows nothing, of the cursor only the time.
func (f *Filter) Matches(r *qlog.Row) bool {
	first, last := f.span()
	if r.Time < first || r.Time > last {
		return false
	}
	for i := range f.tests {
		t := &f.tests[i]
		c := &columns[t.col]
		if c.text != nil && !t.text(*c.text(r)) || c.text == nil && !t.number(c.number(r)) {
			return false
		}
	}
	return true
}
