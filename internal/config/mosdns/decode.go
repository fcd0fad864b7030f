package mosdns

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

// decoder fills structs with what is written, by the keys in their tags. What is
// not written, or written as null, keeps its default.
type decoder struct {
	src *tree.Source
	// where gets the position of every value by its path, behind prefix; it may be nil.
	where  map[string]plan.Pos
	prefix string
}

// into fills what v points to; name is how people call it.
func (d *decoder) into(n *tree.Node, v any, name string) {
	d.value(n, reflect.ValueOf(v).Elem(), name, d.prefix)
}

func (d *decoder) value(n *tree.Node, v reflect.Value, name, path string) {
	if n == nil || n.Kind == tree.Null || n.Kind == tree.Broken || d.src.Full() {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.fields(n, v, name, path)
	case reflect.Slice:
		d.list(n, v, name, path)
	default:
		if n.Kind != tree.Scalar {
			d.src.Problem(n.Pos, "write it as one word or text", "%s: expected one value, got %s", name, n.Describe())
			return
		}
		if want := wordOf(n).set(v); want != "" {
			d.src.Problem(n.Pos, "", "%s: expected %s, got %s", name, want, n.Describe())
		}
	}
}

// items are the entries of a list; a lone value is a list of one, and an empty
// mapping an empty list.
func items(n *tree.Node) []*tree.Node {
	switch {
	case n == nil || n.Kind == tree.Null || n.Kind == tree.Mapping && len(n.Pairs) == 0:
		return nil
	case n.Kind == tree.List:
		return n.Items
	}
	return []*tree.Node{n}
}

func (d *decoder) list(n *tree.Node, v reflect.Value, name, path string) {
	all := items(n)
	made := reflect.MakeSlice(v.Type(), len(all), len(all))
	for i, item := range all {
		at := fmt.Sprintf("%s[%d]", path, i)
		if d.where != nil && item.Kind == tree.Mapping {
			d.where[at] = item.Pos
		}
		d.value(item, made.Index(i), name, at)
	}
	v.Set(made)
}

// field is a field of a struct by its key.
type field struct {
	key   string
	index int
}

func fieldsOf(t reflect.Type) (fields []field, keys []string) {
	for i := range t.NumField() {
		if key, ok := t.Field(i).Tag.Lookup("key"); ok && key != "" {
			fields, keys = append(fields, field{key, i}), append(keys, key)
		}
	}
	return fields, keys
}

func (d *decoder) fields(n *tree.Node, v reflect.Value, name, path string) {
	if n.Kind != tree.Mapping {
		d.src.Problem(n.Pos, "", "%s: expected keys and values, got %s", name, n.Describe())
		return
	}
	fields, keys := fieldsOf(v.Type())
	for _, p := range d.pairs(n, keys, name) {
		i := slices.IndexFunc(fields, func(f field) bool { return strings.EqualFold(f.key, p.Key) })
		at := join(path, fields[i].key)
		if d.where != nil {
			d.where[at] = p.Value.Pos
		}
		d.value(p.Value, v.Field(fields[i].index), join(name, fields[i].key), at)
	}
}

// pairs are the keys of a mapping that are known, each once; it tells of the
// others. The letters' case does not matter.
func (d *decoder) pairs(n *tree.Node, known []string, name string) []tree.Pair {
	var all []tree.Pair
	seen := map[string]plan.Pos{}
	for _, p := range n.Pairs {
		key := strings.ToLower(p.Key)
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, key) }) {
			d.unknown(p, known, name)
			continue
		}
		if first, ok := seen[key]; ok {
			d.src.Problem(p.Pos, "keep one of them", "key %s is written twice, first on line %d", p.Key, first.Line)
			continue
		}
		seen[key] = p.Pos
		all = append(all, p)
	}
	return all
}

func (d *decoder) unknown(p tree.Pair, known []string, name string) {
	what := "unknown key " + tree.Quote(p.Key)
	if name != "" {
		what = name + ": " + what
	}
	mend := "known are " + strings.Join(known, ", ")
	if near := plan.Nearest(strings.ToLower(p.Key), known); near != "" {
		mend = "write " + near
	}
	if len(known) == 0 {
		mend = "remove it, it takes no arguments"
	}
	d.src.Problem(p.Pos, mend, "%s", what)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
