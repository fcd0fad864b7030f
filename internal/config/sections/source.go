package sections

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/waymark-dns/waymark/internal/plan"
)

// MaxSize is the largest configuration that is read, in octets.
const MaxSize = 16 << 20

// bom is the byte order mark of UTF-8. It means nothing and is skipped.
const bom = "\ufeff"

// section matches the first line of a top-level section.
var section = regexp.MustCompile(`^["']?[A-Za-z][A-Za-z0-9_-]*["']?[ ]*:`)

// parse turns the text into trees of sections. whole is false when some of it
// could not be read; the other sections are then parsed one by one, so that a
// slip in one does not hide the problems of the others.
func (r *reader) parse(src []byte) (roots []*node, whole bool) {
	text, bad, ok := r.clean(src)
	if !ok {
		return nil, false
	}
	if len(bad) > 0 {
		roots, _ = r.parts(bad)
		return roots, false
	}
	t := &tree{r: r, anchors: map[string]*node{}}
	root, trouble := t.parse(text, 0)
	if trouble == nil {
		if t.sections(root) {
			roots = []*node{root}
		}
		return roots, len(roots) == 1 || root.kind == null
	}
	roots, told := r.parts(nil)
	if !told {
		r.problems = append(r.problems, *trouble)
	}
	return roots, false
}

// parts parses section by section. told is whether one of them had trouble of
// its own.
func (r *reader) parts(bad map[int]bool) (roots []*node, told bool) {
	t := &tree{r: r, anchors: map[string]*node{}, partial: true}
	for start := 0; start < len(r.lines) && !r.full(); {
		end := start + 1
		for end < len(r.lines) && !section.MatchString(r.lines[end]) {
			end++
		}
		root, trouble := t.part(start, end, bad)
		switch {
		case trouble != nil:
			told = true
			r.problems = append(r.problems, *trouble)
		case t.sections(root):
			roots = append(roots, root)
		}
		start = end
	}
	return roots, told
}

// part parses the lines from start to end alone; one that holds a line that
// was refused already is nothing.
func (t *tree) part(start, end int, bad map[int]bool) (root *node, trouble *plan.Problem) {
	for line := start; line < end; line++ {
		if bad[line] {
			return &node{kind: broken}, nil
		}
	}
	return t.parse(strings.Join(t.r.lines[start:end], "\n")+"\n", start)
}

// clean splits the text into lines and refuses what no YAML file may hold. bad
// has the index of every line with such a problem; ok is false when the text
// makes no sense at all.
func (r *reader) clean(src []byte) (text string, bad map[int]bool, ok bool) {
	if len(src) > MaxSize {
		r.problem(r.pos(1, 1), "is it the right file?", "the file is larger than %d MiB", MaxSize>>20)
		return "", nil, false
	}
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		r.problem(r.pos(1, 1), "save it as UTF-8", "the file is in UTF-16")
		return "", nil, false
	}
	text = strings.TrimPrefix(string(src), bom)
	text = strings.ReplaceAll(text, "\r\n", "\n")
	r.lines = strings.Split(text, "\n")
	bad = map[int]bool{}
	for i, line := range r.lines {
		if r.refuse(i, line) {
			bad[i] = true
		}
	}
	return text, bad, true
}

// refuse tells of the first octet of a line that must not be there.
func (r *reader) refuse(index int, line string) bool {
	indent := true
	column := 0
	for i, c := range line {
		column++
		pos := func() (int, int) { return index + 1, column }
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd"):
			r.problem(r.pos(pos()), "save the file as UTF-8", "octet %#02x is not UTF-8", line[i])
			return true
		case c == '\t' && indent && strings.Trim(line, " \t") != "" && !strings.HasPrefix(strings.TrimLeft(line, " \t"), "#"):
			r.problem(r.pos(pos()), "indent with spaces", "a tab in the indentation")
			return true
		case c < ' ' && c != '\t', c == 0x7f, c == 0xfeff:
			r.problem(r.pos(pos()), "remove it", "control character %U", c)
			return true
		}
		indent = indent && (c == ' ' || c == '\t')
	}
	return false
}
