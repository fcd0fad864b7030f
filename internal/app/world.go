package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/act"
	"github.com/waymark-dns/waymark/internal/policy/match"
	"github.com/waymark-dns/waymark/internal/program"
	"github.com/waymark-dns/waymark/internal/zone"
)

// world is all that one configuration makes, sockets apart. It is never changed;
// a reload builds another and swaps it in whole.
type world struct {
	plan   *plan.Plan
	zones  []*zone.Zone   // in the order of plan.Zones
	beside []*zone.Zone   // that are managed
	files  [][]stamp      // what each zone was read from, in the same order
	byName map[string]int // index of a zone by zoneKey
	failed int            // zones whose last reading failed

	engines *engines
	root    *root
	entries map[string]uint16 // of listeners, by URL; nil is the first program for all
	metrics *act.Metrics
	made    *act.Made
	sets    []*liveSet
}

// zoneKey tells the zones of a plan apart: views may have zones of one name.
func zoneKey(z plan.Zone) string {
	return string(z.Name.Fold()) + "\x00" + strings.Join(z.Views, " ")
}

// errNoZone is a start without one zone to serve.
var errNoZone = errors.New("none of the zones could be loaded")

// all wants every zone read.
func all(int) bool { return true }

// build makes the world of p. Zones that want does not ask for are taken from
// old, which then has the same plan. Zones that cannot be loaded keep their
// version in old, where there is one, or answer SERVFAIL; failed says which and
// why. An error means that there is no new world.
func (s *Server) build(ctx context.Context, p *plan.Plan, old *world, want func(i int) bool) (w *world, failed []error, err error) {
	results := loadZones(ctx, p.Zones, want, s.log, s.now)
	if ctx.Err() != nil {
		return nil, nil, fmt.Errorf("loading zones: %w", ctx.Err())
	}
	zones := make([]*zone.Zone, len(p.Zones))
	w = &world{plan: p, byName: make(map[string]int, len(p.Zones))}
	for i, r := range results {
		w.byName[zoneKey(p.Zones[i])] = i
		before := old.zone(p.Zones[i])
		switch {
		case !want(i):
			zones[i], r.files = before, old.files[i]
		case r.err != nil:
			zones[i] = before
			failed = append(failed, keptError(r.err, before, old != nil))
		default:
			zones[i] = r.zone
			s.compare(before, r.zone)
		}
		if zones[i] == nil {
			zones[i] = zone.Broken(p.Zones[i].Name)
		}
		w.files = append(w.files, r.files)
	}
	w.failed = len(failed)
	if w.failed > 0 && w.failed == len(p.Zones) && old == nil {
		return nil, nil, fmt.Errorf("%w: %w", errNoZone, errors.Join(failed...))
	}
	w.zones, w.beside = zones, s.beside(p)
	if w.engines, err = s.buildEngines(p, old); err == nil {
		err = s.compileWorld(w, old)
	}
	if err != nil {
		return nil, failed, err
	}
	s.loadLazy(w, old)
	return w, failed, nil
}

// compileWorld makes the handler of w. What has the same name in old goes on
// counting.
func (s *Server) compileWorld(w, old *world) error {
	p := w.plan
	run := &policy.Runner{Forks: w.engines.forks}
	env := &act.Env{Zones: viewTables(p, w.zones, w.beside), Chaos: act.Chaos{Identity: p.Server.ID, Version: p.Server.Version}, Run: run, Match: &match.Env{Marks: &match.Marks{}}}
	env.Now, env.Log, env.Level2 = s.now, s.log, p.Level2
	env.NewGroup, env.NewCache, env.Number = w.engines.newGroup, w.engines.newCache, s.upstreams.of
	env.Metrics, env.NetSets, env.Made = &act.Metrics{}, s.netSets, &act.Made{}
	if old != nil {
		env.Metrics.Before, env.Made.Before = old.metrics.All(), old.made
	}
	read := stampSets(p)
	if !p.Level2 {
		if err := w.engines.act(s, p, env); err != nil {
			return err
		}
	}
	c, err := program.Compile(p, env, s.rules.of)
	if err != nil {
		return err
	}
	if p.Level2 {
		if w.entries, err = c.Entries(p); err != nil {
			return err
		}
	}
	run.Set = c.Set
	env.Metrics.Before, env.Made.Before = nil, nil // they are not to keep all worlds there ever were
	w.metrics, w.made = env.Metrics, env.Made
	w.sets = s.liveSets(w.made.Sets, read)
	if env.Cache != nil {
		env.Cache.Again = run.Background
	}
	w.root = &root{policy: c.Set}
	if p.Server.ID != "" {
		w.root.identity = []byte(p.Server.ID)
	}
	return nil
}

