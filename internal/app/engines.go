package app

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/act"
	"github.com/waymark-dns/waymark/internal/upstream"
)

// tickInterval is how exact time-outs of upstreams are.
const tickInterval = 10 * time.Millisecond

// engines is what a world asks others by, and keeps their answers in. Where a
// configuration changes nothing about one of them, the next world has the same.
type engines struct {
	cache   *cache.Cache // nil is none
	flights *cache.Flights
	forks   *policy.Forks
	groups  []group // by route, then those of programs
	lazy    map[string]lazyCache

	// How more of them are made while programs are compiled.
	newGroup func(upstream.Config) (act.Asked, error)
	newCache func(tag string, c cache.Config) (*cache.Cache, error)
}

// lazyCache is the cache of an object.
type lazyCache struct {
	*cache.Cache
	conf cache.Config
}

// group is one group of upstreams. Groups with the same servers and options are
// one and the same.
type group struct {
	key string
	act.Asked
}

// forksShare is the part of the places of waiting requests that work without a
// client may have on top.
const forksShare = 4

// buildEngines makes the engines of p, of those of old where they are the same.
func (s *Server) buildEngines(p *plan.Plan, old *world) (*engines, error) {
	e := &engines{}
	have := map[string]group{}
	if old != nil {
		e.flights, e.forks = old.engines.flights, old.engines.forks
		for _, g := range old.engines.groups {
			have[g.key] = g
		}
	} else {
		e.flights = cache.NewFlights()
		e.forks = policy.NewForks(s.ctx, max(1, p.Server.Parked/forksShare))
	}
	e.newGroup = func(c upstream.Config) (act.Asked, error) {
		g, err := s.group(c, have)
		if err != nil {
			return act.Asked{}, err
		}
		have[g.key] = g
		e.groups = append(e.groups, g)
		return g.Asked, nil
	}
	e.lazy = map[string]lazyCache{}
	e.newCache = func(tag string, c cache.Config) (*cache.Cache, error) { return s.lazyCache(e, old, tag, c) }
	for _, f := range p.Forward {
		if _, err := e.newGroup(groupConfig(f)); err != nil {
			return nil, err
		}
	}
	var err error
	e.cache, err = s.buildCache(p, old)
	return e, err
}

// groupConfig is f in the engine's own words.
func groupConfig(f plan.Forward) upstream.Config {
	c := upstream.Config{Race: f.Race, Hedge: f.Hedge, Timeout: f.Timeout, MixCase: f.MixCase}
	selects := map[string]upstream.Select{"fastest": upstream.Fastest, "random": upstream.Random, "order": upstream.Order, "race": upstream.Race}
	c.Select = selects[f.Select]
	for _, u := range f.To {
		c.Servers = append(c.Servers, upstream.Server{Addr: u.Addr, TCP: u.Scheme == "tcp", Name: u.String()})
	}
	return c
}

// group is the group of c, one of have where there is one like it.
func (s *Server) group(c upstream.Config, have map[string]group) (group, error) {
	key := fmt.Sprintf("%+v", c)
	if g, ok := have[key]; ok {
		return g, nil
	}
	g, err := upstream.NewGroup(c, upstream.Env{Now: s.now, Wake: s.wakeTicks, Outbox: &s.outbox})
	if err != nil {
		return group{}, fmt.Errorf("making the group of %s: %w", c.Servers[0].Name, err)
	}
	return group{key, act.Asked{Group: g, Flights: cache.NewFlights()}}, nil
}

// act is the parts of the policy that stand on the engines.
func (e *engines) act(s *Server, p *plan.Plan, env *act.Env) error {
	views := viewNumbers(p)
	env.Access = makeAccess(p)
	env.Limits = s.makeLimits(p)
	if len(p.Forward) == 0 {
		return nil
	}
	var routes []act.RouteGroup
	c := &act.Cache{Cache: e.cache}
	f := &act.Forward{Cache: c, Flights: e.flights, Now: s.now}
	for i, g := range p.Forward {
		r := act.RouteGroup{For: g.For}
		if len(g.Clients) > 0 {
			r.Clients = addrset.New(g.Clients)
			r.Part = keyOf("group", forwardText(g), g.Clients)
		}
		for _, name := range g.Views {
			r.Views = append(r.Views, views[name])
		}
		routes = append(routes, r)
		fg := act.ForwardGroup{Group: e.groups[i].Group}
		for _, u := range g.To {
			fg.Servers = append(fg.Servers, u.String())
			fg.Numbers = append(fg.Numbers, s.upstreams.of(u.String()))
		}
		f.Groups = append(f.Groups, fg)
		c.ECS = append(c.ECS, g.ECS == "pass")
	}
	if !slices.Contains(c.ECS, true) {
		c.ECS = nil
	}
	if len(p.Views) > 0 {
		c.Views = []uint32{0}
		for _, v := range p.Views {
			c.Views = append(c.Views, keyOf("view", v.Name))
		}
	}
	env.Routes = act.NewRoutes(routes)
	c.Routes = env.Routes
	env.Cache, env.Forward = c, f
	var err error
	env.Local, err = act.NewLocal(env.Routes, !siteKnows(p))
	return err
}

