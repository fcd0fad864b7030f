// Package program makes programs of the policy of a plan's rules and objects, which are
// words: names and arguments are resolved here, once, and nothing is looked up by name
// when a query runs. It knows no engine but through act.Env; app calls it.
package program

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/act"
	"github.com/waymark-dns/waymark/internal/policy/match"
	"github.com/waymark-dns/waymark/internal/policy/step"
)

// Programs is what has been made.
type Programs struct {
	Set *policy.Set

	env     *act.Env
	number  func(text string) uint16 // of rules, for the log
	numbers map[string]uint16        // of programs, by tag
}

// Compile makes the objects and programs of p. The first program is the first of
// p.Programs. number gives rules their numbers, for the log. Errors say where in the
// configuration they belong.
func Compile(p *plan.Plan, env *act.Env, number func(text string) uint16) (*Programs, error) {
	c := &Programs{env: env, number: number, Set: &policy.Set{Programs: make([]policy.Program, len(p.Programs))}, numbers: map[string]uint16{}}
	for i, program := range p.Programs {
		c.numbers[program.Name] = uint16(i)
		c.Set.Programs[i].Name = program.Name
	}
	env.Match.Objects = map[string]any{}
	env.Program = c.program
	for _, o := range p.Objects {
		made, err := c.object(o)
		if err != nil {
			return nil, fmt.Errorf("%s: making %s %s: %w", o.Pos, o.Type, o.Tag, err)
		}
		env.Match.Objects[o.Tag] = made
	}
	for i, program := range p.Programs {
		rules, err := c.rules(program)
		if err != nil {
			return nil, err
		}
		c.Set.Programs[i].Rules = rules
	}
	return c, nil
}

func (c *Programs) object(o plan.Object) (any, error) {
	for _, k := range act.ObjectKinds() {
		if k.Type == o.Type {
			return k.Make(c.env, o.Tag, o.Args)
		}
	}
	return nil, errors.New("no such type")
}

// program is the number of the program with that tag, or of one that is made of
// the object with that tag alone.
func (c *Programs) program(tag string) (uint16, error) {
	if n, ok := c.numbers[tag]; ok {
		return n, nil
	}
	rule := policy.Rule{Text: "$" + tag, Number: c.number("$" + tag)}
	if err := c.do(&rule, plan.Term{Name: "$" + tag}); err != nil {
		return 0, err
	}
	n := uint16(len(c.Set.Programs))
	c.numbers[tag] = n
	c.Set.Programs = append(c.Set.Programs, policy.Program{Name: tag, Rules: []policy.Rule{rule}})
	return n, nil
}

// Entries is the program of each listener, by its URL.
func (c *Programs) Entries(p *plan.Plan) (map[string]uint16, error) {
	all := map[string]uint16{}
	for _, l := range p.Listen {
		n, err := c.program(l.Entry)
		if err != nil {
			return nil, fmt.Errorf("%s: reading entry of %s: %w", l.Pos, l, err)
		}
		all[l.String()] = n
	}
	return all, nil
}

func (c *Programs) rules(p plan.Program) ([]policy.Rule, error) {
	var rules []policy.Rule
	for i, r := range p.Rules {
		rule, err := c.rule(r)
		switch {
		case errors.Is(err, errLeftOut):
		case err != nil:
			return nil, fmt.Errorf("%s: compiling rule %d of %s: %w", r.Pos, i+1, p.Name, err)
		default:
			rule.Number = c.number(ruleName(p.Name, rule))
			rules = append(rules, rule)
		}
	}
	fuse(rules)
	return rules, nil
}

// errLeftOut is a rule whose part of the server is not configured.
var errLeftOut = errors.New("left out")

// ruleName is how the log and explanations name a rule of a program.
func ruleName(program string, rule policy.Rule) string {
	name := program + ": " + rule.Text
	if rule.Where != "" {
		name = rule.Where + " " + name
	}
	return name
}

