package sections

import "github.com/waymark-dns/waymark/internal/plan"

// Programs is what the simple sections compile to: one program, and here is the
// one place where its order stands.
func Programs() []plan.Program {
	do := func(name, args, why string, conditions ...plan.Term) plan.Rule {
		return plan.Rule{If: conditions, Do: plan.Term{Name: name, Args: args}, Why: why}
	}
	class := func(name string) plan.Term { return plan.Term{Name: "class", Args: name} }
	return []plan.Program{{Name: "default", Rules: []plan.Rule{
		do("access", "", "who is asking is settled first, so that no other rule can be reached around it"),
		do("limits", "", "whoever asks too much is held back before there is any work to do"),
		do("reject", "REFUSED", "a zone is given away by permission only, and there is none to give yet", plan.Term{Name: "transfer"}),
		do("zone", "", "our own data is right, whatever else could answer", class("IN")),
		do("chaos", "", "questions about the server itself; silent unless configured", class("CH")),
		do("refuse", "18", "what is left are the names of others: for those who may use us", plan.Term{Name: "stranger"}),
		do("route", "", "before cache: clients with different upstreams must not share answers", class("IN")),
		do("cache", "", "what has been asked lately", class("IN")),
		do("local", "", "names that must not leave the site; behind the cache, which never has them", class("IN")),
		do("forward", "", "everything else", class("IN")),
		do("reject", "REFUSED", "nothing is left that could answer (RFC 8499: out of zone); no upward referral"),
	}}}
}
