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
			if rule.Do == nil && rule.Start == nil && rule.Wait == nil {
				continue // its part of the server is not configured
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
			action, err := k.Make(env, r.Do.Args)
			if err == nil {
				err = place(&rule, action)
			}
			return rule, err
		}
	}
	return rule, fmt.Errorf("no action %q", r.Do.Name)
}

// place puts an action where the rule runs it. The quickest way that it knows is
// taken; it may wrap the rest as well.
func place(rule *policy.Rule, action any) error {
	if f, ok := action.(policy.Finisher); ok {
		rule.After = f
	}
	switch a := action.(type) {
	case nil:
	case policy.Step:
		rule.Do = a
	case policy.Starter:
		rule.Start = a
	case policy.Waiter:
		rule.Wait = a
	default:
		return fmt.Errorf("action %T does nothing", action)
	}
	return nil
}

func makeMatcher(t plan.Term) (policy.Matcher, error) {
	for _, k := range match.Kinds() {
		if k.Name == t.Name {
			return k.Make(t.Args)
		}
	}
	return nil, fmt.Errorf("no matcher %q", t.Name)
}
