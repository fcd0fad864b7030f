package serve

import (
	"fmt"
	"sync"
	"time"
)

// maxSteps bounds a trace: rules may jump in circles until their depth ends them.
const maxSteps = 1000

// Trace is what happens to one query, step by step, for a person who asks. Requests
// of clients have none: whoever has something to say looks whether there is one
// first, so that nothing is formatted otherwise. It may be used by many at once,
// since branches of a request run side by side.
type Trace struct {
	all    *steps
	branch int
}

// steps is the trace of a request and all its branches.
type steps struct {
	now   func() time.Duration
	begin time.Duration

	mu       sync.Mutex // guards what follows
	list     []TraceStep
	branches int
}

// TraceStep is one thing that happened.
type TraceStep struct {
	Branch int           // 0 is the request itself, others are branches, as they began
	At     time.Duration // since the trace began
	Part   string        // what it is about: listener, access, rule, zone, cache, upstream, response, …
	Where  string        // file and line in the configuration, where there is one
	Text   string
}

// NewTrace begins a trace with a monotonic clock.
func NewTrace(now func() time.Duration) *Trace {
	return &Trace{all: &steps{now: now, begin: now()}}
}

// Say notes a step. Beyond a thousand nothing is noted.
func (t *Trace) Say(part, where, format string, args ...any) {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	a := t.all
	step := TraceStep{Branch: t.branch, At: a.now() - a.begin, Part: part, Where: where, Text: text}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) < maxSteps {
		a.list = append(a.list, step)
	}
}

// Fork is the trace of a branch, which is part of this one. Of nil it is nil.
func (t *Trace) Fork() *Trace {
	if t == nil {
		return nil
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.all.branches++
	return &Trace{all: t.all, branch: t.all.branches}
}

// Steps is a copy of what was noted so far, in order.
func (t *Trace) Steps() []TraceStep {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return append([]TraceStep(nil), t.all.list...)
}
