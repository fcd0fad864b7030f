package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// clockOwners may read the clock; everyone else is handed the time (docs/DESIGN.md
// section 1, decision 7), so that tests can set it.
var clockOwners = []string{"internal/app", "internal/cmd", "internal/bench"}

func TestOneClock(t *testing.T) {
	for _, f := range programs(t) {
		if ownsClock(f.dir()) {
			continue
		}
		calls(f, "time", func(call *ast.SelectorExpr) {
			switch call.Sel.Name {
			case "Now", "Since", "Until":
				t.Errorf("%s: time.%s: take now from the request, or a clock from app", f.at(call), call.Sel.Name)
			}
		})
	}
}

func ownsClock(dir string) bool {
	for _, owner := range clockOwners {
		if dir == owner || strings.HasPrefix(dir, owner+"/") {
			return true
		}
	}
	return false
}

// calls finds pkg.Name for a package that the file imports, under whatever name.
func calls(f *sourceFile, pkg string, do func(*ast.SelectorExpr)) {
	local := ""
	for _, spec := range f.ast.Imports {
		if pathOf(spec) != pkg {
			continue
		}
		local = pkg[strings.LastIndex(pkg, "/")+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
	}
	if local == "" {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == local {
				do(sel)
			}
		}
		return true
	})
}

// Inside a bubble of testing/synctest sleeping takes no time; elsewhere a test
// that sleeps is slow, wrong on a busy machine, or both.
func TestNoSleepInTests(t *testing.T) {
	for _, f := range sources(t) {
		if !f.isTest() || importsPath(f, "testing/synctest") {
			continue
		}
		calls(f, "time", func(call *ast.SelectorExpr) {
			if call.Sel.Name == "Sleep" {
				t.Errorf("%s: time.Sleep in a test: wait for the event itself, or use testing/synctest", f.at(call))
			}
		})
	}
}

func importsPath(f *sourceFile, path string) bool {
	for _, spec := range f.ast.Imports {
		if pathOf(spec) == path {
			return true
		}
	}
	return false
}

// A function that runs as a goroutine ends in Loop, so that grep lists them all.
func TestGoroutineNames(t *testing.T) {
	for _, f := range programs(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if name, ok := started(n); ok && !strings.HasSuffix(name, "Loop") && name != "loop" {
				t.Errorf("%s: %s runs as a goroutine: end its name in Loop", f.at(n), name)
			}
			return true
		})
	}
}

// started is the name of a function that a statement starts as a goroutine:
// go f(), or group.Go(f).
func started(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.GoStmt:
		return named(n.Call.Fun)
	case *ast.CallExpr:
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(n.Args) == 1 {
			return named(n.Args[0])
		}
	}
	return "", false
}

func named(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name, true
	case *ast.SelectorExpr:
		return e.Sel.Name, true
	}
	return "", false
}

// unfinished are the words of work that was put off.
var unfinished = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}, "|") + `)\b`)

func TestNothingPutOff(t *testing.T) {
	for _, f := range sources(t) {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if word := unfinished.FindString(c.Text); word != "" {
					t.Errorf("%s: %s in a comment: do it, or file it", f.at(c), word)
				}
			}
		}
	}
}

func TestExportedAreDocumented(t *testing.T) {
	for _, f := range programs(t) {
		for _, d := range f.ast.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no comment: say what is promised (ownership, nil, waiting, errors)", f.at(name), name.Name)
			}
		}
	}
}

// undocumented lists the exported names of a declaration that lack a comment.
// One comment over a group of constants or variables will do for all of them.
func undocumented(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var bare []*ast.Ident
		for _, spec := range d.Specs {
			bare = append(bare, bareNames(spec, d.Doc != nil)...)
		}
		return bare
	}
	return nil
}

func bareNames(spec ast.Spec, group bool) []*ast.Ident {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() && !group && spec.Doc == nil && spec.Comment == nil {
			return []*ast.Ident{spec.Name}
		}
	case *ast.ValueSpec:
		if !group && spec.Doc == nil && spec.Comment == nil && spec.Names[0].IsExported() {
			return spec.Names[:1]
		}
	}
	return nil
}

// receiver is the name of a method's type.
func receiver(fn *ast.FuncDecl) string {
	e := fn.Recv.List[0].Type
	for {
		switch inner := e.(type) {
		case *ast.StarExpr:
			e = inner.X
		case *ast.IndexExpr:
			e = inner.X
		case *ast.IndexListExpr:
			e = inner.X
		case *ast.Ident:
			return inner.Name
		default:
			return ""
		}
	}
}

// The rules themselves: what breaks them is seen, under other names too.
func TestStyleRules(t *testing.T) {
	const src = `package x
import clock "time"
func Bare() { go serve(); group.Go(s.run); go s.readLoop(); now = clock.Now() }
func (t *inner) Hidden() {}
// Said is commented.
func Said() {}
type Bare2 struct{}
const Bare3, b = 1, 2
`
	f := &sourceFile{path: "x.go", fset: token.NewFileSet()}
	var err error
	if f.ast, err = parser.ParseFile(f.fset, f.path, src, parser.ParseComments); err != nil {
		t.Fatal(err)
	}
	var found []string
	calls(f, "time", func(call *ast.SelectorExpr) { found = append(found, f.at(call)+" time."+call.Sel.Name) })
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if name, ok := started(n); ok {
			found = append(found, "go "+name)
		}
		return true
	})
	for _, d := range f.ast.Decls {
		for _, name := range undocumented(d) {
			found = append(found, "bare "+name.Name)
		}
	}
	want := []string{"x.go:3 time.Now", "go serve", "go run", "go readLoop", "bare Bare", "bare Bare2", "bare Bare3"}
	if !slices.Equal(found, want) {
		t.Errorf("got  %q\nwant %q", found, want)
	}
	for _, c := range []struct {
		dir string
		ok  bool
	}{{"internal/app", true}, {"internal/bench/load", true}, {"internal/application", false}, {"internal/zone", false}} {
		if ownsClock(c.dir) != c.ok {
			t.Errorf("%s may read the clock: %v", c.dir, !c.ok)
		}
	}
}
