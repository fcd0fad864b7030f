package sections

import (
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/plan"
)

// Programs is what the simple sections of p compile to: one program, and here is
// the one place where its order stands.
func Programs(p *plan.Plan) []plan.Program {
	do := func(name, args, why string, conditions ...plan.Term) plan.Rule {
		return plan.Rule{If: conditions, Do: plan.Term{Name: name, Args: args}, Why: why}
	}
	class := func(name string) plan.Term { return plan.Term{Name: "class", Args: name} }
	rules := []plan.Rule{
		do("access", "", "who is asking is settled first, so that no other rule can be reached around it"),
		do("limits", "", "whoever asks too much is held back before there is any work to do"),
		do("reject", "REFUSED", "a zone is given away by permission only, and there is none to give yet", plan.Term{Name: "transfer"}),
		do("zone", "", "our own data is right, whatever else could answer", class("IN")),
		do("chaos", "", "questions about the server itself; silent unless configured", class("CH")),
		do("refuse", "18", "what is left are the names of others: for those who may use us", plan.Term{Name: "stranger"}),
	}
	if own := siteRules(p); len(own) > 0 {
		rules = append(rules, own...)
		rules = append(rules, do("accept", "", "what the site's own rules have answered is the answer", plan.Term{Name: "has_resp"}))
	}
	rules = append(rules,
		do("route", "", "before cache: clients with different upstreams must not share answers", class("IN")),
		do("cache", "", "what has been asked lately", class("IN")),
		do("local", "", "names that must not leave the site; behind the cache, which never has them", class("IN")),
		do("forward", "", "everything else", class("IN")),
		do("reject", "REFUSED", "nothing is left that could answer (RFC 8499: out of zone); no upward referral"),
	)
	program := plan.Program{Name: "default", Rules: rules}
	if n := len(p.Objects); n > 0 {
		program.Order = n + 1
	}
	return []plan.Program{program}
}

// siteRules is the rules that are written. They come before the cache, since what
// they answer may change with the client, and is at hand.
func siteRules(p *plan.Plan) []plan.Rule {
	rules := slices.Clone(p.Rules)
	for i := range rules {
		rules[i].If = slices.Clone(rules[i].If)
		for j, t := range rules[i].If {
			rules[i].If[j] = ofSet(p, t)
		}
	}
	if len(rules) > 0 {
		rules[0].Why = "the site's own rules: before the cache, since what they answer may change with the client"
	}
	return rules
}

// ofSet is the matcher that a set stands for where it stands alone.
func ofSet(p *plan.Plan, t plan.Term) plan.Term {
	tag, isTag := strings.CutPrefix(t.Name, "$")
	o := p.Object(tag)
	if !isTag || o == nil {
		return t
	}
	switch o.Type {
	case domainSet:
		t.Name, t.Args = "qname", "$"+tag
	case ipSet:
		t.Name, t.Args = "client_ip", "$"+tag
	}
	return t
}
