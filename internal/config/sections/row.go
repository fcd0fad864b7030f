package sections

import (
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

// row is one key of a table: everything there is to know about it.
type row[T any] struct {
	key     string
	value   value[T]
	preset  string // the default as it would be written; empty if there is none
	none    string // what then holds without the key, in Markdown; empty is off
	must    bool   // cannot be left out
	example string // as it would be written; more lines are more entries of a list
	doc     string // for the manual, a sentence or two of Markdown
}

// first is one entry of the example.
func (r row[T]) first() string {
	line, _, _ := strings.Cut(r.example, "\n")
	return line
}

// value is how the value of a key is read into a T.
type value[T any] struct {
	want string // what is expected, such as "a duration"
	read func(r *reader, s spot, into *T)
	list bool
	keys func(path string) []entry // of the mappings in it, for the manual
}

// spot is a value in the file and the row that it belongs to.
type spot struct {
	path, want, example string
	node                *tree.Node
}

// name is the path as people say it.
func (s spot) name() string {
	name := s.path
	for {
		open := strings.IndexByte(name, '[')
		if open < 0 {
			return name
		}
		name = name[:open] + name[open+strings.IndexByte(name[open:], ']')+1:]
	}
}

// wrong notes that the value is not what the row wants.
func (r *reader) wrong(s spot) {
	r.Problem(s.node.Pos, "write for example "+s.example, "%s: expected %s such as %s, got %s", s.name(), s.want, s.example, s.node.Describe())
}

// readRows reads a mapping by its table.
func readRows[T any](r *reader, s spot, rows []row[T], into *T) {
	switch s.node.Kind {
	case tree.Broken:
		return
	case tree.Null, tree.Mapping:
	default:
		r.Problem(s.node.Pos, "write for example "+inline(rows), "%s: expected keys and values, got %s", s.name(), s.node.Describe())
		return
	}
	seen := map[string]plan.Pos{}
	readPairs(r, s, rows, into, seen)
	for _, row := range rows {
		if _, ok := seen[row.key]; row.must && !ok {
			r.Problem(s.node.Pos, "add for example "+row.key+": "+row.first(), "%s: the key %s is missing", s.name(), row.key)
		}
	}
}

// readPairs reads the keys of one mapping. seen has the keys that were read
// before and gets the new ones.
func readPairs[T any](r *reader, in spot, rows []row[T], into *T, seen map[string]plan.Pos) {
	for _, p := range in.node.Pairs {
		if r.Full() {
			return
		}
		i := slices.IndexFunc(rows, func(row row[T]) bool { return row.key == p.Key })
		if i < 0 {
			r.unknown(in.path, p, keys(rows))
			continue
		}
		if first, ok := seen[p.Key]; ok {
			r.Problem(p.Pos, "keep one of them", "key %s is written twice, first on line %d", p.Key, first.Line)
			continue
		}
		seen[p.Key] = p.Pos
		row := rows[i]
		s := spot{path: join(in.path, p.Key), want: row.value.want, node: p.Value}
		s.example = row.first()
		r.where[s.path] = p.Value.Pos
		if p.Value.Kind == tree.Null || p.Value.Kind == tree.List {
			r.where[s.path] = p.Pos
		}
		row.value.read(r, s, into)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func keys[T any](rows []row[T]) []string {
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.key
	}
	return names
}

// inline writes the keys of a table with their examples on one line.
func inline[T any](rows []row[T]) string {
	var parts []string
	for _, row := range rows {
		if row.must {
			parts = append(parts, row.key+": "+row.first())
		}
	}
	if len(parts) == 0 && len(rows) > 0 {
		parts = append(parts, rows[0].key+": "+rows[0].first())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// unknown tells of a key that no row has, and which one may be meant.
func (r *reader) unknown(path string, p tree.Pair, known []string) {
	what := "key " + tree.Quote(p.Key)
	switch {
	case path == "" && slices.Contains(later, p.Key):
		r.Problem(p.Pos, "remove it", "section %s is not in this version yet", p.Key)
		return
	case path == "":
		what = "section " + tree.Quote(p.Key)
	default:
		what += " in " + spot{path: path}.name()
	}
	switch {
	case path == "" && plan.Nearest(p.Key, slices.Concat(known, plugins)) != "":
		r.Problem(p.Pos, "write "+plan.Nearest(p.Key, slices.Concat(known, plugins)), "unknown %s", what)
	case plan.Nearest(p.Key, known) != "":
		r.Problem(p.Pos, "write "+plan.Nearest(p.Key, known), "unknown %s", what)
	case r.home(p.Key) != "":
		r.Problem(p.Pos, "it belongs under "+r.home(p.Key), "unknown %s", what)
	default:
		r.Problem(p.Pos, "known are "+strings.Join(known, ", "), "unknown %s", what)
	}
}

// home is the path of the mapping that has the key, if it is just one.
func (r *reader) home(key string) string {
	var homes []string
	var search func([]entry, string)
	search = func(entries []entry, path string) {
		for _, e := range entries {
			if e.key == key && path != "" {
				homes = append(homes, path)
			}
			search(e.keys, spot{path: e.path}.name())
		}
	}
	search(r.manual(), "")
	if len(homes) != 1 {
		return ""
	}
	return homes[0]
}
