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
	"strings"

	"github.com/waymark-dns/waymark/internal/config/sections"
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

// read reads the file, and at most a little more than sections.MaxSize of it.
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
	return io.ReadAll(io.LimitReader(f, sections.MaxSize+1))
}

// Parse is Load of a text that was read already; path is for positions, and
// relative paths start in its folder.
func Parse(path string, src []byte) (*plan.Plan, []plan.Problem) {
	p, problems := sections.Read(path, src)
	if p == nil {
		return nil, problems
	}
	return checked(p, problems)
}

// checked ends a plan of level 1: it gets its program, or its problems. It adds
// what plan.Check finds to the problems that a front end found.
// Where the front end complained already the value is missing or a stand-in,
// and there is no more to say; that does not go for the place of the file as a
// whole, where its first key stands as well.
func checked(p *plan.Plan, problems []plan.Problem) (*plan.Plan, []plan.Problem) {
	told := map[plan.Pos]bool{}
	for _, problem := range problems {
		told[problem.Pos] = problem.Pos != p.At("")
	}
	for _, problem := range p.Check() {
		if !told[problem.Pos] {
			problems = append(problems, problem)
		}
	}
	plan.Sort(problems)
	p.Programs = sections.Programs()
	return p, problems
}

// FromFlags makes a plan of --listen URL and --zone NAME=FILE, each as often
// as it was given, with defaults for the rest. Problems name the flag's text;
// they have the zero position. A plan with problems is not to be served.
func FromFlags(listen, zones []string) (*plan.Plan, []plan.Problem) {
	var problems []plan.Problem
	refuse := func(flag string, problem plan.Problem) {
		problem.Text = flag + ": " + problem.Text
		problems = append(problems, problem)
	}
	p := plan.Default()
	for _, text := range listen {
		l, problem := sections.ParseListen(plan.Pos{}, text)
		if problem != nil {
			refuse("--listen", *problem)
			continue
		}
		p.Listen = append(p.Listen, l)
	}
	for _, text := range zones {
		name, file, ok := strings.Cut(text, "=")
		if !ok {
			refuse("--zone", plan.Problem{Text: fmt.Sprintf("%q has no file", text), Mend: "write NAME=FILE, such as example.org=example.org.zone"})
			continue
		}
		apex, problem := sections.ParseZoneName(plan.Pos{}, name)
		if problem != nil {
			refuse("--zone", *problem)
			continue
		}
		p.Zones = append(p.Zones, plan.Zone{Name: apex, File: file})
	}
	if len(p.Listen) == 0 && len(listen) > 0 {
		// The plan is lost already. A stand-in keeps Check from saying that no
		// listener was named.
		p.Listen = []plan.Listen{{Scheme: "udp", Addr: netip.MustParseAddrPort("127.0.0.1:53")}}
	}
	return checked(p, problems)
}
