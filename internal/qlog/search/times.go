package search

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// layouts are the forms of a time that is not relative. Those without a zone are
// in the zone of the caller's clock.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly,
}

// parseTime reads a time, or how long ago it was, and gives microseconds since
// 1970 UTC. Times before 1970 are none that a log has.
func parseTime(v string, now time.Time) (int64, error) {
	if d, ok := parseDuration(v); ok {
		return positive(now.Add(-d))
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, v, now.Location()); err == nil {
			return positive(t)
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, v); err == nil {
			y, m, d := now.Date()
			return positive(time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, now.Location()))
		}
	}
	return 0, errors.New("not a time such as 2026-01-31T12:00:00Z, 2026-01-31, 14:30, or 2h for two hours ago")
}

// latest is the year 10000: further times overflow what counts them.
const latest = 253402300800 * 1_000_000

func positive(t time.Time) (int64, error) {
	if us := t.UnixMicro(); us > 0 && us < latest {
		return us, nil
	}
	return 0, errors.New("not a time between 1970 and 9999")
}

// longest bounds durations: a hundred years.
const longest = 100 * 366 * 24 * time.Hour

// parseDuration reads a duration with a unit on every number: those of Go, d for
// 24 hours and w for seven of these.
func parseDuration(v string) (time.Duration, bool) {
	var sum time.Duration
	for _, unit := range []struct {
		letter string
		each   time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, rest, ok := strings.Cut(v, unit.letter)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return 0, false
		}
		sum += time.Duration(n) * unit.each
		if v = rest; v == "" {
			return sum, sum <= longest
		}
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 || d > longest || v[0] == '+' || v[0] == '-' {
		return 0, false
	}
	return sum + d, sum+d <= longest && v != "0"
}

// nearest is the known word that takes the fewest slips to become word; empty if
// none is near.
func nearest(word string, known []string) string {
	best, least := "", 0
	for _, k := range known {
		if d := distance(word, k); d <= max(1, len(k)/3) && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// distance is how many letters have to be put in, taken out, changed or swapped
// with the next. Words that are much longer are far without being looked at.
func distance(a, b string) int {
	if len(a) > 2*len(b)+2 {
		return len(a)
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
