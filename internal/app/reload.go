package app

import (
	"context"
	"errors"
	"time"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/system"
)

// reload reads configuration and zones anew, aside, and swaps them in whole. A
// problem in the configuration or with a new listener changes nothing; a zone
// that does not load keeps its version and is told as an error, while the rest
// is taken. The text says what is served now. When ctx ends, nothing changes.
func (s *Server) reload(ctx context.Context) (text string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	system.Notify(system.Reloading(system.MachineTime()))
	defer system.Notify("READY=1")
	p := s.world.Load().plan
	if s.load != nil {
		p, err = s.load()
	}
	if err == nil {
		text, err = s.renew(ctx, p)
	}
	if err != nil {
		s.log.Error("reload failed", "error", err, "served", s.world.Load().summary())
	} else {
		s.log.Info("reloaded", "served", text)
	}
	return text, err
}

// renew is reload once the plan is there.
func (s *Server) renew(ctx context.Context, p *plan.Plan) (string, error) {
	old := s.world.Load()
	w, failed, err := s.build(ctx, p, old, all)
	if err != nil {
		return "", errors.Join(append(failed, err)...)
	}
	// Only now: an open socket that nobody reads would take queries away from a
	// listener that it overlaps.
	opened, kept, gone, err := s.changeListeners(p)
	if err != nil {
		s.discard(w.engines, old.engines)
		return "", err
	}
	if err := s.queries.Use(p.QueryLog); err != nil {
		s.log.Error("the query log is off until the next reload", "error", err)
	}
	s.use(w)
	s.readRings()
	for _, l := range opened {
		l.Serve()
	}
	s.listeners = append(kept, opened...)
	s.retire(gone, p.Server.Drain)
	s.reloads.Add(1)
	return w.summary() + fixed(old.plan, p), errors.Join(failed...)
}

// reloadZones reads only the zones at those indices of the plan anew.
func (s *Server) reloadZones(ctx context.Context, changed map[int]bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.world.Load()
	w, failed, err := s.build(ctx, old.plan, old, func(i int) bool { return changed[i] })
	if err != nil {
		return "", errors.Join(append(failed, err)...)
	}
	s.use(w)
	s.reloads.Add(1)
	return w.summary(), errors.Join(failed...)
}

// retire drains listeners that are not in the plan any more.
func (s *Server) retire(gone []*listener, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	drain(ctx, gone)
	for _, l := range gone {
		l.parked.Wait(ctx)
		l.Close()
	}
}

// changeListeners opens what p has and the server has not. kept and gone divide
// what is open now.
func (s *Server) changeListeners(p *plan.Plan) (opened, kept, gone []*listener, err error) {
	if err := s.probe(p); err != nil {
		return nil, nil, nil, err
	}
	wanted := map[string]bool{}
	for _, l := range p.Listen {
		wanted[l.String()] = true
	}
	have := map[string]bool{}
	for _, l := range s.listeners {
		have[l.key] = true
		if wanted[l.key] {
			kept = append(kept, l)
		} else {
			gone = append(gone, l)
		}
	}
	for _, l := range p.Listen {
		if have[l.String()] {
			continue
		}
		n, err := s.open(p, l)
		if err != nil {
			for _, o := range opened {
				o.Close()
			}
			return nil, nil, nil, err
		}
		opened = append(opened, n)
	}
	return opened, kept, gone, nil
}

// fixed tells of changes that take effect at the next start only.
func fixed(old, p *plan.Plan) string {
	same := old.Server
	same.ID, same.Version, same.Watch, same.Drain = p.Server.ID, p.Server.Version, p.Server.Watch, p.Server.Drain
	if same == p.Server && old.Log == p.Log && old.Metrics.Listen == p.Metrics.Listen && old.Control.Path == p.Control.Path &&
		old.API.Same(p.API) && old.ZoneStore.Same(p.ZoneStore) {
		return ""
	}
	return "; limits of listeners, user, log, metrics, API, zonestore, control and history take effect at the next start"
}
