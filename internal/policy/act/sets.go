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
}

// IPSetArgs is DomainSetArgs for addresses and prefixes.
type IPSetArgs struct {
	IPs   []string `key:"ips"`
	Sets  []string `key:"sets"`
	Files []string `key:"files"`
}

func newDomainSet(e *Env, _ string, args *DomainSetArgs) (any, error) {
	others, err := tagged[*match.DomainSet](e, args.Sets, "set of names")
	if err != nil {
		return nil, err
	}
	return match.LoadDomainSet(args.Exps, args.Files, others...)
}

func newIPSet(e *Env, _ string, args *IPSetArgs) (any, error) {
	others, err := tagged[*match.IPSet](e, args.Sets, "set of addresses")
	if err != nil {
		return nil, err
	}
	return match.LoadIPSet(args.IPs, args.Files, others...)
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
