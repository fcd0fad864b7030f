package app

import (
	"errors"
	"fmt"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
	"github.com/waymark-dns/waymark/internal/zone"
)

// world is all that one configuration makes, sockets apart. It is never changed;
// a reload builds another and swaps it in whole.
type world struct {
	plan   *plan.Plan
	table  *zone.Table
	stamps []stamp // of the zones' files, in the order of plan.Zones
	root   *root
}

// errNoZone is a start without one zone to serve.
var errNoZone = errors.New("none of the zones could be loaded")

// build makes the world of p. Zones that cannot be loaded keep their version in
// old, where there is one, or answer SERVFAIL; failed says which and why.
func (s *Server) build(p *plan.Plan, old *world) (w *world, failed []error, err error) {
	results := loadZones(p.Zones, s.log, s.now)
	var zones []*zone.Zone
	w = &world{plan: p}
	for i, r := range results {
		z := r.zone
		if r.err != nil {
			z = old.zone(p.Zones[i])
			failed = append(failed, keptError(r.err, z))
		}
		if z == nil {
			z = zone.Broken(p.Zones[i].Name)
		} else if before := old.zone(p.Zones[i]); before != nil && int32(z.Serial()-before.Serial()) < 0 {
			s.log.Warn("serial went backwards: secondaries will not take this version (RFC 1982)",
				"zone", z.Name().String(), "before", before.Serial(), "now", z.Serial())
		}
		zones = append(zones, z)
		w.stamps = append(w.stamps, r.stamp)
	}
	if len(failed) > 0 && len(failed) == len(p.Zones) && old == nil {
		return nil, failed, errNoZone
	}
	w.table = zone.NewTable(zones)
	set, err := compile(p.Programs, &act.Env{Zones: w.table, Identity: p.Server.ID, Version: p.Server.Version})
	if err != nil {
		return nil, failed, err
	}
	w.root = &root{policy: set}
	if p.Server.ID != "" {
		w.root.identity = []byte(p.Server.ID)
	}
	return w, failed, nil
}

// keptError adds to err what is served instead.
func keptError(err error, kept *zone.Zone) error {
	if kept == nil {
		return fmt.Errorf("%w; its names answer SERVFAIL until it loads", err)
	}
	return fmt.Errorf("%w; serial %d stays in use", err, kept.Serial())
}

// records is the number of resource records of all zones.
func (w *world) records() int {
	total := 0
	for _, z := range w.table.Zones() {
		total += z.Records()
	}
	return total
}

// zone is the loaded version of that zone, or nil.
func (w *world) zone(z plan.Zone) *zone.Zone {
	if w == nil {
		return nil
	}
	for _, have := range w.table.Zones() {
		if string(have.Name()) == string(z.Name.Fold()) && !have.Broken() {
			return have
		}
	}
	return nil
}
