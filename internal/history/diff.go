package history

import (
	"fmt"
	"slices"
	"strings"
)

// around is how many unchanged lines stand around changed ones.
const around = 3

// maxEdits bounds the search for the shortest way from one text to the other: its
// memory grows with the square. Texts that differ more have their middle replaced.
const maxEdits = 1000

// Diff is a unified diff of two texts by lines, as patch reads it; it is empty where
// they are equal.
func Diff(nameA, nameB, textA, textB string) string {
	if textA == textB {
		return ""
	}
	a, b := lines(textA), lines(textB)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", nameA, nameB)
	all := edits(a, b)
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].a0-all[n-1].a1 <= 2*around {
			n++
		}
		writeHunk(&out, a, b, all[:n])
		all = all[n:]
	}
	return out.String()
}

// lines are those of a text, each with its end.
func lines(text string) []string {
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// edit replaces the lines a0 to a1 of one text by b0 to b1 of the other.
type edit struct{ a0, a1, b0, b1 int }

// writeHunk writes edits that stand close together.
func writeHunk(out *strings.Builder, a, b []string, all []edit) {
	first, last := all[0], all[len(all)-1]
	before, behind := min(around, first.a0), min(around, len(a)-last.a1)
	fmt.Fprintf(out, "@@ -%s +%s @@\n",
		span(first.a0-before, last.a1+behind), span(first.b0-before, last.b1+behind))
	at := first.a0 - before
	for _, e := range all {
		writeLines(out, " ", a[at:e.a0])
		writeLines(out, "-", a[e.a0:e.a1])
		writeLines(out, "+", b[e.b0:e.b1])
		at = e.a1
	}
	writeLines(out, " ", a[at:at+behind])
}

// span is a range of lines: where it begins, counted from 1, and how many. An empty
// one begins at the line before.
func span(from, to int) string {
	n := to - from
	if n > 0 {
		from++
	}
	return fmt.Sprintf("%d,%d", from, n)
}

func writeLines(out *strings.Builder, mark string, all []string) {
	for _, line := range all {
		out.WriteString(mark + line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// edits are those that lead from a to b, in their order, none next to another.
func edits(a, b []string) []edit {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	a, b = a[head:len(a)-tail], b[head:len(b)-tail]
	goneA, newB := make([]bool, len(a)), make([]bool, len(b))
	if !shortest(a, b, goneA, newB) {
		return []edit{{head, head + len(a), head, head + len(b)}}
	}
	var all []edit
	for i, j := 0, 0; i < len(a) || j < len(b); {
		e := edit{a0: head + i, b0: head + j}
		i, j = past(goneA, i), past(newB, j)
		e.a1, e.b1 = head+i, head+j
		if e.a0 < e.a1 || e.b0 < e.b1 {
			all = append(all, e)
			continue
		}
		i, j = i+1, j+1
	}
	return all
}

// past is the first index from i on that is not marked.
func past(marked []bool, i int) int {
	for i < len(marked) && marked[i] {
		i++
	}
	return i
}

// shortest marks the fewest lines of a that go and of b that come (E. Myers, "An
// O(ND) Difference Algorithm and Its Variations", 1986). It gives up beyond maxEdits.
func shortest(a, b []string, gone, come []bool) bool {
	most := min(len(a)+len(b), maxEdits)
	reach := make([]int, 2*most+2) // on each diagonal how far in a; k is at k+most
	var trace [][]int
	for d := 0; d <= most; d++ {
		trace = append(trace, slices.Clone(reach[most-d:min(most+d+1, len(reach))]))
		for k := -d; k <= d; k += 2 {
			x := step(reach, most, d, k)
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			reach[k+most] = x
			if x >= len(a) && x-k >= len(b) {
				mark(trace, gone, come)
				return true
			}
		}
	}
	return false
}

// step is where diagonal k is entered with the d-th edit: from above a line comes,
// from the left one goes.
func step(reach []int, zero, d, k int) int {
	switch {
	case d == 0:
		return 0
	case k == -d || k != d && reach[k-1+zero] < reach[k+1+zero]:
		return reach[k+1+zero]
	}
	return reach[k-1+zero] + 1
}

// mark goes back along the trace; row d holds the diagonals -d to d before edit d.
func mark(trace [][]int, gone, come []bool) {
	x, y := len(gone), len(come)
	for d := len(trace) - 1; d > 0; d-- {
		row, k := trace[d], x-y
		if k == -d || k != d && row[k-1+d] < row[k+1+d] {
			x = row[k+1+d]
			y = x - k - 1
			come[y] = true
		} else {
			x = row[k-1+d]
			y = x - k + 1
			gone[x] = true
		}
	}
}
