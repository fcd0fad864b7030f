package app

import (
	"errors"
	"io"
	"io/fs"
	"slices"
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

// lazyCache is the cache of an object with that tag: that of old where its
// configuration is the same, else a new one with what old's holds.
func (s *Server) lazyCache(e *engines, old *world, tag string, c cache.Config) (*cache.Cache, error) {
	was, same := lazyCache{}, false
	if old != nil && tag != "" {
		was, same = old.engines.lazy[tag]
	}
	if same && was.conf == c {
		e.lazy[tag] = was
		return was.Cache, nil
	}
	made, err := cache.New(c)
	if err != nil {
		return nil, err
	}
	if same {
		s.moveCache(was.Cache, made)
	}
	e.lazy[tag] = lazyCache{made, c}
	return made, nil
}

// loadLazy fills the caches of objects that are new from their files.
func (s *Server) loadLazy(w, old *world) {
	for _, c := range w.made.Caches {
		if old != nil {
			if _, ok := old.engines.lazy[c.Tag]; ok {
				continue
			}
		}
		if c.Args.DumpFile != "" {
			s.loadCache(c.Cache(), c.Args.DumpFile)
		}
	}
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

// dump is a cache that is written to a file.
type dump struct {
	*cache.Cache
	file     string
	interval time.Duration
}

// dumps is the caches with a file. Where two name the same file, the first has it.
func (w *world) dumps() (all []dump) {
	if w == nil {
		return nil
	}
	add := func(d dump) {
		if d.file != "" && !slices.ContainsFunc(all, func(o dump) bool { return o.file == d.file }) {
			all = append(all, d)
		}
	}
	if c := w.plan.Cache; w.engines.cache != nil {
		add(dump{w.engines.cache, c.File, c.Interval})
	}
	for _, c := range w.made.Caches {
		add(dump{c.Cache(), c.Args.DumpFile, time.Duration(c.Args.DumpInterval) * time.Second})
	}
	return all
}

// dumper writes caches to their files at intervals.
type dumper struct {
	begin   time.Duration
	last    map[string]time.Duration // by file
	running chan struct{}            // holds a token while dumps are written
}

// look begins the dumps whose time has come.
func (d *dumper) look(s *Server) {
	var due []dump
	for _, c := range s.world.Load().dumps() {
		if last, ok := d.last[c.file]; !ok {
			d.last[c.file] = d.begin
		} else if s.now()-last >= c.interval {
			due = append(due, c)
		}
	}
	if len(due) == 0 {
		return
	}
	select {
	case d.running <- struct{}{}:
	default:
		return // those before are not finished
	}
	for _, c := range due {
		d.last[c.file] = s.now()
	}
	s.wg.Go(func() {
		defer func() { <-d.running }()
		s.dump(due)
	})
}

// dump writes caches to their files.
func (s *Server) dump(all []dump) {
	for _, c := range all {
		n, err := c.SaveFile(c.file, s.now(), s.wall())
		if err != nil {
			s.log.Warn("dumping the cache failed, the dump before it stays", "error", err)
			continue
		}
		s.log.Debug("dumped the cache", "entries", n, "file", c.file)
	}
}