// viewTables is the zones that each view sees: the first is of clients without a
// view. A zone of the view itself stands in place of one that all see; those beside
// the plan are for everybody.
func viewTables(p *plan.Plan, zones, beside []*zone.Zone) []*zone.Table {
	var tables []*zone.Table
	for n := -1; n < len(p.Views); n++ {
		place := map[string]int{}
		var seen []*zone.Zone
		for i, z := range p.Zones {
			own := len(z.Views) > 0
			if own && (n < 0 || !slices.Contains(z.Views, p.Views[n].Name)) {
				continue
			}
			name := string(z.Name.Fold())
			at, taken := place[name]
			switch {
			case !taken:
				place[name] = len(seen)
				seen = append(seen, zones[i])
			case own:
				seen[at] = zones[i]
			}
		}
		tables = append(tables, zone.NewTable(append(seen, beside...)))
	}
	return tables
}

// compare warns where a zone's new version will not be taken by secondaries.
func (s *Server) compare(before, now *zone.Zone) {
	if before != nil && int32(now.Serial()-before.Serial()) < 0 {
		s.log.Warn("serial went backwards: secondaries will not take this version (RFC 1982)",
			"zone", now.Name().String(), "before", before.Serial(), "now", now.Serial())
	}
}

// keptError adds to err what a running server serves instead.
func keptError(err error, kept *zone.Zone, running bool) error {
	switch {
	case kept != nil:
		return fmt.Errorf("%w; serial %d stays in use", err, kept.Serial())
	case running:
		return fmt.Errorf("%w; its names answer SERVFAIL until it loads", err)
	}
	return err
}

// records is the number of resource records of all zones.
func (w *world) records() int {
	total := 0
	for _, z := range w.served() {
		total += z.Records()
	}
	return total
}

// served is all zones: of files, and managed.
func (w *world) served() []*zone.Zone { return slices.Concat(w.zones, w.beside) }

// zone is the loaded version of that zone, or nil.
func (w *world) zone(z plan.Zone) *zone.Zone {
	if w == nil {
		return nil
	}
	i, ok := w.byName[zoneKey(z)]
	if !ok || w.zones[i].Broken() {
		return nil
	}
	return w.zones[i]
}

// summary tells what is served, in a line.
func (w *world) summary() string {
	zones := w.served()
	names := make([]string, 0, len(zones))
	const shown = 10
	for i, z := range zones {
		if i == shown {
			names = append(names, fmt.Sprintf("and %d more", len(zones)-shown))
			break
		}
		if z.Broken() {
			names = append(names, z.Name().String()+" broken")
			continue
		}
		names = append(names, fmt.Sprintf("%s %d", z.Name(), z.Serial()))
	}
	text := fmt.Sprintf("%d zones, %d failed: %s", len(zones), w.failed, strings.Join(names, ", "))
	if len(zones) == 0 {
		text = "no zones"
	}
	for _, f := range w.plan.Forward {
		text += "; " + forwardText(f)
	}
	return text
}

// forwardText tells what goes to a group of upstreams.
func forwardText(f plan.Forward) string {
	what, to := []string{}, []string{}
	for _, n := range f.For {
		what = append(what, n.String())
	}
	if len(what) == 0 {
		what = []string{"the rest"}
	}
	for _, u := range f.To {
		to = append(to, u.String())
	}
	return fmt.Sprintf("%s to %s", strings.Join(what, ", "), strings.Join(to, ", "))
}
