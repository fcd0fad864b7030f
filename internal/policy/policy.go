// Package policy is the engine that every query runs through: programs of rules,
// compiled once, and the loop that runs them. It knows no configuration format
// and no engine; what a rule tests is in policy/match, what it does in
// policy/act, and app puts them together.
package policy

import (
	"context"

	"github.com/waymark-dns/waymark/internal/serve"
)

// Next is where a request goes after a rule.
type Next uint8

// What a Step says.
const (
	Go     Next = iota // to the next rule
	Stop               // leave the program: the response is made, or there is none
	Drop               // leave, and send nothing
	Pend               // the request's Waker will be told; only a Starter says so
	Fail               // leave: the work could not be done
	Return             // go on behind the jump that came here; without one, leave
	Jump               // go on at Rule.To, and come back behind this rule
	Goto               // go on at Rule.To, and do not come back
	Call               // run Rule.To as if it were alone, then go on behind this rule
)

// Matcher is a condition of a rule. It never waits and allocates nothing.
type Matcher interface{ Match(r *serve.Request) bool }

// Step does something at once. It never waits.
type Step interface{ Do(r *serve.Request) Next }

// Waiter does something that may wait until ctx ends. It runs on detached
// requests only.
type Waiter interface {
	Wait(ctx context.Context, r *serve.Request) Next
}

// Starter is something that waits without a goroutine to wait in. Start begins
// it for a detached request and says Pend; when the request's Waker was told,
// Start is called again and takes up what came of it. It knows the two calls
// apart by what it left in the request's Pending. It may wait neither time.
type Starter interface {
	Start(r *serve.Request) Next
}

// Finisher sees the whole response on its way out, in the reverse order of the
// rules. f is the frame that its rule left. It runs too where a rule behind it has
// failed (r.Policy.Failed) or there is no response (r.Out is nil); it may set
// r.Policy.Silent, and then nothing is sent.
type Finisher interface {
	After(r *serve.Request, f *serve.Frame)
}

// Rule is one row of a program: where all of If match, Do, Start or Wait runs;
// one of them is set at most. Where it says Go, or none is set, Then is what comes next. After,
// where set, runs when the response passes.
type Rule struct {
	If    []Matcher
	Do    Step
	Start Starter
	Wait  Waiter
	Then  Next
	To    uint16 // program of Jump, Goto and Call
	After Finisher

	// For people.
	Number uint16   // what the log knows the rule by, over reloads; 0 is not known
	Where  string   // file and line
	Text   string   // as a person would write it
	Conds  []string // If, as a person would write them
}

// Program is a list of rules.
type Program struct {
	Name  string
	Rules []Rule
}

// Set is all programs of a configuration. It is never changed; a reload makes a
// new one.
type Set struct{ Programs []Program }

// NewFrame is the frame that the rule at work will leave, cleared; nil where there
// is no room for it, and the rule fails.
func NewFrame(r *serve.Request) *serve.Frame {
	if r.Policy.Depth == serve.MaxFrames {
		return nil
	}
	f := r.Policy.Frame()
	f.A, f.B = 0, 0
	return f
}
