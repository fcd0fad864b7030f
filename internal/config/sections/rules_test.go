package sections

import (
	"slices"
	"testing"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
)

// TestElsewhere: the actions that cannot stand in rules are actions, besides those of
// the flow between programs, which level 1 has none of.
func TestElsewhere(t *testing.T) {
	known := []string{"return", "jump", "goto"}
	for _, k := range act.Kinds() {
		known = append(known, k.Name)
	}
	for name := range elsewhere {
		if !slices.Contains(known, name) {
			t.Errorf("%s is no action", name)
		}
	}
	names := actions()
	slices.Sort(names)
	if len(slices.Compact(names)) != len(actions()) {
		t.Errorf("an action twice: %v", names)
	}
}

// TestSiteRules: the site's rules stand behind the check of who asks and in front of
// what is asked of others.
func TestSiteRules(t *testing.T) {
	p := plan.Default()
	without := names(Programs(p))
	p.Rules = []plan.Rule{{Do: plan.Term{Name: "mark", Args: "1"}}, {Do: plan.Term{Name: "ttl", Args: "1"}}}
	got := names(Programs(p))
	if p.Rules[0].Why != "" {
		t.Error("the plan was changed")
	}
	i := slices.Index(got, "mark")
	want := []string{"refuse", "mark", "ttl", "accept", "route"}
	if i < 1 || i+4 > len(got) || !slices.Equal(got[i-1:i+4], want) {
		t.Errorf("the program is %v, want %v in it", got, want)
	}
	if rest := slices.Concat(got[:i], got[i+3:]); !slices.Equal(rest, without) {
		t.Errorf("without the rules it is %v, want %v", rest, without)
	}
}

func names(programs []plan.Program) []string {
	var all []string
	for _, r := range programs[0].Rules {
		all = append(all, r.Do.Name)
	}
	return all
}
