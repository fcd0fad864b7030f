package policy

import (
	"context"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Serve runs r from where its cursor stands as far as that goes without waiting.
func (s *Set) Serve(r *serve.Request) serve.Status {
	return s.run(context.Background(), r, false)
}

// Resume goes on with a detached request at the rule that stopped it.
func (s *Set) Resume(ctx context.Context, r *serve.Request) serve.Status {
	return s.run(ctx, r, true)
}

// run is the loop: next rule, matchers, step, where to go. patient tells
// whether a rule may wait.
func (s *Set) run(ctx context.Context, r *serve.Request, patient bool) serve.Status {
	rules := s.Programs[r.Policy.Program].Rules
	for int(r.Policy.Rule) < len(rules) {
		rule := &rules[r.Policy.Rule]
		if !matches(rule.If, r) {
			r.Policy.Rule++
			continue
		}
		var next Next
		switch {
		case rule.Do != nil:
			next = rule.Do.Do(r)
		case patient:
			next = rule.Wait.Wait(ctx, r)
		default:
			return serve.Wait
		}
		wrapped := r.Policy.Depth > 0 || rule.After != nil
		if wrapped && !patient && next != Drop && r.Reply.Truncated() {
			return serve.Wait // the wrappers have to see all of it: again, with more room
		}
		if rule.After != nil {
			s.push(r)
		}
		switch next {
		case Stop:
			return s.leave(r)
		case Drop:
			return serve.Drop
		}
		r.Policy.Rule++
	}
	return s.leave(r)
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
	return serve.Done
}
