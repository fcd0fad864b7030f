package act

import "github.com/waymark-dns/waymark/internal/policy"

// Arguments is an object that rules may give arguments: $tag arguments.
type Arguments interface {
	// With is the object as it works with them.
	With(args string) (any, error)
}

// Fuser is a step that may make a response, and can end the program at once when
// it has.
type Fuser interface{ Fuse() policy.Step }

// ObjectKind is one type of object: something with a tag and a configuration of
// its own, which rules refer to as $tag.
type ObjectKind struct {
	Type string
	Doc  string
	// Args makes the struct that the arguments are read into, with their defaults;
	// nil where the type takes none. Each field has its key in a tag `key:"name"`;
	// a field without that tag is not of the configuration. The fields' types are
	// strings, numbers, booleans, slices of those, and structs or slices of structs of
	// the same kind.
	Args func() any
	// Make is the object: one or more of policy.Step, Starter, Waiter, Finisher and
	// Matcher, or a set that matchers refer to.
	Make func(e *Env, tag string, args any) (any, error)
}

// ObjectKinds is all types of objects.
func ObjectKinds() []ObjectKind { return []ObjectKind{} }
