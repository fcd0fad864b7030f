package plan

import (
	"slices"
	"strings"
)

// Object is something with a tag of its own that rules refer to: an engine, a set,
// an action with a configuration that does not fit on a line.
type Object struct {
	Pos  Pos
	Tag  string
	Type string // a row of the actions' table of objects
	// Args is what that row's Args made, filled with what was written: a pointer to
	// a struct. It is nil where the type takes no arguments.
	Args any
	// Order is the place among all objects and programs, from 1: what it refers to
	// has a lower one.
	Order int
}

// Program is a program of the policy in words: rules by the names of their
// matchers and actions, before anything is compiled.
type Program struct {
	Pos   Pos
	Name  string // the tag of a sequence
	Rules []Rule
	Order int // as in Object; 0 where there are no objects
}

// Rule is one row: where all of If match, Do runs.
type Rule struct {
	Pos Pos
	If  []Term
	Do  Term
	Why string // the reason for the rule's place
}

// Term names a matcher or an action, with its arguments.
type Term struct {
	Pos  Pos
	Not  bool   // of a matcher: it must not match
	Name string // of a kind; behind $ it is the tag of an object or a program
	Args string
}

// ParseTerm reads a term as it is written: a name, a space, and the arguments as
// one text. A matcher may have a ! in front. Of an empty text the name is empty.
func ParseTerm(pos Pos, text string, matcher bool) Term {
	t := Term{Pos: pos}
	text = strings.TrimSpace(text)
	if rest, not := strings.CutPrefix(text, "!"); not && matcher {
		t.Not, text = true, strings.TrimSpace(rest)
	}
	t.Name, t.Args, _ = strings.Cut(text, " ")
	t.Args = strings.TrimSpace(t.Args)
	if tag, isTag := strings.CutPrefix(t.Name, "$"); isTag {
		t.Name = "$" + strings.TrimSpace(tag)
	}
	return t
}

// NamesSets tells whether the arguments of a matcher may name sets, as $tag, and
// files, as &path.
func (t Term) NamesSets() bool {
	return slices.Contains([]string{"qname", "cname", "client_ip", "resp_ip", "ptr_ip"}, t.Name)
}

// Object is that with the tag, nil where there is none.
func (p *Plan) Object(tag string) *Object {
	if i := slices.IndexFunc(p.Objects, func(o Object) bool { return o.Tag == tag }); i >= 0 {
		return &p.Objects[i]
	}
	return nil
}

// String is the term as it is written: name, then arguments.
func (t Term) String() string {
	text := strings.TrimSpace(t.Name + " " + t.Args)
	if t.Not {
		return "!" + text
	}
	return text
}

// String is the rule on one line.
func (r Rule) String() string {
	var b strings.Builder
	for i, t := range r.If {
		if i > 0 {
			b.WriteString(" and ")
		}
		b.WriteString(t.String())
	}
	if len(r.If) > 0 {
		b.WriteString(": ")
	}
	return b.String() + r.Do.String()
}
