// Package tree reads the text of a configuration file, YAML, JSON or TOML, into
// one kind of tree in which every key and value has its position, and collects
// the problems of that file. It knows no key and opens no file: the front ends
// give the keys their meaning, and package config the text.
package tree

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waymark-dns/waymark/internal/plan"
)

// MaxSize is the largest configuration that is read, in octets.
const MaxSize = 16 << 20

// maxProblems bounds what a file that is no configuration at all can print.
const maxProblems = 1000

// bom is the byte order mark of UTF-8. It means nothing and is skipped.
const bom = "\ufeff"

// Source is one file: its text, and the problems found in it so far.
type Source struct {
	File string
	// Loose takes what mosdns takes and level 1 does not: merge keys (<<) and the
	// standard tags (!!str).
	Loose bool

	lines    []string
	problems []plan.Problem

	// The line asked for last and its width, so that many positions on one long
	// line cost one walk over it.
	lastLine, lastWidth int
}

// Pos is a position in the file. One outside of the text is moved to its
// nearest end: for a value that is not there the YAML library names a place
// behind the end of the line.
func (s *Source) Pos(line, column int) plan.Pos {
	line = min(max(line, 1), max(len(s.lines), 1))
	if line != s.lastLine && len(s.lines) > 0 {
		s.lastLine, s.lastWidth = line, utf8.RuneCountInString(s.lines[line-1])
	}
	return plan.Pos{File: s.File, Line: line, Column: min(max(column, 1), s.lastWidth+1)}
}

// Full reports whether there are so many problems that no more are kept.
func (s *Source) Full() bool { return len(s.problems) >= maxProblems }

// Problem notes that something is wrong at pos; mend may be empty.
func (s *Source) Problem(pos plan.Pos, mend, format string, args ...any) {
	if !s.Full() {
		s.problems = append(s.problems, plan.Problem{Pos: pos, Text: fmt.Sprintf(format, args...), Mend: mend})
	}
}

// Sorted gives the problems in the order of their positions. What an alias
// repeats is told once, and what the file holds cannot break a line.
func (s *Source) Sorted() []plan.Problem {
	problems := slices.Clone(s.problems)
	if s.Full() {
		problems = append(problems, plan.Problem{
			Pos:  problems[0].Pos,
			Text: fmt.Sprintf("more than %d problems, the others are not shown", maxProblems),
			Mend: "is it the right file?",
		})
	}
	for i := range problems {
		p := &problems[i]
		p.Text, p.Mend = strings.Map(visible, p.Text), strings.Map(visible, p.Mend)
	}
	plan.Sort(problems)
	return slices.Compact(problems)
}

func visible(c rune) rune {
	if unicode.IsControl(c) {
		return utf8.RuneError
	}
	return c
}

// Parse turns the text into trees, by the file's extension: .json, .toml, and
// all others are YAML. Usually that is one tree; whole is false when some of the
// text could not be read. Of YAML, the other top-level keys are then parsed one
// by one into trees of their own, so that a slip in one does not hide the problems
// of the others.
func (s *Source) Parse(src []byte) (roots []*Node, whole bool) {
	text, ok := s.clean(src)
	if !ok {
		return nil, false
	}
	switch strings.ToLower(filepath.Ext(s.File)) {
	case ".json":
		return s.one(text, s.json)
	case ".toml":
		return s.one(text, s.toml)
	}
	return s.yaml()
}

// one reads a text that is all or nothing.
func (s *Source) one(text string, parse func(text string) (*Node, *plan.Problem)) (roots []*Node, whole bool) {
	if len(s.refused(false)) > 0 {
		return nil, false
	}
	root, trouble := parse(text)
	if trouble != nil {
		s.problems = append(s.problems, *trouble)
		return nil, false
	}
	if s.keyed(root) {
		roots = []*Node{root}
	}
	return roots, len(roots) == 1 || root.Kind == Null
}

// keyed reports whether the root can hold a configuration.
func (s *Source) keyed(root *Node) bool {
	if root.Kind == Scalar || root.Kind == List {
		s.Problem(root.Pos, "begin with a section, such as listen:", "expected sections, got %s", root.Describe())
	}
	return root.Kind == Mapping
}

// clean splits the text into lines; ok is false when it makes no sense at all.
func (s *Source) clean(src []byte) (text string, ok bool) {
	if len(src) > MaxSize {
		s.Problem(s.Pos(1, 1), "is it the right file?", "the file is larger than %d MiB", MaxSize>>20)
		return "", false
	}
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		s.Problem(s.Pos(1, 1), "save it as UTF-8", "the file is in UTF-16")
		return "", false
	}
	text = strings.TrimPrefix(string(src), bom)
	text = strings.ReplaceAll(text, "\r\n", "\n")
	s.lines = strings.Split(text, "\n")
	return text, true
}

// refused tells of every line that has what no file may hold, and gives their
// indexes. indent is whether tabs in the indentation are among it.
func (s *Source) refused(indent bool) map[int]bool {
	bad := map[int]bool{}
	for i, line := range s.lines {
		if s.refuse(i, line, indent) {
			bad[i] = true
		}
	}
	return bad
}

// refuse tells of the first octet of a line that must not be there.
func (s *Source) refuse(index int, line string, indent bool) bool {
	column := 0
	for i, c := range line {
		column++
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd"):
			s.Problem(s.Pos(index+1, column), "save the file as UTF-8", "octet %#02x is not UTF-8", line[i])
			return true
		case c == '\t' && indent && strings.Trim(line, " \t") != "" && !strings.HasPrefix(strings.TrimLeft(line, " \t"), "#"):
			s.Problem(s.Pos(index+1, column), "indent with spaces", "a tab in the indentation")
			return true
		case c < ' ' && c != '\t', c == 0x7f, c == 0xfeff:
			s.Problem(s.Pos(index+1, column), "remove it", "control character %U", c)
			return true
		}
		indent = indent && (c == ' ' || c == '\t')
	}
	return false
}
