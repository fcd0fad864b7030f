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

// again is what a rule says that is not over: it did not match, or is to run once
// more with more room.
const again Next = 255

// run is the loop: next rule, matchers, step, where to go.
func (s *Set) run(ctx context.Context, r *serve.Request, p patience) serve.Status {
	for {
		rules := s.Programs[r.Policy.Program].Rules
		var rule *Rule // nil at the end of a program
		next, status, waits := Return, serve.Done, false
		if at := int(r.Policy.Rule); at < len(rules) {
			rule = &rules[at]
			next, status, waits = s.try(ctx, r, rule, p)
		}
		over := waits
		if !waits && next != again {
			status, over = s.turn(r, rule, next)
		}
		if over {
			return status
		}
	}
}

// try runs a rule where its conditions hold. waits tells that the request has to
// wait, as status says; it may be in other hands already then.
func (s *Set) try(ctx context.Context, r *serve.Request, rule *Rule, p patience) (next Next, status serve.Status, waits bool) {
	c := &r.Policy
	if r.Pending == nil && !c.Matched {
		failed := matches(rule.If, r)
		if r.Trace != nil {
			s.traceRule(r, rule, failed)
		}
		if failed >= 0 {
			c.Rule++
			return again, 0, false
		}
	}
	c.Matched = false
	none := r.Out == nil
	next, ran := rule.do(ctx, r, p)
	if ran && rule.decides(r, next, none) {
		r.Note.Rule = rule.Number
		if r.Trace != nil {
			traceResponse(r, rule, next)
		}
	}
	switch {
	case !ran:
		c.Matched = true // once: a matcher may count
		return 0, serve.Wait, true
	case next == Pend:
		return 0, serve.Pending, true
	case !s.cramped(r, rule, next):
		return next, 0, false
	case p == atOnce: // again, with more room
		c.Matched = true
		return 0, serve.Wait, true
	case r.Grow(wire.MaxMessage):
		c.Matched = true
		return again, 0, false
	}
	return next, 0, false
}

// cramped tells whether the response did not fit and has to be whole: a wrapper has
// to see it, or the client's transport has room for it.
func (s *Set) cramped(r *serve.Request, rule *Rule, next Next) bool {
	return r.Reply.Truncated() && next != Drop && (rule.After != nil || r.Policy.Depth > 0 || r.Peer.Proto.Stream())
}

// turn goes where next says, behind rule. over tells that the way ends there.
func (s *Set) turn(r *serve.Request, rule *Rule, next Next) (status serve.Status, over bool) {
	c := &r.Policy
	if rule != nil && rule.After != nil {
		if c.Depth == serve.MaxFrames {
			next = Fail
		} else {
			s.push(r)
		}
	}
	if c.Depth == serve.MaxFrames && next == Call || c.Jumps == serve.MaxFrames && next == Jump {
		next = Fail // how deep a program goes depends on the rules that match
	}
	switch next {
	case Go:
		c.Rule++
		return 0, false
	case Return:
		if c.Jumps > c.Base {
			c.Jumps--
			c.Place = c.Returns[c.Jumps]
			return 0, false
		}
	case Jump:
		c.Returns[c.Jumps] = serve.Place{Program: c.Program, Rule: c.Rule + 1}
		c.Jumps++
		c.Place = serve.Place{Program: rule.To}
		return 0, false
	case Goto:
		c.Jumps = c.Base
		c.Place = serve.Place{Program: rule.To}
		return 0, false
	case Call:
		c.Frames[c.Depth] = serve.Frame{Place: serve.Place{Program: c.Program, Rule: c.Rule + 1}, Call: true, Base: c.Base}
		c.Depth++
		c.Base = c.Jumps
		c.Place = serve.Place{Program: rule.To}
		return 0, false
	case Drop:
		return serve.Drop, true
	case Fail:
		c.Failed, r.Out = true, nil
	}
	return s.leave(r)
}

// do runs the rule, where that may be done with so much patience.
func (rule *Rule) do(ctx context.Context, r *serve.Request, p patience) (next Next, ran bool) {
	switch {
	case rule.Do != nil:
		next = rule.Do.Do(r)
	case rule.Start == nil && rule.Wait == nil:
	case p == atOnce:
		return Go, false
	case rule.Start != nil:
		next = rule.Start.Start(r)
	case p == detached:
		return Go, false
	default:
		next = rule.Wait.Wait(ctx, r)
	}
	if next == Go {
		next = rule.Then
	}
	return next, true
}

// decides tells whether the response, or that there is none, is due to the rule.
// none tells that there was no response before.
func (rule *Rule) decides(r *serve.Request, next Next, none bool) bool {
	switch {
	case next == Pend: // r may be in other hands
		return false
	case next == Drop || next == Fail:
		return true
	case none:
		return r.Out != nil || next == Stop
	}
	return next == Stop && (rule.Do != nil || rule.Start != nil || rule.Wait != nil)
}

// matches is the first condition that does not hold, or negative.
func matches(conditions []Matcher, r *serve.Request) int {
	for i, m := range conditions {
		if !m.Match(r) {
			return i
		}
	}
	return -1
}

// push leaves the frame of the current rule.
func (s *Set) push(r *serve.Request) {
	c := &r.Policy
	f := c.Frame()
	f.Place, f.Call = c.Place, false
	c.Depth++
}

// leave lets the response pass the wrappers, the last one first, up to a call that
// goes on; over is false then. Where nothing is left, a request that no rule
// answered is refused.
func (s *Set) leave(r *serve.Request) (status serve.Status, over bool) {
	c := &r.Policy
	for c.Depth > 0 {
		c.Depth--
		f := &c.Frames[c.Depth]
		if !f.Call {
			s.Programs[f.Program].Rules[f.Rule].After.After(r, f)
			continue
		}
		c.Jumps, c.Base = c.Base, f.Base
		if !c.Failed {
			c.Place = f.Place
			return 0, false
		}
	}
	if r.Trace != nil && r.Out == nil {
		r.Trace.Say("policy", "", "the programs have ended without a response")
	}
	switch {
	case c.Silent:
		return serve.Drop, true
	case c.Branch:
	case r.Out != nil && (r.Reply.Rcode() < extended || r.EDNS.Present):
	case r.Out != nil: // a client without EDNS would read another code (RFC 6891 §6.1.3)
		r.Empty()
		r.Finish(wire.ServFail)
	case c.Failed:
		r.Note.Source = serve.SourceError
		r.Empty()
		r.Finish(wire.ServFail)
	default:
		r.Note.Source = serve.SourceRefused
		r.Empty()
		r.Finish(wire.Refused)
	}
	if !c.Branch {
		copyCD(r)
	}
	return serve.Done, true
}

// extended is the first code that takes EDNS to say.
const extended = 16

// copyCD gives the response the query's CD, as resolvers must (RFC 4035 §3.2.2); where
// we are authoritative it stays clear (§3.1.6).
func copyCD(r *serve.Request) {
	b := &r.Reply
	if r.Flags&wire.FlagCD != 0 && b.Flags&(wire.FlagRA|wire.FlagAA|wire.FlagCD) == wire.FlagRA {
		b.Flags |= wire.FlagCD
		r.Finish(b.Rcode())
	}
}
