package act

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/netsets"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/match"
	"github.com/waymark-dns/waymark/internal/policy/step"
	"github.com/waymark-dns/waymark/internal/upstream"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
)

// Env is the engines of one configuration, for actions to stand on. What is nil is
// not configured: a rule with such an action is left out.
type Env struct {
	Zones    []*zone.Table // by view
	Chaos    Chaos
	Access   *Access
	Limits   *Limits
	Routes   *Routes
	Local    *Local
	Cache    *Cache
	Forward  *Forward
	Run      *policy.Runner // makes branches
	Match    *match.Env     // objects by tag, and marks
	Program  func(tag string) (uint16, error)
	Level2   bool                 // the programs are of plugins
	Now      func() time.Duration // as Request.At
	NewGroup func(upstream.Config) (Asked, error)
	NewCache func(tag string, c cache.Config) (*cache.Cache, error)
	Number   func(upstream string) uint16 // what the log knows it by; nil: nothing is logged
	Made     *Made                        // what objects were made; made by the first where nil
	Log      *slog.Logger                 // nil discards
	Metrics  *Metrics                     // of collectors; made by the first where nil
	NetSets  *netsets.Writer              // nil: a rule that would write to sets is an error
}

// Chaos is the texts of CHAOS answers; an empty one is off.
type Chaos struct{ Identity, Version string }

// Asked is a group of upstreams and the questions that it is being asked: who wants
// the same of it joins.
type Asked struct {
	*upstream.Group
	Flights *cache.Flights
}

// Kind is one action that rules can name.
type Kind struct {
	Name string
	Args string // what the arguments are; empty is none
	Doc  string
	// Make is a policy.Step, Starter or Waiter, perhaps a policy.Finisher as well;
	// nil where there is nothing for it to do.
	Make func(e *Env, args string) (any, error)
}

// Kinds is all actions.
func Kinds() []Kind {
	return []Kind{
		{"access", "", "decides who may ask for what, and with which view", plain(func(e *Env) any { return some(e.Access) })},
		{"limits", "", "holds back clients that ask too much or whose address may be forged", plain(func(e *Env) any { return some(e.Limits) })},
		{"zone", "", "answers from the zones; names in none of them go on", plain(makeZone)},
		{"chaos", "", "answers id.server and version.server of class CHAOS, where they are configured", plain(makeChaos)},
		{"route", "", "finds the group of upstreams that the question is for", plain(func(e *Env) any { return some(e.Routes) })},
		{"local", "", "answers special-use names and the reverse of private addresses, unless a group of upstreams is for them", plain(func(e *Env) any { return some(e.Local) })},
		{"cache", "entries", "answers from the cache; at level 2 what the rules behind have answered is kept", level2(quickLazyCache, plain(func(e *Env) any { return some(e.Cache) }))},
		{"forward", "addresses", "asks upstreams; without addresses, the question's group of them", level2(quickRelay, plain(func(e *Env) any { return some(e.Forward) }))},
		{"prefer_ipv4", "", "answers AAAA questions with nothing where the name has A records", makePrefer(wire.TypeA, wire.TypeAAAA)},
		{"prefer_ipv6", "", "answers A questions with nothing where the name has AAAA records", makePrefer(wire.TypeAAAA, wire.TypeA)},
		{"refuse", "the number of an extended error (RFC 8914)", "answers REFUSED and says why", makeRefuse},
		{"reject", "an rcode, by number or mnemonic", "answers with that code and no records", makeReject},
		{"black_hole", "addresses", "answers questions for addresses with these", own(step.NewBlackHole)},
		{"ttl", "seconds, or least-most", "changes the TTLs of the response", own(step.NewTTL)},
		{"drop_resp", "", "takes the response away", func(*Env, string) (any, error) { return step.DropResp{}, nil }},
		{"sleep", "milliseconds", "waits", own(step.ParseSleep)},
		{"query_summary", "a title", "logs a line about the response on its way out", func(e *Env, args string) (any, error) { return step.NewSummary(e.logger(), e.Now, args), nil }},
		{"debug_print", "a title", "logs the query and the response", func(e *Env, args string) (any, error) { return step.NewDebugPrint(e.logger(), args), nil }},
		{"metrics_collector", "a name", "counts queries, errors and how long responses take", makeCollector},
		{"forward_edns0opt", "codes of options", "hands these EDNS options of the client on to upstreams, and theirs to the client", own(step.NewOptions)},
		{"ecs", "an address", "passes on a subnet (RFC 7871): that of the address", makeECS},
		{"ipset", "set,inet,24 set6,inet6,48: at most one set per family", "adds the addresses in the answer to ipsets", makeNetSet(netsets.ParseIPSet)},
		{"nftset", "inet,table,set,ipv4_addr,24 inet,table,set6,ipv6_addr,48: at most one set per type", "adds the addresses in the answer to sets of nftables", makeNetSet(netsets.ParseNFTSet)},
	}
}

