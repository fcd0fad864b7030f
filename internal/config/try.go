package config

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/nameset"
	"github.com/waymark-dns/waymark/internal/netsets"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
	"github.com/waymark-dns/waymark/internal/policy/match"
	"github.com/waymark-dns/waymark/internal/upstream"
)

// trial makes matchers and actions to see that their arguments are sound, with
// nothing behind them: no engine is made, no socket opened, and sets stay empty.
type trial struct {
	plan     *plan.Plan
	env      *act.Env
	matchers map[string]match.Kind
	actions  map[string]act.Kind
	problems []plan.Problem
}

// maxTried bounds how many problems a trial tells, and maxHints how many of them
// with a hint that takes a search.
const maxTried, maxHints = 1000, 100

// try returns what is wrong with the entries and files of sets and with the arguments
// of matchers and actions. That what is named exists, was told for level 2 when it was
// read.
func try(p *plan.Plan) []plan.Problem {
	t := &trial{plan: p, matchers: map[string]match.Kind{}, actions: map[string]act.Kind{}}
	t.env = &act.Env{
		Match:    &match.Env{Objects: map[string]any{}, Marks: &match.Marks{}},
		Level2:   p.Level2,
		NewGroup: func(upstream.Config) (act.Asked, error) { return act.Asked{}, nil },
		NewCache: func(string, cache.Config) (*cache.Cache, error) { return nil, nil },
		NetSets:  &netsets.Writer{},
	}
	for _, k := range match.Kinds() {
		t.matchers[k.Name] = k
	}
	for _, k := range act.Kinds() {
		t.actions[k.Name] = k
	}
	for i, o := range p.Objects {
		path := fmt.Sprintf("sets[%d]", i)
		if p.Level2 {
			path = "plugins." + o.Tag
		}
		t.set(path, o)
	}
	t.rules(p.Rules)
	for _, program := range p.Programs {
		t.rules(program.Rules)
	}
	return t.problems
}

func (t *trial) rules(rules []plan.Rule) {
	for _, r := range rules {
		for _, term := range r.If {
			t.matcher(term)
		}
		t.action(r.Do)
	}
}

// add notes a problem. Errors may have texts of the file in them: they are put on
// one line.
func (t *trial) add(pos plan.Pos, mend, format string, args ...any) {
	if len(t.problems) == maxTried {
		return
	}
	const longest = 300 // runes
	text := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return utf8.RuneError
		}
		return c
	}, fmt.Sprintf(format, args...))
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	t.problems = append(t.problems, plan.Problem{Pos: pos, Text: text, Mend: mend})
}

// set looks at the entries of an object, if it is a set. path is where it stands.
func (t *trial) set(path string, o plan.Object) {
	switch args := o.Args.(type) {
	case *act.DomainSetArgs:
		keys := t.keys("domains", "exps")
		b := nameset.NewBuilder(len(args.Exps))
		t.entries(path+"."+keys, o.Tag, args.Exps, func(text string) error {
			x, err := nameset.ParseExpr(text, nameset.Domain)
			if err == nil {
				err = b.Add(x, 0)
			}
			return err
		})
		t.files(path+".files", o.Tag, args.Files)
		put(t, o.Tag, match.NewDomainSet(nil))
		others[*match.DomainSet](t, path+".sets", o.Tag, args.Sets, "names")
	case *act.IPSetArgs:
		var list match.PrefixList
		t.entries(path+"."+t.keys("addresses", "ips"), o.Tag, args.IPs, list.Add)
		t.files(path+".files", o.Tag, args.Files)
		put(t, o.Tag, match.NewIPSet(nil))
		others[*match.IPSet](t, path+".sets", o.Tag, args.Sets, "addresses")
	}
}

// keys is what the key is called at the level of the plan.
func (t *trial) keys(level1, level2 string) string {
	if t.plan.Level2 {
		return level2
	}
	return level1
}

// put makes a set known. Of two with one tag the first counts.
func put[T any](t *trial, tag string, set T) {
	if _, ok := t.env.Match.Objects[tag]; !ok {
		t.env.Match.Objects[tag] = set
	}
}

