package plan

// Nearest is the known word that takes the fewest slips (a letter missing, too
// many, wrong, or two swapped) to become word; empty if every one is so far
// that it can hardly be meant.
func Nearest(word string, known []string) string {
	best, least := "", 0
	for _, k := range known {
		if d := distance(word, k); d <= max(1, len(k)/3) && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// distance is the optimal string alignment distance of two words.
func distance(a, b string) int {
	// A word that is much longer is far enough; its length would cost time.
	if len(a) > 2*len(b)+2 {
		return len(a)
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
