package plan

import "strings"

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
