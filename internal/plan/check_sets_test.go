package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckSets(t *testing.T) {
	at := func(line int) Pos { return Pos{File: "f", Line: line, Column: 1} }
	p := Default()
	p.Objects = []Object{
		{Pos: at(1), Tag: "ads", Type: "domain_set"},
		{Pos: at(2), Tag: "ads", Type: "domain_set"},
		{Pos: at(3), Tag: "a.b", Type: "ip_set"},
		{Pos: at(4), Type: "ip_set"},
		{Pos: at(5), Tag: "what"},
		{Pos: at(6), Tag: strings.Repeat("x", 65), Type: "ip_set"},
	}
	p.Where = map[string]Pos{"sets[4]": at(5)}
	want := []string{
		"f:2:1: set ads is named twice, first at f:1:1 (give each a name of its own)",
		`f:3:1: sets.name: "a.b" is no name of a set (use letters, digits, - and _)`,
		"f:4:1: set without a name (give it one)",
		"f:5:1: set what: it does not say what it is a set of (add type: domains, or type: addresses)",
		"f:6:1: sets.name: 65 octets, and a set's name has at most 64 (shorten it)",
	}
	var got []string
	for _, problem := range p.Check() {
		if problem.Pos.File == "f" {
			got = append(got, problem.Error())
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	p.Level2 = true
	for _, problem := range p.Check() {
		if problem.Pos.File == "f" {
			t.Errorf("at level 2: %v", problem)
		}
	}
}

func TestParseTerm(t *testing.T) {
	for _, c := range []struct {
		in      string
		matcher bool
		want    Term
	}{
		{"has_resp", true, Term{Name: "has_resp"}},
		{"  ! qname   $a &b  ", true, Term{Not: true, Name: "qname", Args: "$a &b"}},
		{"!$set", true, Term{Not: true, Name: "$set"}},
		{"!accept", false, Term{Name: "!accept"}},
		{"reject 3", false, Term{Name: "reject", Args: "3"}},
		{"!!x", true, Term{Not: true, Name: "!x"}},
		{" ", true, Term{}},
		{"!", true, Term{Not: true}},
		{"$", true, Term{Name: "$"}},
	} {
		if got := ParseTerm(Pos{}, c.in, c.matcher); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.in, got, c.want)
		}
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file: "", dir: "is a folder", file + "b": "no such file", os.DevNull: "is not a regular file",
	} {
		if trouble, _ := Unreadable(path); !strings.Contains(trouble, want) || (want == "") != (trouble == "") {
			t.Errorf("%s: %q, want %q", path, trouble, want)
		}
	}
}