func (c *Programs) rule(r plan.Rule) (policy.Rule, error) {
	rule := policy.Rule{Text: r.String()}
	if r.Pos.File != "" {
		rule.Where = r.Pos.String()
	}
	for _, t := range r.If {
		m, err := c.matcher(t)
		if err != nil {
			return rule, err
		}
		if t.Not {
			m = match.Not{Matcher: m}
		}
		rule.If = append(rule.If, m)
		rule.Conds = append(rule.Conds, t.String())
	}
	return rule, c.do(&rule, r.Do)
}

func (c *Programs) matcher(t plan.Term) (policy.Matcher, error) {
	if tag, ok := strings.CutPrefix(t.Name, "$"); ok {
		m, ok := c.env.Match.Objects[tag].(policy.Matcher)
		if !ok {
			return nil, fmt.Errorf("%s is no matcher", t.Name)
		}
		return m, nil
	}
	for _, k := range match.Kinds() {
		if k.Name == t.Name {
			return k.Make(c.env.Match, t.Args)
		}
	}
	return nil, fmt.Errorf("no matcher %q", t.Name)
}

// do fills in what the rule does.
func (c *Programs) do(rule *policy.Rule, t plan.Term) error {
	if tag, ok := strings.CutPrefix(t.Name, "$"); ok {
		return c.refer(rule, tag, t.Args)
	}
	switch t.Name {
	case "accept":
		rule.Then = policy.Stop
		return nil
	case "return":
		rule.Then = policy.Return
		return nil
	case "jump":
		return c.flow(rule, policy.Jump, t.Args)
	case "goto":
		return c.flow(rule, policy.Goto, t.Args)
	case "mark":
		return c.mark(rule, t.Args)
	}
	for _, k := range act.Kinds() {
		if k.Name == t.Name {
			action, err := k.Make(c.env, t.Args)
			if err == nil {
				err = place(rule, action)
			}
			return err
		}
	}
	return fmt.Errorf("no action %q", t.Name)
}

// refer makes the rule do what has that tag.
func (c *Programs) refer(rule *policy.Rule, tag, args string) error {
	object, ok := c.env.Match.Objects[tag]
	if !ok {
		return c.flow(rule, policy.Call, tag)
	}
	if args != "" {
		with, ok := object.(act.Arguments)
		if !ok {
			return fmt.Errorf("$%s takes no arguments", tag)
		}
		var err error
		if object, err = with.With(args); err != nil {
			return err
		}
	}
	return place(rule, object)
}

func (c *Programs) flow(rule *policy.Rule, next policy.Next, tag string) error {
	n, ok := c.numbers[tag]
	if !ok {
		return fmt.Errorf("no sequence %q", tag)
	}
	rule.Then, rule.To = next, n
	return nil
}

func (c *Programs) mark(rule *policy.Rule, args string) error {
	var marks step.Mark
	for _, word := range strings.Fields(args) {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return fmt.Errorf("reading mark: %w", err)
		}
		number, err := c.env.Match.Marks.Number(uint32(n))
		if err != nil {
			return err
		}
		marks = append(marks, number)
	}
	rule.Do = marks
	return nil
}

// place puts an action where the rule runs it. The quickest way that it knows is
// taken; it may wrap the rest as well.
func place(rule *policy.Rule, action any) error {
	if action == nil {
		return errLeftOut
	}
	if f, ok := action.(policy.Finisher); ok {
		rule.After = f
	}
	switch a := action.(type) {
	case policy.Step:
		rule.Do = a
	case policy.Starter:
		rule.Start = a
	case policy.Waiter:
		rule.Wait = a
	default:
		return fmt.Errorf("%T is nothing that a rule can do", action)
	}
	return nil
}

// fuse makes a step end the program at once where the next rule would do just
// that: has_resp, accept.
func fuse(rules []policy.Rule) {
	for i := range rules {
		if i+1 == len(rules) {
			return
		}
		f, ok := rules[i].Do.(act.Fuser)
		next := &rules[i+1]
		if !ok || next.Then != policy.Stop || next.Do != nil || next.Start != nil || next.Wait != nil || len(next.If) != 1 {
			continue
		}
		if _, ok := next.If[0].(match.HasResp); ok {
			rules[i].Do = f.Fuse()
		}
	}
}
