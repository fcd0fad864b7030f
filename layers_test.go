package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path that every package of ours begins with.
const module = "github.com/waymark-dns/waymark"

// heights is section 2 of docs/DESIGN.md: a package imports only packages of a
// lower height. Packages that the design names and that are not built yet have
// their row already.
var heights = map[string]int{
	// Ground: imports nothing of ours.
	"internal/wire":            0,
	"internal/addrset":         0,
	"internal/stats":           0,
	"internal/limit":           0,
	"internal/wheel":           0,
	"internal/durable":         0,
	"internal/upstream/egress": 1,
	"internal/nameset":         1,
	"internal/serve":           1,
	"internal/dnssec":          1,
	// Engines.
	"internal/listen":           2,
	"internal/zone":             2,
	"internal/cache":            2,
	"internal/upstream":         2,
	"internal/qlog":             2,
	"internal/policy":           2,
	"internal/certs":            2,
	"internal/fetch":            2,
	"internal/netsets":          2,
	"internal/testkit":          2,
	"internal/explain":          2,
	"internal/policy/match":     3,
	"internal/policy/step":      4,
	"internal/zone/zonefile":    3,
	"internal/zone/zonetext":    3,
	"internal/zone/journal":     3,
	"internal/zone/sign":        3,
	"internal/qlog/search":      3,
	"internal/qlog/sink":        3,
	"internal/recurse/store":    3,
	"internal/recurse/validate": 3,
	"internal/zone/zonecheck":   4,
	"internal/zone/xfr":         4,
	"internal/zone/store":       4,
	"internal/zone/update":      4,
	"internal/recurse":          4,
	"internal/policy/act":       5,
	// Assembly.
	"internal/plan":            6,
	"internal/program":         7,
	"internal/config/tree":     7,
	"internal/config/sections": 8,
	"internal/config/mosdns":   8,
	"internal/config":          9,
	"internal/system":          9,
	"internal/history":         8,
	"internal/api":             9,
	"internal/api/ui":          9,
	"internal/control":         9,
	"internal/querylog":        8,
	"internal/api/mosdns":      8,
	"internal/app":             10,
	"internal/bench/load":      11,
	"internal/bench/compare":   11,
	"internal/bench/cost":      11,
	"internal/cmd":             12,
	"docs":                     0,
	"":                         13, // main.go
}

// meetings lists the engines that an engine may import; any other two engines
// meet in policy/act and app only. policy/act is above the engines.
var meetings = map[string][]string{
	"internal/policy/match":   {"internal/policy"},
	"internal/policy/step":    {"internal/policy", "internal/policy/match", "internal/netsets", "internal/zone/zonefile"},
	"internal/zone/zonefile":  {"internal/zone"},
	"internal/zone/zonecheck": {"internal/zone", "internal/zone/zonefile"},
	"internal/zone/journal":   {"internal/zone"},
	"internal/zone/sign":      {"internal/zone"},
	"internal/zone/store":     {"internal/zone", "internal/zone/zonefile", "internal/zone/zonetext"},
	"internal/zone/xfr":       {"internal/zone", "internal/zone/journal", "internal/zone/zonefile", "internal/upstream"},
	"internal/qlog/search":    {"internal/qlog"},
	"internal/qlog/sink":      {"internal/qlog"},
	"internal/zone/update":    {"internal/zone", "internal/zone/journal"},
	"internal/recurse":        {"internal/upstream", "internal/cache", "internal/recurse/store", "internal/recurse/validate"},
}

// The engines stand between these heights, both included.
const lowestEngine, highestEngine = 2, 4

// doors says which packages may import a module of others; "*" is any package,
// an empty list none: such a module is for tests. A module without a row is not
// to be imported.
var doors = map[string][]string{
	"github.com/miekg/dns":                {"internal/zone/zonefile", "internal/zone/zonecheck", "internal/zone/sign", "internal/testkit", "internal/cmd"},
	"github.com/quic-go/quic-go":          {"internal/listen", "internal/upstream"},
	"github.com/caddyserver/certmagic":    {"internal/certs"},
	"github.com/goccy/go-yaml":            {"internal/config/tree"},
	"github.com/pelletier/go-toml/v2":     {"internal/config/tree"},
	"github.com/parquet-go/parquet-go":    {"internal/qlog", "internal/qlog/search"},
	"github.com/klauspost/compress":       {"internal/qlog", "internal/qlog/sink"},
	"github.com/dnstap/golang-dnstap":     {"internal/qlog/sink"},
	"github.com/farsightsec":              {"internal/qlog/sink"},
	"google.golang.org/protobuf":          {"internal/qlog/sink"},
	"github.com/prometheus/client_golang": {"internal/app", "internal/api", "internal/api/mosdns", "internal/querylog"},
	"github.com/alecthomas/kong":          {"internal/cmd", ""},
	"go.etcd.io/bbolt":                    {"internal/zone/store", "internal/zone/journal", "internal/zone/sign"},
	"github.com/gaissmai/bart":            {"internal/addrset"},
	"github.com/google/nftables":          {"internal/netsets"},
	"github.com/mdlayher/netlink":         {"internal/netsets"},
	"golang.org/x/net":                    {"internal/upstream"},
	"golang.org/x/sys":                    {"*"},
	"golang.org/x/crypto":                 {"*"},
	"github.com/rogpeppe/go-internal":     {"internal/testkit"},
	"pgregory.net/rapid":                  {"internal/testkit"},
	"go.uber.org/goleak":                  {"internal/testkit"},
	"github.com/uudashr/gocognit":         {},
}

