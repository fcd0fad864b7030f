package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/waymark-dns/waymark/internal/api"
	"github.com/waymark-dns/waymark/internal/explain"
	"github.com/waymark-dns/waymark/internal/history"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/stats"
	"github.com/waymark-dns/waymark/internal/upstream"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
	"github.com/waymark-dns/waymark/internal/zone/store"
	"github.com/waymark-dns/waymark/internal/zone/xfr"
)

// live is the server as the API sees it: it is an api.Live.
type live struct{ s *Server }

func (l live) Status() api.Status {
	s := l.s
	st := api.Status{Version: s.version, Uptime: s.now(), Reloads: s.reloads.Load()}
	if w := s.world.Load(); w != nil {
		st.Served = w.summary()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.listeners {
		st.Listeners = append(st.Listeners, open.key)
	}
	return st
}

func (l live) Ready() error {
	w := l.s.world.Load()
	if w == nil {
		return errors.New("zones are being loaded")
	}
	if w.failed > 0 {
		return fmt.Errorf("%d zones could not be loaded", w.failed)
	}
	return nil
}

func (l live) Reload(ctx context.Context) (string, error) { return l.s.reload(ctx) }

func (l live) Explain(ctx context.Context, a explain.Asked) (*explain.Answered, error) {
	return l.s.explain(ctx, a)
}

func (l live) Caches() (all []api.NamedCache) {
	w := l.s.world.Load()
	if w == nil {
		return nil
	}
	if c := w.engines.cache; c != nil {
		all = append(all, api.NamedCache{Cache: c})
	}
	for _, c := range w.made.Caches {
		all = append(all, api.NamedCache{Tag: c.Tag, Cache: c.Cache()})
	}
	return all
}

func (l live) Groups() (all []api.NamedGroup) {
	w := l.s.world.Load()
	if w == nil {
		return nil
	}
	tags := map[*upstream.Group]string{}
	for _, relay := range w.made.Relays {
		tags[relay.Group] = relay.Tag
	}
	for i, g := range w.engines.groups {
		name, ok := tags[g.Group]
		if !ok {
			name = groupName(i, w.plan)
		}
		all = append(all, api.NamedGroup{Name: name, Group: g.Group})
	}
	return all
}

func (l live) Sets() (all []api.SetView) {
	w := l.s.world.Load()
	if w == nil {
		return nil
	}
	for _, set := range w.sets {
		all = append(all, api.SetView{Tag: set.Tag, Type: set.Type, Entries: set.Len(), Files: append([]string{}, set.Files()...)})
	}
	return all
}

func (l live) ReloadSet(tag string) error {
	_, err := l.s.reloadSets(tag)
	return err
}

func (l live) QueryLog() (*qlog.Log, string) { return l.s.queries.Log() }

func (l live) Series() ([]string, *stats.Series) { return seriesNames, l.s.series }

func (l live) Zones() []*zone.Zone {
	if w := l.s.world.Load(); w != nil {
		return w.served()
	}
	return nil
}

func (l live) ZoneFile(apex wire.Name) (string, bool) {
	if w := l.s.world.Load(); w != nil {
		for _, z := range w.plan.Zones {
			if wire.EqualFold(z.Name, apex) {
				return z.File, true
			}
		}
	}
	return "", false
}

func (l live) Store() *store.Store { return l.s.managed.store }

func (l live) UseZone(z *zone.Zone) error { return l.s.setZone(z.Name(), z) }

func (l live) DropZone(apex wire.Name) error { return l.s.setZone(apex, nil) }

func (l live) Primary(addr, key string) (*xfr.Primary, error) { return l.s.primary(addr, key) }

func (l live) History() *history.Manager { return l.s.history }

// openAPI opens the HTTP API, where the plan has one.
func (s *Server) openAPI(p *plan.Plan) error {
	if p.API.HTTP == "" {
		return nil
	}
	c := api.Config{
		Listen: p.API.HTTP, TLS: api.CertFiles{Cert: p.API.Cert, Key: p.API.Key}, Log: s.log, Live: live{s}, Metrics: collector{s},
		Clock: api.Clock{Now: s.now, Wall: s.wall, Deadline: deadline},
	}
	var err error
	if p.Level2 {
		c.Level2 = &api.Level2{Made: s.made, Reload: func(_ context.Context, tag string) error { _, err := s.reloadSets(tag); return err }}
		c.Listen, c.Access, err = api.Level2Access(p.API.HTTP, p.API.Token, s.log)
	} else {
		c.Access, err = api.AccessOf(p.API)
	}
	if err != nil {
		return err
	}
	if c.Audit, err = api.OpenAudit(p.API.Audit, s.log); err != nil {
		return err
	}
	s.series = stats.NewSeries(s.totals())
	if s.api, err = api.Open(c); err != nil {
		return errors.Join(err, c.Audit.Close())
	}
	s.wg.Go(func() { s.seriesLoop(s.ctx) })
	return nil
}