// entries adds each to a set. An empty one was told when it was read.
func (t *trial) entries(path, tag string, all []string, add func(string) error) {
	for i, text := range all {
		if text == "" && !t.plan.Level2 {
			continue
		}
		if err := add(text); err != nil {
			t.add(t.plan.At(fmt.Sprintf("%s[%d]", path, i)), "", "set %s: %s: %v", tag, tree.Quote(text), err)
		}
	}
}

// files looks whether each can be read; an empty name is no file.
func (t *trial) files(path, tag string, all []string) {
	for i, file := range all {
		if file == "" {
			continue
		}
		if trouble, mend := plan.Unreadable(file); trouble != "" {
			t.add(t.plan.At(fmt.Sprintf("%s[%d]", path, i)), mend, "set %s: %s", tag, trouble)
		}
	}
}

// others looks whether the sets that a set has in it are of its kind.
func others[T any](t *trial, path, tag string, tags []string, of string) {
	for i, other := range tags {
		if o := t.plan.Object(other); o == nil {
			continue // which was told
		}
		if _, ok := t.env.Match.Objects[other].(T); !ok {
			t.add(t.plan.At(fmt.Sprintf("%s[%d]", path, i)), "", "set %s: %s is no set of %s", tag, tree.Quote(other), of)
		}
	}
}

// matcher tries one condition.
func (t *trial) matcher(term plan.Term) {
	if tag, isTag := strings.CutPrefix(term.Name, "$"); isTag {
		t.alone(term, tag)
		return
	}
	k, ok := t.matchers[term.Name]
	if !ok {
		return
	}
	if term.NamesSets() {
		term.Args, ok = t.words(term)
	}
	if !ok {
		return
	}
	if _, err := k.Make(t.env.Match, term.Args); err != nil {
		t.add(term.Pos, "", "%s: %v", term.Name, err)
	}
}

// alone looks at a tag that stands for a condition by itself.
func (t *trial) alone(term plan.Term, tag string) {
	if !t.plan.Level2 {
		t.known(term, tag)
		return
	}
	mend := ""
	switch t.env.Match.Objects[tag].(type) {
	case *match.DomainSet:
		mend = "write qname $" + tag
	case *match.IPSet:
		mend = "write client_ip $" + tag
	default:
		return
	}
	t.add(term.Pos, mend, "matches: $%s is a set, and no matcher", tag)
}

// words looks at the sets and files that the arguments name, and gives those that
// can be tried without the files. A set that has problems may be of any kind: ok
// tells that there is none.
func (t *trial) words(term plan.Term) (rest string, ok bool) {
	var words []string
	ok = true
	for _, w := range strings.Fields(term.Args) {
		switch tag, isTag := strings.CutPrefix(w, "$"); {
		case w[0] == '&':
			if trouble, mend := plan.Unreadable(w[1:]); trouble != "" {
				t.add(term.Pos, mend, "%s: %s", term.Name, trouble)
			}
			continue
		case isTag && !t.known(term, tag):
			ok = false
		}
		words = append(words, w)
	}
	return strings.Join(words, " "), ok
}

// known tells whether there is a set with that tag of which the kind is known.
func (t *trial) known(term plan.Term, tag string) bool {
	o := t.plan.Object(tag)
	if o != nil {
		return o.Type != ""
	}
	if t.plan.Level2 {
		return false // which was told
	}
	var tags []string
	for _, o := range t.plan.Objects {
		tags = append(tags, o.Tag)
	}
	mend := "add it under sets"
	if len(t.problems) < maxHints {
		if near := plan.Nearest(tag, tags); near != "" {
			mend = "write $" + near
		}
	}
	t.add(term.Pos, mend, "%s: there is no set %s", term.Name, tree.Quote(tag))
	return false
}

// action tries what a rule does.
func (t *trial) action(term plan.Term) {
	if term.Name == "mark" {
		// The numbers of the matcher are those of the action.
		t.matcher(plan.Term{Pos: term.Pos, Name: term.Name, Args: term.Args})
		return
	}
	k, ok := t.actions[term.Name]
	if !ok {
		return
	}
	if _, err := k.Make(t.env, term.Args); err != nil {
		t.add(term.Pos, "", "%s: %v", term.Name, err)
	}
}
