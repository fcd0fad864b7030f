package act

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
)

// Fallback asks a first program, and a second one where the first fails or is
// late. A program fails that makes no response.
type Fallback struct {
	Primary, Secondary uint16 // programs
	Threshold          time.Duration
	Standby            bool // the second begins at once; its response is held until it is wanted
	run                *policy.Runner
}

// FallbackArgs is the configuration of a fallback object.
type FallbackArgs struct {
	Primary       string `key:"primary"`
	Secondary     string `key:"secondary"`
	Threshold     int    `key:"threshold"`
	AlwaysStandby bool   `key:"always_standby"`
}

func makeFallback(e *Env, _ string, a *FallbackArgs) (any, error) {
	if a.Primary == "" || a.Secondary == "" {
		return nil, errors.New("primary and secondary are needed")
	}
	f := &Fallback{Threshold: time.Duration(a.Threshold) * time.Millisecond, Standby: a.AlwaysStandby, run: e.Run}
	if f.Threshold <= 0 {
		f.Threshold = 500 * time.Millisecond
	}
	var err error
	if f.Primary, err = e.Program(a.Primary); err != nil {
		return nil, fmt.Errorf("reading primary: %w", err)
	}
	if f.Secondary, err = e.Program(a.Secondary); err != nil {
		return nil, fmt.Errorf("reading secondary: %w", err)
	}
	return f, nil
}

// contest is the work on one request: two branches, of which one wins. It is told
// of their ends, and of the threshold, from any goroutine.
type contest struct {
	of     *Fallback
	parent *serve.Request
	timer  *time.Timer

	mu                  sync.Mutex // guards what follows
	branches            [2]*policy.Branch
	started, over, good [2]bool
	late                bool // the threshold has passed
	winner              int8 // -1 while it is open, 2 where both have failed
	waiting             bool // the parent waits to be woken
}

const (
	undecided = -1
	neither   = 2
)

// Start is part of policy.Starter.
func (a *Fallback) Start(r *serve.Request) policy.Next {
	if c, ok := r.Pending.(*contest); ok {
		r.Pending = nil
		return c.finish(r)
	}
	c := &contest{of: a, parent: r, winner: undecided}
	gather := r.Gather
	r.Gather = false // what begins later begins outside the batch
	c.begin(0, gather)
	if a.Standby && !c.decided() {
		c.begin(1, gather)
	}
	if !c.wait(r) {
		return c.finish(r)
	}
	return policy.Pend
}

// wait makes r wait, unless it is decided already.
func (c *contest) wait(r *serve.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.winner != undecided {
		return false
	}
	r.Pending, c.waiting = c, true
	if !c.late {
		c.timer = time.AfterFunc(c.of.Threshold, c.passed)
	}
	return true
}

func (c *contest) decided() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.winner != undecided
}

// begin starts a branch, once. gather is of its request.
func (c *contest) begin(i int, gather bool) {
	program := c.of.Primary
	if i == 1 {
		program = c.of.Secondary
	}
	c.mu.Lock()
	if c.started[i] || c.winner != undecided {
		c.mu.Unlock()
		return
	}
	c.started[i] = true
	b := c.of.run.At(c.parent, program, joined{c, i})
	c.branches[i] = b
	c.mu.Unlock()
	if b == nil {
		c.ended(i, false)
		return
	}
	b.Req.Gather = gather
	b.Start()
}

// joined tells a contest of the end of one branch.
type joined struct {
	c *contest
	i int
}

// Joined is part of policy.Joiner.
func (j joined) Joined(b *policy.Branch) { j.c.ended(j.i, b.Req.Out != nil && !b.Req.Policy.Failed) }

// passed notes that the threshold has passed.
func (c *contest) passed() {
	c.mu.Lock()
	c.late = true
	wake, next := c.settle()
	c.mu.Unlock()
	c.goOn(wake, next)
}

// ended notes the end of branch i.
func (c *contest) ended(i int, good bool) {
	c.mu.Lock()
	c.over[i], c.good[i] = true, good
	if c.winner != undecided { // too late to matter
		b := c.branches[i]
		c.branches[i] = nil
		c.mu.Unlock()
		if b != nil {
			b.Release()
		}
		return
	}
	wake, next := c.settle()
	c.mu.Unlock()
	c.goOn(wake, next)
}

// settle decides what can be decided. wake tells that the parent is to be woken,
// next that the second branch is to begin. c.mu is held.
func (c *contest) settle() (wake, next bool) {
	if c.winner != undecided {
		return false, false
	}
	lost := c.over[0] && !c.good[0]
	switch {
	case c.over[0] && c.good[0]:
		c.winner = 0
	case c.over[1] && c.good[1] && (!c.of.Standby || lost || c.late):
		c.winner = 1
	case lost && c.over[1] && !c.good[1]:
		c.winner = neither
	case (lost || c.late) && !c.started[1]:
		return false, true
	default:
		return false, false
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	wake, c.waiting = c.waiting, false
	return wake, false
}

func (c *contest) goOn(wake, next bool) {
	switch {
	case wake:
		c.parent.Waker.Wake()
	case next:
		c.begin(1, false)
	}
}

// finish takes the winner's response and gives back the branches that have ended.
func (c *contest) finish(r *serve.Request) policy.Next {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := policy.Fail
	if c.winner != neither {
		adopt(r, &c.branches[c.winner].Req)
		next = policy.Go
	}
	for i, b := range c.branches {
		if b != nil && c.over[i] {
			c.branches[i] = nil
			b.Release()
		}
	}
	return next
}

// adopt makes the response of a branch that of the request that it was made for.
func adopt(r, from *serve.Request) {
	if renamed(r) {
		r.Empty()
		r.Reply.AddMessage(from.Out)
		r.Reply.Flags = from.Reply.Flags
	} else {
		r.Adopt(from)
	}
	r.Note.Source, r.Note.Upstream = from.Note.Source, from.Note.Upstream
	r.Finish(from.Reply.Rcode())
}
