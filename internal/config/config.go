// Package config reads configuration files and the flags that stand for one,
// picks the front end, and reports all problems. It starts nothing; cmd and
// app call it. What a key means is known to the front ends below it and to
// plan.Check.
package config

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/mosdns"
	"github.com/waymark-dns/waymark/internal/config/sections"
	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

var errNotRegular = errors.New("not a regular file")

// Load reads the configuration file and checks it: syntax, keys, values, and
// everything that plan.Check knows. All problems are returned at once, sorted
// by position; a plan with problems is not to be served, but tells what could be
// understood. It is nil where nothing could. The error is for a file that cannot
// be read at all.
func Load(path string) (*plan.Plan, []plan.Problem, error) {
	src, err := read(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading configuration: %w", err)
	}
	p, problems := Parse(path, src)
	return p, problems, nil
}

// read reads the file, and at most a little more than tree.MaxSize of it.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		// Opening a pipe would wait for its writer.
		return nil, &os.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing is written
	return io.ReadAll(io.LimitReader(f, tree.MaxSize+1))
}

// Parse is Load of a text that was read already; path is for positions and tells
// the format, and relative paths of level 1 start in its folder.
func Parse(path string, src []byte) (*plan.Plan, []plan.Problem) {
	return parse(path, src, read)
}

// parse reads both levels, parts of which may stand in one file. open reads the files that
// it includes.
func parse(path string, src []byte, open func(string) ([]byte, error)) (*plan.Plan, []plan.Problem) {
	s := &tree.Source{File: path, Loose: mosdns.Peek(src)}
	roots, whole := s.Parse(src)
	level1, level2, found := mosdns.Split(roots)
	var problems []plan.Problem
	var p *plan.Plan
	if found || s.Loose {
		p = sections.ReadTree(s, beside(s, level1))
		loader := mosdns.Loader{Tables: mosdns.Known(), Open: open, Whole: whole}
		problems = loader.Read(s, level2, p)
	} else {
		p = sections.ReadTree(s, roots)
	}
	problems = append(problems, s.Sorted()...)
	if !whole {
		plan.Sort(problems)
		return nil, problems
	}
	return checked(p, problems)
}

// Explain writes a plan down as plugins, whatever it was made of. What comes of
// plugins alone is a configuration again, which gives an equal plan.
func Explain(p *plan.Plan) string { return mosdns.Known().Explain(p) }

// checked ends a plan: one of level 1 gets its program. It adds
// what plan.Check and try find to the problems that a front end found.
// Where the front end complained already the value is missing or a stand-in,
// and there is no more to say; that does not go for the place of the file as a
// whole, where its first key stands as well.
func checked(p *plan.Plan, problems []plan.Problem) (*plan.Plan, []plan.Problem) {
	told := map[plan.Pos]bool{}
	for _, problem := range problems {
		told[problem.Pos] = problem.Pos != p.At("")
	}
	for _, problem := range slices.Concat(p.Check(), try(p)) {
		if !told[problem.Pos] {
			problems = append(problems, problem)
		}
	}
	plan.Sort(problems)
	if !p.Level2 {
		p.Programs = sections.Programs(p)
	}
	return p, problems
}

// alone are the sections that cannot stand beside plugins, where a query meets
// what is written in its sequence and nothing else, and what is the way there.
var alone = map[string]string{
	"listen":  "add a plugin of type udp_server or tcp_server",
	"forward": "add a plugin of type forward",
	"cache":   "add a plugin of type cache",
	"access":  "write a rule with client_ip",
	"limits":  "add a plugin of type rate_limiter",
	"views":   "write rules with client_ip",
	"sets":    "add a plugin of type domain_set or ip_set",
	"rules":   "write them in a sequence",
}

// beside takes the sections out that cannot stand beside plugins, and tells of
// them.
func beside(s *tree.Source, roots []*tree.Node) []*tree.Node {
	for _, root := range roots {
		root.Pairs = slices.DeleteFunc(root.Pairs, func(p tree.Pair) bool {
			mend, ok := alone[p.Key]
			if ok {
				s.Problem(p.Pos, mend, "section %s cannot stand beside plugins in this version", p.Key)
			}
			return ok
		})
	}
	return roots
}

// Flags stand for a configuration file on the command line. What they leave
// out is off.
type Flags struct {
	Listen  []string // URLs of listeners
	Zones   []string // NAME=FILE
	Forward []string // upstreams of one group that has every query
	Cache   string   // size, on or off; empty is on where there is an upstream
}

// FromFlags makes a plan of flags, with defaults for the rest. Problems name
// the flag's text; they have the zero position. A plan with problems is not to
// be served.
func FromFlags(f Flags) (*plan.Plan, []plan.Problem) {
	r := &flags{plan: plan.Default()}
	for _, text := range f.Listen {
		if l, problem := sections.ParseListen(plan.Pos{}, text); !r.refused("--listen", problem) {
			r.plan.Listen = append(r.plan.Listen, l)
		}
	}
	for _, text := range f.Zones {
		r.zone(text)
	}
	r.forward(f)
	if len(r.plan.Listen) == 0 && len(f.Listen) > 0 {
		// The plan is lost already. A stand-in keeps Check from saying that no
		// listener was named.
		r.plan.Listen = []plan.Listen{{Scheme: "udp", Addr: netip.MustParseAddrPort("127.0.0.1:53")}}
	}
	return checked(r.plan, r.problems)
}

// flags is a plan in the making.
type flags struct {
	plan     *plan.Plan
	problems []plan.Problem
}

// refused notes the problem of a flag, if there is one.
func (r *flags) refused(flag string, problem *plan.Problem) bool {
	if problem == nil {
		return false
	}
	problem.Text = flag + ": " + problem.Text
	r.problems = append(r.problems, *problem)
	return true
}

func (r *flags) zone(text string) {
	name, file, ok := strings.Cut(text, "=")
	if !ok {
		r.refused("--zone", &plan.Problem{Text: fmt.Sprintf("%q has no file", text), Mend: "write NAME=FILE, such as example.org=example.org.zone"})
		return
	}
	if apex, problem := sections.ParseName(plan.Pos{}, name); !r.refused("--zone", problem) {
		r.plan.Zones = append(r.plan.Zones, plan.Zone{Name: apex, File: file})
	}
}

func (r *flags) forward(f Flags) {
	group := plan.DefaultForward()
	for _, text := range f.Forward {
		if u, problem := sections.ParseUpstream(plan.Pos{}, text); !r.refused("--forward", problem) {
			group.To = append(group.To, u)
		}
	}
	if len(group.To) > 0 {
		r.plan.Forward = []plan.Forward{group}
		r.plan.Cache = plan.DefaultCache()
	}
	if f.Cache != "" {
		if c, problem := sections.ParseCache(plan.Pos{}, f.Cache); !r.refused("--cache", problem) {
			r.plan.Cache = c
		}
	}
}
