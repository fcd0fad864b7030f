package mosdns

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/tree"
)

// Bounds of what files may include.
const (
	maxInclude = 8    // files below one another
	maxFiles   = 1000 // in all
)

// includes reads the files that this one includes, each before its own plugins.
func (f *file) includes(n *tree.Node) {
	d := &decoder{src: f.src}
	for _, item := range items(n) {
		var text string
		d.into(item, &text, "include")
		if item.Kind != tree.Scalar && item.Kind != tree.Null {
			continue // there is no more to say
		}
		names := []string{text}
		if item == n {
			names = strings.Split(text, ",") // a lone text is a list as well
		}
		for _, name := range names {
			f.include(item, strings.TrimSpace(name))
		}
	}
}

func (f *file) include(at *tree.Node, name string) {
	f.files++
	problem := func(mend, format string, args ...any) {
		f.src.Problem(at.Pos, mend, format, args...)
		f.Whole = false
	}
	switch {
	case name == "":
		problem("name a file", "include: the name is empty")
		return
	case slices.Contains(f.path, name):
		problem("remove it", "include: %s includes itself", name)
		return
	case len(f.path) > maxInclude:
		problem("include it further up", "include: more than %d files below one another", maxInclude)
		return
	case f.files > maxFiles:
		problem("", "include: more than %d files", maxFiles)
		return
	}
	text, err := f.Open(name)
	if err != nil {
		if path, ok := errors.AsType[*os.PathError](err); ok {
			err = path.Err
		}
		problem("create it, or correct the path; it starts in the working directory", "include: cannot read %s: %v", name, err)
		return
	}
	sub := &file{world: f.world, src: &tree.Source{File: name, Loose: true}, path: append(slices.Clip(f.path), name)}
	roots, whole := sub.src.Parse(text)
	if !whole {
		f.Whole = false
	}
	f.included = append(f.included, sub.src)
	sub.top(roots, false)
}
