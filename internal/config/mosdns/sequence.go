package mosdns

import (
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

// ruleKeys are the keys of a rule.
var ruleKeys = []string{"matches", "exec"}

// sequence adds a program.
func (f *file) sequence(p plugin) {
	program := plan.Program{Pos: p.pos, Name: p.tag}
	for _, n := range items(p.args) {
		if f.src.Full() {
			break
		}
		if rule, ok := f.rule(n); ok {
			program.Rules = append(program.Rules, rule)
		}
	}
	f.order++
	program.Order = f.order
	f.plan.Programs = append(f.plan.Programs, program)
}

func (f *file) rule(n *tree.Node) (rule plan.Rule, ok bool) {
	if n.Kind == tree.Broken {
		return rule, false
	}
	if n.Kind != tree.Mapping {
		f.src.Problem(n.Pos, "write for example {matches: qtype 1, exec: accept}", "sequence: expected a rule, got %s", n.Describe())
		return rule, false
	}
	rule.Pos = n.Pos
	d := &decoder{src: f.src}
	exec := &tree.Node{Pos: n.Pos}
	for _, p := range d.pairs(n, ruleKeys, "sequence") {
		if strings.EqualFold(p.Key, "exec") {
			exec = p.Value
			continue
		}
		for _, item := range items(p.Value) {
			if t, ok := f.matcher(item); ok {
				rule.If = append(rule.If, t)
			}
		}
	}
	rule.Do, ok = f.action(exec)
	return rule, ok
}

// term reads the text of a matcher or an action: name or $tag, a space, and the
// arguments as one text. what is how people call it.
func (f *file) term(n *tree.Node, what string) (t plan.Term, ok bool) {
	if n.Kind == tree.Broken {
		return t, false
	}
	var text string
	d := &decoder{src: f.src}
	if n.Kind == tree.List || n.Kind == tree.Mapping {
		d.into(n, &text, what) // which tells
		return t, false
	}
	d.into(n, &text, what)
	t = plan.ParseTerm(n.Pos, text, what == "matches")
	if t.Name == "" || t.Name == "$" {
		f.src.Problem(n.Pos, "write a name, or $ and a tag", "%s is empty", what)
		return t, false
	}
	return t, true
}

func (f *file) matcher(n *tree.Node) (plan.Term, bool) {
	t, ok := f.term(n, "matches")
	if !ok {
		return t, false
	}
	if tag, isTag := strings.CutPrefix(t.Name, "$"); isTag {
		if is := f.find(t.Pos, tag); is == sequence || is == server {
			f.src.Problem(t.Pos, "", "matches: plugin %s is no matcher", tag)
		}
		return t, true
	}
	if !slices.Contains(f.Tables.Matchers, t.Name) {
		f.unknownWord(t, "matches", f.Tables.Matchers, allMatchers)
		return t, true
	}
	if t.NamesSets() {
		for _, word := range strings.Fields(t.Args) {
			if tag, isTag := strings.CutPrefix(word, "$"); isTag {
				f.find(t.Pos, tag)
			}
		}
	}
	return t, true
}

func (f *file) action(n *tree.Node) (plan.Term, bool) {
	t, ok := f.term(n, "exec")
	if !ok {
		return t, false
	}
	tag, isTag := strings.CutPrefix(t.Name, "$")
	switch {
	case isTag:
		if f.find(t.Pos, tag) == server {
			f.src.Problem(t.Pos, "", "exec: plugin %s is a server, which no rule can run", tag)
		}
	case t.Name == "jump" || t.Name == "goto":
		f.jump(t)
	case !slices.Contains(f.Tables.Actions, t.Name):
		f.unknownWord(t, "exec", f.Tables.Actions, allActions)
	}
	return t, true
}

// jump looks up the sequence that jump or goto leads to.
func (f *file) jump(t plan.Term) {
	switch {
	case t.Args == "":
		f.src.Problem(t.Pos, "write "+t.Name+" and the tag of a sequence", "exec: %s to nowhere", t.Name)
	case strings.HasPrefix(t.Args, "$"):
		f.src.Problem(t.Pos, "write "+t.Name+" "+t.Args[1:], "exec: behind %s the tag has no $", t.Name)
	default:
		if is := f.find(t.Pos, t.Args); is == object || is == server {
			f.src.Problem(t.Pos, "", "exec: %s %s: that is no sequence", t.Name, t.Args)
		}
	}
}

// unknownWord tells of a name that is in no table. all is what mosdns has.
func (f *file) unknownWord(t plan.Term, what string, known, all []string) {
	if slices.Contains(all, t.Name) {
		f.src.Problem(t.Pos, "", "%s: %s is not in this version yet", what, t.Name)
		return
	}
	mend := ""
	switch near := plan.Nearest(t.Name, slices.Concat(known, all)); {
	case strings.Contains(t.Name, "\t"):
		mend = "put a space behind the name, not a tab"
	case f.tags[t.Name].pos.File != "":
		mend = "write $" + t.Name
	case near != "":
		mend = "write " + near
	}
	f.src.Problem(t.Pos, mend, "%s: unknown name %s", what, tree.Quote(t.Name))
}