// imported is one import in a file that is no test.
type imported struct {
	from string // package of ours, without the module's path
	path string
	at   token.Position
}

// imports lists what the files of every package import, those of other
// platforms too.
func imports(t *testing.T) (packages []string, all []imported) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,GoFiles,CgoFiles,IgnoredGoFiles", "./...").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			ImportPath                        string
			GoFiles, CgoFiles, IgnoredGoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, all
		} else if err != nil {
			t.Fatalf("reading the list of packages: %v", err)
		}
		name := short(p.ImportPath)
		packages = append(packages, name)
		for _, file := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles) {
			if !strings.HasSuffix(file, "_test.go") {
				all = append(all, importsOf(t, name, filepath.Join(filepath.FromSlash(name), file))...)
			}
		}
	}
}

func importsOf(t *testing.T, from, path string) []imported {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%v", err)
		return nil
	}
	var all []imported
	for _, spec := range f.Imports {
		all = append(all, imported{from: from, path: pathOf(spec), at: fset.Position(spec.Pos())})
	}
	return all
}

func pathOf(spec *ast.ImportSpec) string {
	path, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(err) // the parser took it
	}
	return path
}

// short is a path of ours without the module.
func short(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "/") }

func isOurs(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func TestHeights(t *testing.T) {
	packages, all := imports(t)
	for _, p := range packages {
		if _, ok := heights[p]; !ok {
			t.Errorf("package %s: unknown; add its height to heights in layers_test.go and to docs/DESIGN.md section 2", p)
		}
	}
	for _, i := range all {
		if isOurs(i.path) {
			if problem := heightProblem(i.from, short(i.path)); problem != "" {
				t.Errorf("%s: %s", i.at, problem)
			}
		}
	}
}

// heightProblem says what is wrong with one package importing another, or
// nothing.
func heightProblem(from, to string) string {
	low, knownLow := heights[to]
	high, knownHigh := heights[from]
	switch {
	case !knownLow || !knownHigh:
		return "" // reported as unknown
	case to == "internal/testkit":
		return from + " imports testkit, which is for tests only: move the import into a _test.go file"
	case low >= high:
		return from + " (height " + strconv.Itoa(high) + ") imports " + to + " (height " + strconv.Itoa(low) +
			"): let the higher package hand in what is needed, or define the interface where it is consumed"
	case isEngine(low) && isEngine(high) && !slices.Contains(meetings[from], to):
		return from + " imports the engine " + to + ": engines meet in policy/act and app only (docs/DESIGN.md section 2)"
	}
	return ""
}

func isEngine(height int) bool { return lowestEngine <= height && height <= highestEngine }

func TestDoors(t *testing.T) {
	_, all := imports(t)
	for _, i := range all {
		if problem := doorProblem(i.from, i.path); problem != "" {
			t.Errorf("%s: %s", i.at, problem)
		}
	}
}

// doorProblem says what is wrong with a package importing a path of others, or
// nothing.
func doorProblem(from, path string) string {
	first, _, _ := strings.Cut(path, "/")
	if isOurs(path) || !strings.Contains(first, ".") { // the standard library has no dot
		return ""
	}
	door, known := "", false
	for mod := range doors {
		if (path == mod || strings.HasPrefix(path, mod+"/")) && len(mod) > len(door) {
			door, known = mod, true
		}
	}
	switch {
	case !known:
		return from + " imports " + path + ": a module without a door; give it a row in doors and a reason in docs/DESIGN.md section 6"
	case slices.Contains(doors[door], "*") || slices.Contains(doors[door], from):
		return ""
	case len(doors[door]) == 0:
		return from + " imports " + path + ": this module is for tests only"
	}
	return from + " imports " + path + ": only " + strings.Join(doors[door], ", ") + " may"
}

// The rules themselves: each forbids what it should.
func TestLayerRules(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		ok             bool
	}{
		{"down", "internal/zone", "internal/wire", true},
		{"up", "internal/wire", "internal/serve", false},
		{"level", "internal/zone", "internal/listen", false},
		{"an engine below another", "internal/zone/zonefile", "internal/zone", true},
		{"an engine below a stranger", "internal/zone/zonefile", "internal/cache", false},
		{"engines meet in actions", "internal/policy/act", "internal/zone", true},
		{"assembly over engines", "internal/app", "internal/listen", true},
		{"test kit in a program", "internal/app", "internal/testkit", false},
	} {
		if problem := heightProblem(c.from, c.to); (problem == "") != c.ok {
			t.Errorf("%s: %s to %s: %q", c.name, c.from, c.to, problem)
		}
	}
	for _, c := range []struct {
		name, from, path string
		ok               bool
	}{
		{"standard library", "internal/wire", "net/netip", true},
		{"through the door", "internal/zone/zonefile", "github.com/miekg/dns", true},
		{"beside the door", "internal/zone", "github.com/miekg/dns", false},
		{"a package of the module", "internal/serve", "github.com/miekg/dns/dnsutil", false},
		{"not the same module", "internal/cmd", "github.com/miekg/dnsother", false},
		{"any package", "internal/listen", "golang.org/x/sys/unix", true},
		{"tests only", "internal/app", "github.com/uudashr/gocognit", false},
		{"a stranger", "internal/app", "example.com/thing", false},
	} {
		if problem := doorProblem(c.from, c.path); (problem == "") != c.ok {
			t.Errorf("%s: %s to %s: %q", c.name, c.from, c.path, problem)
		}
	}
}
