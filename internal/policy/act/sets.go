package act

import (
	"fmt"

	"github.com/waymark-dns/waymark/internal/policy/match"
)

// DomainSetArgs is what a set of names is made of: expressions, other sets by tag,
// and files of expressions.
type DomainSetArgs struct {
	Exps  []string `key:"exps"`
	Sets  []string `key:"sets"`
	Files []string `key:"files"`

	AutoReload     bool `key:"auto_reload"`     // when a file has changed
	ReloadInterval int  `key:"reload_interval"` // seconds; 0 is never
}

// IPSetArgs is DomainSetArgs for addresses and prefixes.
type IPSetArgs struct {
	IPs   []string `key:"ips"`
	Sets  []string `key:"sets"`
	Files []string `key:"files"`

	AutoReload     bool `key:"auto_reload"`
	ReloadInterval int  `key:"reload_interval"`
}

func newDomainSet(e *Env, tag string, args *DomainSetArgs) (any, error) {
	others, err := tagged[*match.DomainSet](e, args.Sets, "set of names")
	if err != nil {
		return nil, err
	}
	set, err := match.LoadDomainSet(args.Exps, args.Files, others...)
	return reloaded(e, Set{Tag: tag, Type: "domain_set", Reread: Reread{args.AutoReload, args.ReloadInterval}}, set, err)
}

func newIPSet(e *Env, tag string, args *IPSetArgs) (any, error) {
	others, err := tagged[*match.IPSet](e, args.Sets, "set of addresses")
	if err != nil {
		return nil, err
	}
	set, err := match.LoadIPSet(args.IPs, args.Files, others...)
	return reloaded(e, Set{Tag: tag, Type: "ip_set", Reread: Reread{args.AutoReload, args.ReloadInterval}}, set, err)
}

// tagged is the objects with these tags.
func tagged[T any](e *Env, tags []string, what string) ([]T, error) {
	var all []T
	for _, tag := range tags {
		o, ok := e.Match.Objects[tag].(T)
		if !ok {
			return nil, fmt.Errorf("finding %s: no %s has that tag", tag, what)
		}
		all = append(all, o)
	}
	return all, nil
}
