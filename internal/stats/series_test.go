package stats

import (
	"slices"
	"testing"
)

// What counters grow by is there by second for an hour and by minute for a week, and
// no longer.
func TestSeries(t *testing.T) {
	const begin = 1_700_000_040 // a full minute
	s := NewSeries([]uint64{5, 0})
	for i := range int64(8 * 24 * 3600) {
		if i%7 == 3 {
			continue // a second that nobody noted
		}
		s.Add(begin+i, []uint64{uint64(5 + i), uint64(2 * i)})
	}
	end := int64(begin + 8*24*3600)
	seconds := s.Points(0, end+100, false)
	if len(seconds) < SecondsKept*6/7-2 || len(seconds) > SecondsKept {
		t.Fatalf("%d seconds are kept", len(seconds))
	}
	for _, p := range seconds {
		want := uint64(1)
		if (p.Time-begin)%7 == 4 {
			want = 2
		}
		if p.Values[0] != want || p.Values[1] != 2*want || p.Time < end-SecondsKept-1 {
			t.Fatalf("second %d: %v, want %d", p.Time-begin, p.Values, want)
		}
	}
	minutes := s.Points(0, end+100, true)
	if len(minutes) != MinutesKept {
		t.Fatalf("%d minutes are kept", len(minutes))
	}
	sum := uint64(0)
	for _, p := range minutes {
		sum += p.Values[0]
		if p.Values[0] < 58 || p.Values[0] > 62 || p.Time%60 != 0 {
			t.Fatalf("minute %d: %v", p.Time-begin, p.Values)
		}
	}
	if sum < 7*24*3600-3 || sum > 7*24*3600+3 {
		t.Errorf("%d in a week", sum)
	}
	if part := s.Points(end-120, end-60, true); len(part) != 1 || part[0].Time != end-120 {
		t.Errorf("one minute is %v", part)
	}
	if part := s.Points(end, end+60, false); part != nil {
		t.Errorf("the future is %v", part)
	}
}

// A counter that begins anew adds what it has.
func TestSeriesBack(t *testing.T) {
	s := NewSeries([]uint64{100})
	s.Add(1000, []uint64{110})
	s.Add(1001, []uint64{3})
	s.Add(1001, []uint64{5})
	var got []uint64
	for _, p := range s.Points(0, 2000, false) {
		got = append(got, p.Values...)
	}
	if !slices.Equal(got, []uint64{10, 5}) {
		t.Errorf("grew by %v", got)
	}
}
