package plan

import "strings"

// Program is a program of the policy in words: rules by the names of their
// matchers and actions, before anything is compiled.
type Program struct {
	Name  string
	Rules []Rule
}

// Rule is one row: where all of If match, Do runs.
type Rule struct {
	If  []Term
	Do  Term
	Why string // the reason for the rule's place
}

// Term names a matcher or an action, with its arguments.
type Term struct{ Name, Args string }

// String is the term as it is written: name, then arguments.
func (t Term) String() string { return strings.TrimSpace(t.Name + " " + t.Args) }

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
