// Package sections is level 1 of the configuration: simple sections of YAML,
// turned into a plan. One literal table per section, each in a file of its own,
// gives the keys, how they are read, their defaults and their manual; nothing
// about a key stands anywhere else. It opens no file and checks no meaning:
// package config calls it with the text, and plan.Check looks at the result.
package sections

import (
	"path/filepath"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

// table is the whole of level 1, in the order of the manual.
var table = []row[plan.Plan]{
	listenRow,
	zonesRow,
	zoneStoreRow,
	keysRow,
	forwardRow,
	cacheRow,
	accessRow,
	limitsRow,
	viewsRow,
	setsRow,
	rulesRow,
	serverRow,
	logRow,
	queryLogRow,
	metricsRow,
	controlRow,
	apiRow,
	historyRow,
}

// later are sections that the design knows and that are not built yet.
var later = []string{
	"block", "dashboard", "recurse", "tls",
}

// plugins are the keys that make a file one of level 2, for who misspells one.
var plugins = []string{"plugins", "include"}

// Read is ReadTree of a text that is a file of level 1 and nothing else. The plan
// is nil when a part of the text could not be read at all.
func Read(file string, src []byte) (*plan.Plan, []plan.Problem) {
	s := &tree.Source{File: file}
	roots, whole := s.Parse(src)
	p := ReadTree(s, roots)
	if !whole {
		p = nil
	}
	return p, s.Sorted()
}

// ReadTree turns sections into a plan without a program. The file's path is the
// place that relative paths start from; problems are added to the file's.
//
// The plan holds whatever could be read: with problems it must not be started, but
// it can be checked for more. A value that has a problem here leaves a value with
// the same position that Check complains about too, if at all; of two problems at
// one position the first is the one to show.
func ReadTree(s *tree.Source, roots []*tree.Node) *plan.Plan {
	r := &reader{Source: s, dir: filepath.Dir(s.File), where: map[string]plan.Pos{}, manual: manual}
	p := plan.Default()
	p.Where = r.where
	r.where[""] = plan.Pos{File: s.File, Line: 1, Column: 1}
	seen := map[string]plan.Pos{}
	for _, root := range roots {
		readPairs(r, spot{node: root}, table, p, seen)
	}
	for i := range p.Objects {
		p.Objects[i].Order = i + 1
	}
	return p
}
