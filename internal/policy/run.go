package policy

import (
	"context"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// patience is how long a run may take.
type patience uint8

const (
	atOnce   patience = iota // on memory that is not the request's own: nothing may wait
	detached                 // what needs no goroutine may wait
	patient                  // everything may
)

// Serve runs r from where its cursor stands as far as that goes without waiting.
func (s *Set) Serve(r *serve.Request) serve.Status {
	return s.run(context.Background(), r, atOnce)
}

// Start goes on with a detached request at the rule that stopped it.
func (s *Set) Start(r *serve.Request) serve.Status {
	return s.run(context.Background(), r, detached)
}

// Resume goes on with a detached request at the rule that stopped it, and waits
// where a rule has to.
func (s *Set) Resume(ctx context.Context, r *serve.Request) serve.Status {
	return s.run(ctx, r, patient)
}

// run is the loop: next rule, matchers, step, where to go.
func (s *Set) run(ctx context.Context, r *serve.Request, p patience) serve.Status {
	rules := s.Programs[r.Policy.Program].Rules
	for int(r.Policy.Rule) < len(rules) {
		rule := &rules[r.Policy.Rule]
		if r.Pending == nil && !matches(rule.If, r) {
			r.Policy.Rule++
			continue
		}
		next, ran := rule.do(ctx, r, p)
		switch {
		case !ran:
			return serve.Wait
		case next == Pend: // r may be in other hands already
			return serve.Pending
		}
		if next != Drop && r.Reply.Truncated() && (rule.After != nil || s.wantsAll(r)) {
			if p == atOnce {
				return serve.Wait // again, with more room
			}
			if r.Grow(wire.MaxMessage) {
				continue
			}
		}
		if status, over := s.pass(r, rule, next); over {
			return status
		}
		r.Policy.Rule++
	}
	return s.leave(r)
}

// pass does what next says behind rule. over tells that no rule follows now.
func (s *Set) pass(r *serve.Request, rule *Rule, next Next) (status serve.Status, over bool) {
	if rule.After != nil {
		s.push(r)
	}
	switch next {
	case Stop:
		return s.leave(r), true
	case Drop:
		return serve.Drop, true
	}
	return 0, false
}

// wantsAll tells whether the response has to be whole: a wrapper has to see it,
// or the client's transport has room for it.
func (s *Set) wantsAll(r *serve.Request) bool {
	return r.Policy.Depth > 0 || r.Peer.Proto.Stream()
}

// do runs the rule, where that may be done with so much patience.
func (rule *Rule) do(ctx context.Context, r *serve.Request, p patience) (next Next, ran bool) {
	switch {
	case rule.Do != nil:
		return rule.Do.Do(r), true
	case p == atOnce:
		return Go, false
	case rule.Start != nil:
		return rule.Start.Start(r), true
	case p == detached:
		return Go, false
	}
	return rule.Wait.Wait(ctx, r), true
}

func matches(conditions []Matcher, r *serve.Request) bool {
	for _, m := range conditions {
		if !m.Match(r) {
			return false
		}
	}
	return true
}

// push leaves a frame of the current rule. That there is room is checked when
// programs are compiled.
func (s *Set) push(r *serve.Request) {
	c := &r.Policy
	c.Frames[c.Depth] = serve.Frame{Rule: c.Rule}
	c.Depth++
}

// leave lets the response pass the wrappers, the last one first. A request that
// no rule answered is refused.
func (s *Set) leave(r *serve.Request) serve.Status {
	if r.Out == nil {
		r.Note.Source = serve.SourceRefused
		r.Finish(wire.Refused)
	}
	c := &r.Policy
	for c.Depth > 0 {
		c.Depth--
		f := &c.Frames[c.Depth]
		s.Programs[c.Program].Rules[f.Rule].After.After(r, f)
	}
	if r.Out == nil {
		return serve.Drop
	}
	return serve.Done
}
