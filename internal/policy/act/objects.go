package act

import (
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
)

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
func ObjectKinds() []ObjectKind {
	return []ObjectKind{
		object("forward", "asks upstreams", RelayArgs{}, makeRelay),
		object("cache", "keeps what the rules behind have answered", LazyCacheArgs{}, makeLazyCache),
		object("fallback", "asks a second program where the first fails or is late", FallbackArgs{}, makeFallback),
		object("domain_set", "a set of names: expressions, files, other sets", DomainSetArgs{}, newDomainSet),
		object("ip_set", "a set of addresses: prefixes, files, other sets", IPSetArgs{}, newIPSet),
		object("hosts", "answers questions for addresses of names", step.HostsArgs{}, alone(step.NewHosts)),
		object("arbitrary", "answers with records", step.ArbitraryArgs{}, alone(step.NewArbitrary)),
		object("redirect", "asks for other names in place of some", step.RedirectArgs{}, func(e *Env, _ string, args *step.RedirectArgs) (any, error) {
			return step.NewRedirect(e.Match.Objects, args)
		}),
		object("ecs_handler", "passes on a subnet of the client (RFC 7871)", ECSHandlerArgs{Mask4: 24, Mask6: 48}, newECSHandler),
		object("reverse_lookup", "remembers the names of addresses, and answers PTR questions with them", step.ReverseArgs{Size: 65536, TTL: 7200}, alone(step.NewReverse)),
		object("rate_limiter", "matches the queries of clients that are within a rate", step.RateLimiterArgs{QPS: 20, Burst: 40, Mask4: 32, Mask6: 48}, alone(step.NewRateLimiter)),
		object("sleep", "waits", step.SleepArgs{}, alone(step.NewSleep)),
	}
}

// object is the row of a type whose arguments begin as def.
func object[A any](typ, doc string, def A, made func(e *Env, tag string, args *A) (any, error)) ObjectKind {
	return ObjectKind{
		Type: typ, Doc: doc,
		Args: func() any { a := def; return &a },
		Make: func(e *Env, tag string, args any) (any, error) { return made(e, tag, args.(*A)) },
	}
}

// alone is the making of an object that needs nothing but its arguments.
func alone[A any](made func(args *A) (any, error)) func(*Env, string, *A) (any, error) {
	return func(_ *Env, _ string, args *A) (any, error) { return made(args) }
}
