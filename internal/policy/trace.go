package policy

import "github.com/waymark-dns/waymark/internal/serve"

// traceRule notes that a rule was looked at. failed is the condition that did not
// hold, or negative.
func (s *Set) traceRule(r *serve.Request, rule *Rule, failed int) {
	program := s.Programs[r.Policy.Program].Name
	switch {
	case failed < 0:
		r.Trace.Say("rule", rule.Where, "%s: %s", program, rule.Text)
	case failed < len(rule.Conds):
		r.Trace.Say("rule", rule.Where, "%s: %s: left out, %s does not hold", program, rule.Text, rule.Conds[failed])
	default:
		r.Trace.Say("rule", rule.Where, "%s: %s: left out, condition %d does not hold", program, rule.Text, failed+1)
	}
}

// traceResponse notes what a rule has made.
func traceResponse(r *serve.Request, rule *Rule, next Next) {
	switch {
	case next == Drop:
		r.Trace.Say("response", rule.Where, "none: the query is dropped")
	case next == Fail:
		r.Trace.Say("response", rule.Where, "none: the rule could not do its work")
	case r.Out != nil:
		r.Trace.Say("response", rule.Where, "%s from %s, %d octets", r.Reply.Rcode(), r.Note.Source, len(r.Out))
	}
}
