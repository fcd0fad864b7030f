// Package mosdns is level 2 of the configuration: a file as mosdns v5 has it,
// plugins with their arguments and sequences of rules, turned into a plan. It
// knows no plugin but servers and sequences: the types of objects, their
// arguments and the names of matchers and actions come from the tables of package
// policy. It compiles nothing: package config calls it with the trees of a file,
// and app makes objects of what is in the plan. It also writes a plan down again
// in that notation.
package mosdns

import (
	"regexp"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
	"github.com/waymark-dns/waymark/internal/policy/match"
)

// Tables are the things that a file may name.
type Tables struct {
	Objects  []act.ObjectKind
	Actions  []string
	Matchers []string
}

// control are the actions that the sequence itself has.
var control = []string{"accept", "reject", "return", "jump", "goto", "mark"}

// Known are the tables of this program.
func Known() Tables {
	t := Tables{Objects: act.ObjectKinds(), Actions: slices.Clone(control)}
	for _, k := range act.Kinds() {
		if !slices.Contains(t.Actions, k.Name) {
			t.Actions = append(t.Actions, k.Name)
		}
	}
	for _, k := range match.Kinds() {
		t.Matchers = append(t.Matchers, k.Name)
	}
	return t
}

// keys are those of the top level; the letters' case does not matter.
var keys = []string{"log", "include", "plugins", "api"}

// marks are the keys that only level 2 has.
var marks = regexp.MustCompile(`(?im)^["']?(plugins|include)["']?[ \t]*:`)

// Peek reports whether a text that may not even be YAML is meant as level 2.
func Peek(src []byte) bool { return marks.Match([]byte(strings.TrimPrefix(string(src), "\ufeff"))) }

// Split parts the keys of level 2 from all others. found is whether there is one
// that level 1 does not have; else log and api are of level 1.
func Split(roots []*tree.Node) (level1, level2 []*tree.Node, found bool) {
	for _, root := range roots {
		one, two := *root, *root
		one.Pairs, two.Pairs = nil, nil
		for _, p := range root.Pairs {
			key := strings.ToLower(p.Key)
			if !slices.Contains(keys, key) {
				one.Pairs = append(one.Pairs, p)
				continue
			}
			two.Pairs = append(two.Pairs, p)
			found = found || key == "plugins" || key == "include"
		}
		level1, level2 = append(level1, &one), append(level2, &two)
	}
	return level1, level2, found
}

// Loader reads the plugins of a file and of those that it includes.
type Loader struct {
	Tables Tables
	// Open reads an included file; the path is as it was written.
	Open func(path string) ([]byte, error)
	// Whole is false where parts of the file could not be read: then what seems to be
	// missing is not told.
	Whole bool
}

// Read adds to the plan what the trees of level 2 hold. Problems of the file are
// added to its own; those of included files are returned.
func (l Loader) Read(s *tree.Source, roots []*tree.Node, p *plan.Plan) []plan.Problem {
	p.Level2 = true
	if p.Where == nil {
		p.Where = map[string]plan.Pos{}
	}
	w := &world{
		Loader: l,
		plan:   p,
		tags:   map[string]thing{sleepTag: {is: object}},
	}
	f := &file{world: w, src: s, path: []string{s.File}}
	f.top(roots, true)
	w.lost()
	var problems []plan.Problem
	for _, sub := range w.included {
		problems = append(problems, sub.Sorted()...)
	}
	return problems
}

// is tells what a tag stands for.
type is uint8

const (
	object is = iota
	sequence
	server
	broken // has a problem of its own: it may be anything
)

// thing is what a tag stands for.
type thing struct {
	is  is
	pos plan.Pos
}

// world is everything that was read so far, from all files.
type world struct {
	Loader
	plan     *plan.Plan
	tags     map[string]thing
	plugins  int // read so far
	order    int // of the last program or object
	files    int // named to be included so far
	included []*tree.Source
	slept    bool // the preset is in the plan
	missing  []missing
}

// missing is a reference to a tag that was not there.
type missing struct {
	src *tree.Source
	pos plan.Pos
	tag string
}

// file is one file being read.
type file struct {
	*world
	src  *tree.Source
	path []string // the files that led here, this one last
}

// top reads the keys of the top level. Of a file that is included, log and api are
// read for their problems only.
func (f *file) top(roots []*tree.Node, first bool) {
	var all tree.Node
	for _, root := range roots {
		all.Pairs = append(all.Pairs, root.Pairs...)
	}
	found := map[string]tree.Pair{}
	d := &decoder{src: f.src}
	for _, p := range d.pairs(&all, keys, "") {
		found[strings.ToLower(p.Key)] = p
	}
	p := f.plan
	if !first {
		p = &plan.Plan{Where: map[string]plan.Pos{}}
	}
	f.log(found["log"], p)
	f.api(found["api"], p)
	f.includes(found["include"].Value)
	for _, n := range items(found["plugins"].Value) {
		if f.src.Full() {
			return
		}
		f.plugin(n)
	}
}

// lost tells of the tags that were not there when they were needed.
func (w *world) lost() {
	if !w.Whole {
		return
	}
	var known []string
	for tag := range w.tags {
		known = append(known, tag)
	}
	slices.Sort(known)
	for i, m := range w.missing {
		if later, ok := w.tags[m.tag]; ok {
			m.src.Problem(m.pos, "move it in front of this one", "plugin %s stands further down, at %s", m.tag, later.pos)
			continue
		}
		mend := "add it in front of this one"
		const hints = 100 // each takes a search
		if near := plan.Nearest(m.tag, known); i < hints && near != "" {
			mend = "write " + near
		}
		m.src.Problem(m.pos, mend, "there is no plugin %s", tree.Quote(m.tag))
	}
}
