package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/uudashr/gocognit"
)

// The limits of CONTRIBUTING.md.
const (
	maxFile     = 400
	hardFile    = 600 // with a row in exceptions
	maxFunction = 80
	p90Function = 40
	maxParams   = 5
	maxFields   = 20
	maxComplex  = 15
	maxPackage  = 3000
)

// exceptions may go past a limit, each with its reason. The key is the path of
// a file, "path:Name" of a function or struct, or a folder. A row whose reason
// has gone fails.
var exceptions = map[string]string{}

// sourceFile is one parsed file of ours.
type sourceFile struct {
	path  string // from the root, with slashes
	fset  *token.FileSet
	ast   *ast.File
	lines int
}

func (f *sourceFile) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(n.Pos()).Line)
}

func (f *sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f *sourceFile) dir() string { return filepath.ToSlash(filepath.Dir(f.path)) }

// size counts the lines of a node, first and last included.
func (f *sourceFile) size(n ast.Node) int {
	return f.fset.Position(n.End()).Line - f.fset.Position(n.Pos()).Line + 1
}

// sources parses every file that is not generated.
func sources(t *testing.T) []*sourceFile {
	t.Helper()
	var all []*sourceFile
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		f, err := parseSource(path)
		if err == nil && !ast.IsGenerated(f.ast) {
			all = append(all, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func parseSource(path string) (*sourceFile, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &sourceFile{path: filepath.ToSlash(path), fset: token.NewFileSet(), lines: strings.Count(string(src), "\n")}
	f.ast, err = parser.ParseFile(f.fset, path, src, parser.ParseComments)
	return f, err
}

// programs are the sources that are no tests.
func programs(t *testing.T) []*sourceFile {
	return slices.DeleteFunc(sources(t), (*sourceFile).isTest)
}

// functions calls do for every function with a body.
func functions(f *sourceFile, do func(fn *ast.FuncDecl)) {
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			do(fn)
		}
	}
}

// limit reports a size above its limit, unless it has its row in exceptions.
func limit(t *testing.T, key, at string, got, most int, advice string) {
	t.Helper()
	if _, excepted := exceptions[key]; got > most && !excepted {
		t.Errorf("%s: %s; at most %d, found %d", at, advice, most, got)
	}
}

func TestFileSize(t *testing.T) {
	total := map[string]int{}
	for _, f := range programs(t) {
		total[f.dir()] += f.lines
		limit(t, f.path, f.path+":1", f.lines, maxFile, "lines in a file: split it by what it is about")
		if f.lines > hardFile {
			t.Errorf("%s:1: %d lines in a file; more than %d is never right: split it", f.path, f.lines, hardFile)
		}
	}
	for dir, lines := range total {
		limit(t, dir, dir, lines, maxPackage, "lines in a package: move a noun of its own into a package of its own")
	}
}

func TestFunctionSize(t *testing.T) {
	var sizes []int
	for _, f := range programs(t) {
		functions(f, func(fn *ast.FuncDecl) {
			key, n := f.path+":"+fn.Name.Name, f.size(fn)
			sizes = append(sizes, n)
			limit(t, key, f.at(fn), n, maxFunction, "lines in "+fn.Name.Name+": give its steps names")
			limit(t, key, f.at(fn), fn.Type.Params.NumFields(), maxParams, "parameters of "+fn.Name.Name+": make a struct of those that belong together")
			limit(t, key, f.at(fn), gocognit.Complexity(fn), maxComplex, "cognitive complexity of "+fn.Name.Name+": return early, split by case")
		})
	}
	if len(sizes) == 0 {
		return
	}
	slices.Sort(sizes)
	if p90 := sizes[len(sizes)*9/10]; p90 > p90Function {
		t.Errorf("nine of ten functions should have at most %d lines; the 90th percentile of %d is %d", p90Function, len(sizes), p90)
	}
}

func TestStructSize(t *testing.T) {
	for _, f := range programs(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					limit(t, f.path+":"+spec.Name.Name, f.at(spec), s.Fields.NumFields(), maxFields, "fields of "+spec.Name.Name+": split it by owner")
				}
			}
			return true
		})
	}
}

// A row of exceptions that excuses nothing is a row too many.
func TestExceptionsAreNeeded(t *testing.T) {
	over := map[string]bool{}
	total := map[string]int{}
	for _, f := range programs(t) {
		total[f.dir()] += f.lines
		over[f.path] = f.lines > maxFile
		functions(f, func(fn *ast.FuncDecl) {
			over[f.path+":"+fn.Name.Name] = f.size(fn) > maxFunction || fn.Type.Params.NumFields() > maxParams || gocognit.Complexity(fn) > maxComplex
		})
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					over[f.path+":"+spec.Name.Name] = s.Fields.NumFields() > maxFields
				}
			}
			return true
		})
	}
	for dir, lines := range total {
		over[dir] = lines > maxPackage
	}
	for key, reason := range exceptions {
		if !over[key] || reason == "" {
			t.Errorf("style_test.go: exceptions[%q]: drop the row when the limit is kept, and give a reason when it is not", key)
		}
	}
}

func TestNoInit(t *testing.T) {
	for _, f := range sources(t) {
		functions(f, func(fn *ast.FuncDecl) {
			if fn.Name.Name == "init" && fn.Recv == nil {
				t.Errorf("%s: func init: call it from the constructor, or make it a literal table", f.at(fn))
			}
		})
	}
}

func TestPackageNames(t *testing.T) {
	documented := map[string]bool{}
	where := map[string]string{}
	for _, f := range programs(t) {
		name := f.ast.Name.Name
		switch name {
		case "util", "utils", "common", "helper", "helpers", "misc", "base", "shared":
			t.Errorf("%s:1: package %s: a helper lives with its first user, or gets a noun", f.path, name)
		}
		if strings.Contains(name, "_") {
			t.Errorf("%s:1: package %s: one short noun without an underscore", f.path, name)
		}
		where[f.dir()] = f.path
		if f.ast.Doc != nil && (name == "main" || strings.HasPrefix(f.ast.Doc.Text(), "Package "+name+" ")) {
			documented[f.dir()] = true
		}
	}
	for dir, file := range where {
		if !documented[dir] {
			t.Errorf("%s:1: package %s has no package comment: say what it is, what it is not, and who calls it", file, dir)
		}
	}
}

// platform finds the operating system in a file's name.
var platform = regexp.MustCompile(`^(.+)_(linux|darwin|freebsd|windows|unix|other)(_[a-z0-9]+)?\.go$`)

func TestPlatformPairs(t *testing.T) {
	systems := map[string][]string{} // base path → systems
	for _, f := range programs(t) {
		if m := platform.FindStringSubmatch(f.path); m != nil {
			systems[m[1]] = append(systems[m[1]], m[2])
		}
	}
	for base, found := range systems {
		if !slices.Contains(found, "other") || len(found) < 2 {
			t.Errorf("%s_%s.go:1: a platform file without its partner: write %s_other.go for every other system", base, found[0], base)
		}
	}
}
