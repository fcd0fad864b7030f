package main_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/config"
	"github.com/waymark-dns/waymark/internal/config/sections"
)

// sectionsOfConfig are the keys that an example of a configuration begins with.
var sectionsOfConfig = []string{"listen", "zones", "views", "access", "limits", "sets", "rules", "forward", "cache", "server", "log", "metrics", "control", "zonestore", "keys", "querylog", "api", "history"}

// notYetLoadable are pages whose examples show sections that are still to come.
var notYetLoadable = map[string]string{
	"docs/DESIGN.md": "the design of all levels, ahead of the program",
}

// pages lists every Markdown file of the project.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case !d.IsDir() && filepath.Ext(path) == ".md":
			all = append(all, filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// block is a fenced part of a page.
type block struct {
	lang string
	line int // of its first line, from 1
	text string
}

// blocks finds the fenced parts of a page.
func blocks(page string) []block {
	var all []block
	var open *block
	for i, line := range strings.Split(page, "\n") {
		switch {
		case !strings.HasPrefix(line, "```"):
			if open != nil {
				open.text += line + "\n"
			}
		case open == nil:
			open = &block{lang: strings.TrimSpace(line[3:]), line: i + 2}
		default:
			all, open = append(all, *open), nil
		}
	}
	return all
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every configuration shown in a page, or part of one, is one that the program
// can read. Users and files that it names need not be on this machine.
func TestExamplesInPagesLoad(t *testing.T) {
	for _, page := range pages(t) {
		if _, ok := notYetLoadable[page]; ok {
			continue
		}
		for _, b := range blocks(readPage(t, page)) {
			if b.lang != "yaml" || !slices.Contains(sectionsOfConfig, firstKey(b.text)) {
				continue
			}
			_, problems := sections.Read(page, []byte(b.text))
			for _, p := range problems {
				t.Errorf("%s:%d: %s (%s)", page, b.line+p.Pos.Line-1, p.Text, p.Mend)
			}
		}
	}
}

// firstKey is the first key of a YAML text, behind comments.
func firstKey(text string) string {
	for _, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, _, _ := strings.Cut(line, ":")
		return key
	}
	return ""
}

func TestExampleFilesLoad(t *testing.T) {
	files, err := filepath.Glob("examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		_, problems, err := config.Load(file)
		if err != nil {
			t.Error(err)
		}
		for _, p := range problems {
			t.Error(p.Error())
		}
	}
}

// link finds the target of an inline link; references in angle brackets and
// images are the same to a reader.
var link = regexp.MustCompile(`\]\(<?([^)>\s]+)>?(?:\s+"[^"]*")?\)`)

// code is text that shows links and makes none.
var code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

func TestLinksInPagesLead(t *testing.T) {
	for _, page := range pages(t) {
		text := code.ReplaceAllString(readPage(t, page), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: the link %s cannot be read: %v", page, m[1], err)
				continue
			}
			if target.IsAbs() || target.Path == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), target.Path)); err != nil {
				t.Errorf("%s: the link %s leads nowhere: mend it or add the file", page, m[1])
			}
		}
	}
}

// target finds the targets of a Makefile.
var target = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)

// made finds the targets that a shell line calls.
var made = regexp.MustCompile(`(?m)^\s*(?:\$ )?make ([a-z][a-z0-9-]*)`)

// Every `make X` that a page tells its reader to type is a target.
func TestCommandsInPagesExist(t *testing.T) {
	var targets []string
	for _, m := range target.FindAllStringSubmatch(readPage(t, "Makefile"), -1) {
		targets = append(targets, m[1])
	}
	for _, page := range pages(t) {
		for _, b := range blocks(readPage(t, page)) {
			if b.lang != "sh" {
				continue
			}
			for _, m := range made.FindAllStringSubmatch(b.text, -1) {
				if !slices.Contains(targets, m[1]) {
					t.Errorf("%s:%d: make %s: no such target in the Makefile", page, b.line, m[1])
				}
			}
		}
	}
}

// mentioned finds the keys in the example of a configuration.
var mentioned = regexp.MustCompile(`(?m)(?:^|[{,\s-])([a-z_]+):(?:\s|$)`)

// The manual names every key that the examples use; that it names every key of
// the tables is a test of package sections.
func TestManualNamesKeys(t *testing.T) {
	manual := readPage(t, "docs/CONFIG.md")
	example := regexp.MustCompile(`(?m)#.*$`).ReplaceAllString(readPage(t, "examples/waymark.yaml"), "")
	keys := mentioned.FindAllStringSubmatch(example, -1)
	if len(keys) < len(sectionsOfConfig) {
		t.Fatalf("only %d keys found in examples/waymark.yaml", len(keys))
	}
	for _, m := range keys {
		if !strings.Contains(manual, "`"+m[1]) && !strings.Contains(manual, "."+m[1]) && !strings.Contains(manual, m[1]+":") {
			t.Errorf("docs/CONFIG.md does not name the key %s: generate it again from the tables", m[1])
		}
	}
}

// The rules themselves: a page that breaks them is seen.
func TestPageRules(t *testing.T) {
	got := blocks("a\n```yaml\n# first\nlisten: []\n```\n```sh\nmake run\n```\n")
	want := []block{{"yaml", 3, "# first\nlisten: []\n"}, {"sh", 7, "make run\n"}}
	if !slices.Equal(got, want) {
		t.Errorf("blocks: got %v, want %v", got, want)
	}
	if key := firstKey(want[0].text); key != "listen" {
		t.Errorf("first key: got %q", key)
	}
	if m := link.FindStringSubmatch(`see [it](docs/A.md#top "the top") there`); m == nil || m[1] != "docs/A.md#top" {
		t.Errorf("link: got %q", m)
	}
	if m := made.FindStringSubmatch("cd waymark\nmake run\n"); m == nil || m[1] != "run" {
		t.Errorf("make: got %q", m)
	}
}
