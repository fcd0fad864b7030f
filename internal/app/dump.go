package app

import (
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/plan"
)

// cacheConfig is c in the cache's own words.
func cacheConfig(c plan.Cache) cache.Config {
	return cache.Config{
		Size: c.Size, MinTTL: c.MinTTL, MaxTTL: c.MaxTTL, MaxNegativeTTL: c.MaxNegative,
		MaxStale: c.Stale, Immediate: c.Immediate, Prefetch: c.Prefetch,
	}
}

// buildCache is the cache of p: that of old where nothing about it has changed,
// else a new one with what old's holds, or at the start what the dump does.
func (s *Server) buildCache(p *plan.Plan, old *world) (*cache.Cache, error) {
	if !p.Cache.On {
		return nil, nil
	}
	conf := cacheConfig(p.Cache)
	same := old != nil && old.engines.cache != nil
	if same && cacheConfig(old.plan.Cache) == conf {
		return old.engines.cache, nil
	}
	made, err := cache.New(conf)
	switch {
	case err != nil:
		return nil, err
	case same:
		s.moveCache(old.engines.cache, made)
	case old == nil && p.Cache.File != "":
		s.loadCache(made, p.Cache.File)
	}
	return made, nil
}

// moveCache fills a cache with what another holds. That is a favour, not a duty.
func (s *Server) moveCache(from, to *cache.Cache) {
	r, w := io.Pipe()
	now, wall := s.now(), s.wall()
	s.wg.Go(func() {
		_, err := from.Dump(w, now, wall)
		_ = w.CloseWithError(err) // nil at its end
	})
	n, err := to.Load(r, now, wall)
	_ = r.CloseWithError(err)
	if err != nil {
		s.log.Warn("the cache begins anew", "error", err)
		return
	}
	s.log.Info("moved the cache", "entries", n)
}

// loadCache fills a cache from the last dump. Without a dump, or with one that is
// damaged, the cache begins empty.
func (s *Server) loadCache(c *cache.Cache, file string) {
	n, err := c.LoadFile(file, s.now(), s.wall())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.log.Warn("the cache begins empty", "error", err)
	default:
		s.log.Info("loaded the cache", "entries", n, "file", file)
	}
}

// dumper writes the cache to its file at intervals.
type dumper struct {
	last    time.Duration
	running chan struct{} // holds a token while a dump is written
}

// look begins a dump where its time has come.
func (d *dumper) look(s *Server) {
	w := s.world.Load()
	if w.engines.cache == nil || w.plan.Cache.File == "" || s.now()-d.last < w.plan.Cache.Interval {
		return
	}
	select {
	case d.running <- struct{}{}:
	default:
		return // the one before is not finished
	}
	d.last = s.now()
	s.wg.Go(func() {
		defer func() { <-d.running }()
		s.dump(w)
	})
}

// dump writes the cache of w to its file.
func (s *Server) dump(w *world) {
	if w == nil || w.engines.cache == nil || w.plan.Cache.File == "" {
		return
	}
	n, err := w.engines.cache.SaveFile(w.plan.Cache.File, s.now(), s.wall())
	if err != nil {
		s.log.Warn("dumping the cache failed, the dump before it stays", "error", err)
		return
	}
	s.log.Debug("dumped the cache", "entries", n, "file", w.plan.Cache.File)
}