// level2 is the Make of an action that is another at level 2.
func level2(there, here func(*Env, string) (any, error)) func(*Env, string) (any, error) {
	return func(e *Env, args string) (any, error) {
		if e.Level2 {
			return there(e, args)
		}
		return here(e, args)
	}
}

// own is the Make of an action that needs nothing but its arguments.
func own(made func(args string) (any, error)) func(*Env, string) (any, error) {
	return func(_ *Env, args string) (any, error) { return made(args) }
}

// some is p, or nothing at all where p is nil.
func some[T any](p *T) any {
	if p == nil {
		return nil
	}
	return p
}

// plain is the Make of an action without arguments.
func plain(made func(e *Env) any) func(*Env, string) (any, error) {
	return func(e *Env, args string) (any, error) {
		if args != "" {
			return nil, fmt.Errorf("reading %q: there are no arguments", args)
		}
		return made(e), nil
	}
}

// makeZone takes the table at once where there are no views.
func makeZone(e *Env) any {
	if !slices.ContainsFunc(e.Zones, func(t *zone.Table) bool { return len(t.Zones()) > 0 }) {
		return nil
	}
	if len(e.Zones) == 1 {
		return Zone{e.Zones[0]}
	}
	return ViewZones{e.Zones}
}

func makeChaos(e *Env) any {
	if e.Chaos.Identity == "" && e.Chaos.Version == "" {
		return nil
	}
	return step.NewChaos(e.Chaos.Identity, e.Chaos.Version)
}

// makeRefuse is for servers that have more than zones: elsewhere the last rule
// says all there is to say.
func makeRefuse(e *Env, args string) (any, error) {
	code, err := strconv.ParseUint(args, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("reading extended error: %w", err)
	}
	if e.Forward == nil {
		return nil, nil
	}
	return Refuse{uint16(code)}, nil
}

// makeReject takes a mnemonic or a number; without either it is REFUSED.
func makeReject(_ *Env, args string) (any, error) {
	args = strings.TrimSpace(args)
	if args == "" {
		return step.Reject{Rcode: wire.Refused}, nil
	}
	if n, err := strconv.ParseUint(args, 10, 12); err == nil {
		return step.Reject{Rcode: wire.Rcode(n)}, nil
	}
	for rcode := range wire.Rcode(16) {
		if rcode.String() == args {
			return step.Reject{Rcode: rcode}, nil
		}
	}
	return nil, fmt.Errorf("reading rcode %q: no number up to 4095 and no such mnemonic", args)
}

// logger is Log, or one that discards everything.
func (e *Env) logger() *slog.Logger {
	if e.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return e.Log
}

// errNoNetSets is a server without a writer, which only some ways to run one have.
var errNoNetSets = errors.New("nothing here writes to sets of the kernel")

// makeNetSet is the Make of an action whose targets parse reads.
func makeNetSet(parse func(args string) ([]netsets.Target, error)) func(*Env, string) (any, error) {
	return func(e *Env, args string) (any, error) {
		targets, err := parse(args)
		switch {
		case err != nil:
			return nil, err
		case len(targets) == 0:
			return nil, nil
		case e.NetSets == nil:
			return nil, errNoNetSets
		}
		return step.NetSet{Writer: e.NetSets, Targets: targets}, nil
	}
}
