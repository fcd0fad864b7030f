package mosdns

import (
	"reflect"
	"slices"
	"testing"

	"github.com/waymark-dns/waymark/internal/policy/act"
)

// TestObjectKinds: the arguments of every type are a struct that can be filled and
// written down.
func TestObjectKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range act.ObjectKinds() {
		if seen[k.Type] {
			t.Errorf("%s: twice", k.Type)
		}
		seen[k.Type] = true
		if k.Args == nil {
			continue
		}
		args := reflect.TypeOf(k.Args())
		if args.Kind() != reflect.Pointer || args.Elem().Kind() != reflect.Struct {
			t.Errorf("%s: Args makes %s, not a pointer to a struct", k.Type, args)
			continue
		}
		fillable(t, k.Type, args.Elem())
		_, keys := fieldsOf(args.Elem())
		for _, key := range references[k.Type] {
			if !slices.Contains(keys, key) {
				t.Errorf("%s: no key %s, which refers to other plugins", k.Type, key)
			}
		}
	}
}

// fillable checks every field with a key.
func fillable(t *testing.T, name string, typ reflect.Type) {
	t.Helper()
	switch typ.Kind() {
	case reflect.Struct:
		fields, keys := fieldsOf(typ)
		slices.Sort(keys)
		if len(slices.Compact(keys)) != len(fields) {
			t.Errorf("%s: a key twice", name)
		}
		for _, f := range fields {
			if !typ.Field(f.index).IsExported() {
				t.Errorf("%s.%s: not exported", name, f.key)
			}
			fillable(t, name+"."+f.key, typ.Field(f.index).Type)
		}
	case reflect.Slice:
		fillable(t, name, typ.Elem())
	default:
		if want := (word{kind: reflect.Int64}).set(reflect.New(typ).Elem()); want != "" {
			t.Errorf("%s: cannot be filled: %s", name, want)
		}
	}
}

// TestKnown: what mosdns has is listed in order, and the tables have their control
// words.
func TestKnown(t *testing.T) {
	known := Known()
	for _, list := range [][]string{allPlugins, allActions, allMatchers} {
		if !slices.IsSorted(list) {
			t.Errorf("not in order: %v", list)
		}
	}
	for _, name := range control {
		if !slices.Contains(known.Actions, name) {
			t.Errorf("no action %s", name)
		}
	}
	actions := slices.Sorted(slices.Values(known.Actions))
	if len(slices.Compact(actions)) != len(known.Actions) {
		t.Errorf("an action twice: %v", known.Actions)
	}
}
