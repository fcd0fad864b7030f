package sections

import "github.com/waymark-dns/waymark/internal/plan"

// Programs is what the simple sections compile to: one program, and here is the
// one place where its order stands.
func Programs() []plan.Program {
	return []plan.Program{{Name: "default", Rules: []plan.Rule{
		{
			If:  []plan.Term{{Name: "transfer"}},
			Do:  plan.Term{Name: "reject", Args: "REFUSED"},
			Why: "a zone is given away by permission only, and there is none to give yet",
		},
		{
			If:  []plan.Term{{Name: "class", Args: "IN"}},
			Do:  plan.Term{Name: "zone"},
			Why: "our own data is right, whatever else could answer",
		},
		{
			If:  []plan.Term{{Name: "class", Args: "CH"}},
			Do:  plan.Term{Name: "chaos"},
			Why: "questions about the server itself; silent unless configured",
		},
		{
			Do:  plan.Term{Name: "reject", Args: "REFUSED"},
			Why: "nothing is left that could answer (RFC 8499: out of zone); no upward referral",
		},
	}}}
}
