package act

import (
	"slices"

	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Routes finds where a question would be forwarded to, before the cache is asked:
// clients that are sent to different upstreams must not share answers.
type Routes struct {
	byHash map[uint64][]candidate // of the name that it is for
	groups []RouteGroup
}

// RouteGroup is one group of upstreams.
type RouteGroup struct {
	For     []wire.Name  // folded; empty is every name
	Clients *addrset.Set // nil is all
	Views   []uint16     // empty is all
	// Part keeps the answers of a group for certain clients apart in the cache: the
	// same for the same group over reloads and restarts. 0 is not kept apart.
	Part uint32
}

type candidate struct {
	name  wire.Name
	group uint16
}

// NewRoutes makes the table. Of two groups for one name, the one for certain
// clients comes first, then the one for certain views, then the one that stands
// first.
func NewRoutes(groups []RouteGroup) *Routes {
	t := &Routes{byHash: map[uint64][]candidate{}, groups: groups}
	for i, g := range groups {
		names := g.For
		if len(names) == 0 {
			names = []wire.Name{{0}}
		}
		for _, n := range names {
			h := wire.HashName(n)
			t.byHash[h] = append(t.byHash[h], candidate{n, uint16(i)})
		}
	}
	rank := func(c candidate) int {
		switch g := &groups[c.group]; {
		case g.Clients != nil:
			return 0
		case len(g.Views) > 0:
			return 1
		}
		return 2
	}
	for _, list := range t.byHash {
		slices.SortStableFunc(list, func(a, b candidate) int { return rank(a) - rank(b) })
	}
	return t
}

// Do is part of policy.Step.
func (t *Routes) Do(r *serve.Request) policy.Next {
	r.Route = 0
	l := r.Ask.Labels
	for i := 0; i <= l.N; i++ {
		for _, c := range t.byHash[l.Hash[i]] {
			if t.groups[c.group].takes(r) && wire.EqualFold(c.name, r.Ask.Name[l.Off[i]:]) {
				r.Route = c.group + 1
				if r.Trace != nil {
					r.Trace.Say("route", "", "would be forwarded by group %d, which is for %s", r.Route, c.name)
				}
				return policy.Go
			}
		}
	}
	return policy.Go
}

func (g *RouteGroup) takes(r *serve.Request) bool {
	return (len(g.Views) == 0 || slices.Contains(g.Views, r.View)) && (g.Clients == nil || g.Clients.Contains(r.Client.Addr()))
}

// named tells whether the question's group is for its name, or for one above it
// that is not the root: that is every name, and no name in particular.
func (t *Routes) named(r *serve.Request) bool {
	return r.Route > 0 && slices.ContainsFunc(t.groups[r.Route-1].For, func(n wire.Name) bool {
		return len(n) > 1 && r.Ask.Name.Under(n)
	})
}

// part is the Part of the question's group.
func (t *Routes) part(r *serve.Request) uint32 {
	if r.Route > 0 {
		return t.groups[r.Route-1].Part
	}
	return 0
}
