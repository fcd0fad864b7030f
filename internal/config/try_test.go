package config

import (
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
	"github.com/waymark-dns/waymark/internal/policy/match"
)

// TestTryAll: every matcher and action can be tried at both levels with any
// arguments, although there is nothing for it to stand on.
func TestTryAll(t *testing.T) {
	all := []string{"", "x", "1", "1 2", "10.0.0.1", "IN", "A=b", "192.0.2.1:53", "inet,t,s,ipv4_addr,24", "s,inet,24", "$x", "0.5", "url_path zl"}
	for _, level2 := range []bool{false, true} {
		sound := map[string]bool{}
		for _, args := range all {
			var rules []plan.Rule
			at := map[plan.Pos]string{}
			add := func(name string, do bool) {
				term := plan.Term{Pos: plan.Pos{File: "f", Line: len(at) + 1}, Name: name, Args: args}
				at[term.Pos] = name
				if do {
					rules = append(rules, plan.Rule{Do: term})
				} else {
					rules = append(rules, plan.Rule{If: []plan.Term{term}})
				}
			}
			for _, k := range match.Kinds() {
				add(k.Name, false)
			}
			for _, k := range act.Kinds() {
				add(k.Name, true)
			}
			bad := map[string]bool{}
			for _, problem := range try(&plan.Plan{Level2: level2, Programs: []plan.Program{{Rules: rules}}}) {
				bad[at[problem.Pos]] = true
			}
			for _, name := range at {
				sound[name] = sound[name] || !bad[name]
			}
		}
		for name, ok := range sound {
			if !ok {
				t.Errorf("level 2 %v: %s takes none of %q", level2, name, all)
			}
		}
	}
}

// TestTryBounded: what a file holds cannot make problems without end, and none
// longer than a line.
func TestTryBounded(t *testing.T) {
	exps := make([]string, 5000)
	for i := range exps {
		exps[i] = "regexp:(" + strings.Repeat("\n", 1000)
	}
	problems := try(&plan.Plan{Level2: true, Objects: []plan.Object{{Tag: "a", Type: "domain_set", Args: &act.DomainSetArgs{Exps: exps}}}})
	if len(problems) != maxTried {
		t.Errorf("%d problems, want %d", len(problems), maxTried)
	}
	for _, problem := range problems {
		if len(problem.Text) > 2000 || strings.Contains(problem.Text, "\n") {
			t.Fatalf("not a line: %q", problem.Text)
		}
	}
}