// keyOf is a number of 31 bits for what keeps entries of the cache apart. It is of
// what is written, not of where, so that it is the same after a reload, and in a
// dump.
func keyOf(of ...any) uint32 {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%q", of)
	return h.Sum32() >> 1
}

// siteKnows tells whether questions that no other group takes go to servers of the
// site itself: then names below test. may be theirs.
func siteKnows(p *plan.Plan) bool {
	for _, f := range p.Forward {
		if len(f.For) == 0 && !slices.ContainsFunc(f.To, func(u plan.Upstream) bool { return !private(u.Addr.Addr()) }) {
			return true
		}
	}
	return false
}

// private tells whether an address is of this site.
func private(a netip.Addr) bool { return addrset.New(addrset.Private()).Contains(a) }

// viewNumbers is the number of each view, from one on.
func viewNumbers(p *plan.Plan) map[string]uint16 {
	n := map[string]uint16{}
	for i, v := range p.Views {
		n[v.Name] = uint16(i + 1)
	}
	return n
}

// ticks drives time-outs: wake starts it, groups is what there is to drive.
type ticks struct {
	wake   chan struct{}
	groups atomic.Pointer[[]*upstream.Group]
}

// wakeTicks makes tickLoop run until nothing is in flight any more.
func (s *Server) wakeTicks() {
	select {
	case s.ticks.wake <- struct{}{}:
	default:
	}
}

// tickLoop drives time-outs while there is something that may time out. It ends
// with ctx.
func (s *Server) tickLoop(ctx context.Context) {
	t := time.NewTicker(tickInterval)
	defer t.Stop()
	for {
		t.Stop()
		select {
		case <-ctx.Done():
			return
		case <-s.ticks.wake:
		}
		t.Reset(tickInterval)
		for busy := true; busy; {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				busy = s.tick()
			}
		}
	}
}

// tick is false where nothing is in flight.
func (s *Server) tick() bool {
	now, busy := s.now(), false
	for _, g := range *s.ticks.groups.Load() {
		if g.Tick(now) {
			busy = true
		}
	}
	if w := s.world.Load(); w != nil && w.engines.flights.Len() > 0 {
		w.engines.flights.Tick(now)
		busy = true
	}
	return busy
}

// retirement is how long a group without a world is kept: longer than any of its
// exchanges may take.
const retirement = time.Minute

// keepTicking sees to it that the groups of w get their ticks, and that those of
// old that w has not are closed when their work is done.
func (s *Server) keepTicking(w, old *world) {
	groups := []*upstream.Group{}
	add := func(g *upstream.Group) {
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	for _, g := range w.engines.groups {
		add(g.Group)
	}
	used := len(groups)
	if now := s.ticks.groups.Load(); now != nil {
		for _, g := range *now {
			add(g)
		}
	}
	s.ticks.groups.Store(&groups)
	gone := groups[used:]
	if old == nil || len(gone) == 0 {
		return
	}
	s.wg.Go(func() { s.retireLoop(gone) })
}

// retireLoop closes groups when the time of their last exchanges is over.
func (s *Server) retireLoop(gone []*upstream.Group) {
	t := time.NewTimer(retirement)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
		return // stop closes all
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left := []*upstream.Group{}
	for _, g := range *s.ticks.groups.Load() {
		back := slices.ContainsFunc(s.world.Load().engines.groups, func(o group) bool { return o.Group == g })
		if back || !slices.Contains(gone, g) {
			left = append(left, g)
			continue
		}
		s.closeGroup(g)
	}
	s.ticks.groups.Store(&left)
}

func (s *Server) closeGroup(g *upstream.Group) {
	if err := g.Close(); err != nil {
		s.log.Warn("closing upstreams failed", "error", err)
	}
}

// discard closes the groups that were made for a world that there will not be.
func (s *Server) discard(made, kept *engines) {
	for _, g := range made.groups {
		if !slices.ContainsFunc(kept.groups, func(o group) bool { return o.Group == g.Group }) {
			s.closeGroup(g.Group)
		}
	}
}

// closeEngines ends what is in flight; whoever waits for it is answered.
func (s *Server) closeEngines() {
	if now := s.ticks.groups.Load(); now != nil {
		for _, g := range *now {
			s.closeGroup(g)
		}
	}
}
