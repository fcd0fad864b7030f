package sections

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waymark-dns/waymark/internal/plan"
)

// maxProblems bounds what a file that is no configuration at all can print.
const maxProblems = 1000

// reader is the state of one Read: the text, where keys were written, and the
// problems found so far.
type reader struct {
	file, dir string
	lines     []string
	where     map[string]plan.Pos
	problems  []plan.Problem
	manual    func() []entry // every key there is; the tables cannot name themselves

	// The line asked for last and its width, so that many positions on one long
	// line cost one walk over it.
	lastLine, lastWidth int
}

// pos is a position in the file. One outside of the text is moved to its
// nearest end: for a value that is not there the YAML library names a place
// behind the end of the line.
func (r *reader) pos(line, column int) plan.Pos {
	line = min(max(line, 1), max(len(r.lines), 1))
	if line != r.lastLine && len(r.lines) > 0 {
		r.lastLine, r.lastWidth = line, utf8.RuneCountInString(r.lines[line-1])
	}
	return plan.Pos{File: r.file, Line: line, Column: min(max(column, 1), r.lastWidth+1)}
}

// full reports whether there are so many problems that no more are kept.
func (r *reader) full() bool { return len(r.problems) >= maxProblems }

// problem notes that something is wrong at pos; mend may be empty.
func (r *reader) problem(pos plan.Pos, mend, format string, args ...any) {
	if !r.full() {
		r.problems = append(r.problems, plan.Problem{Pos: pos, Text: fmt.Sprintf(format, args...), Mend: mend})
	}
}

// sorted gives the problems in the order of their positions. What an alias
// repeats is told once, and what the file holds cannot break a line.
func (r *reader) sorted() []plan.Problem {
	if r.full() {
		r.problems = append(r.problems, plan.Problem{
			Pos:  r.problems[0].Pos,
			Text: fmt.Sprintf("more than %d problems, the others are not shown", maxProblems),
			Mend: "is it the right file?",
		})
	}
	for i := range r.problems {
		p := &r.problems[i]
		p.Text, p.Mend = strings.Map(visible, p.Text), strings.Map(visible, p.Mend)
	}
	plan.Sort(r.problems)
	return slices.Compact(r.problems)
}

func visible(c rune) rune {
	if unicode.IsControl(c) {
		return utf8.RuneError
	}
	return c
}
