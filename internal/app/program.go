package app

import (
	"fmt"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/act"
	"github.com/waymark-dns/waymark/internal/policy/match"
	"github.com/waymark-dns/waymark/internal/serve"
)

// compile makes programs of rules in words. Names and arguments are resolved
// here, once; nothing is looked up by name when a query runs.
func compile(programs []plan.Program, env *act.Env) (*policy.Set, error) {
	set := &policy.Set{}
	for _, p := range programs {
		made := policy.Program{Name: p.Name}
		frames := 0
		for i, r := range p.Rules {
			rule, err := compileRule(r, env)
			if err != nil {
				return nil, fmt.Errorf("compiling rule %d of program %s: %w", i+1, p.Name, err)
			}
			if rule.After != nil {
				frames++
			}
			made.Rules = append(made.Rules, rule)
		}
		if frames > serve.MaxFrames {
			return nil, fmt.Errorf("compiling program %s: %d rules wrap the response, at most %d can", p.Name, frames, serve.MaxFrames)
		}
		set.Programs = append(set.Programs, made)
	}
	return set, nil
}

func compileRule(r plan.Rule, env *act.Env) (policy.Rule, error) {
	rule := policy.Rule{Text: r.String()}
	for _, t := range r.If {
		m, err := makeMatcher(t)
		if err != nil {
			return rule, err
		}
		rule.If = append(rule.If, m)
	}
	for _, k := range act.Kinds() {
		if k.Name == r.Do.Name {
			step, err := k.Make(env, r.Do.Args)
			rule.Do = step
			return rule, err
		}
	}
	return rule, fmt.Errorf("no action %q", r.Do.Name)
}

func makeMatcher(t plan.Term) (policy.Matcher, error) {
	for _, k := range match.Kinds() {
		if k.Name == t.Name {
			return k.Make(t.Args)
		}
	}
	return nil, fmt.Errorf("no matcher %q", t.Name)
}
