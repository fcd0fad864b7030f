package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/control"
	"github.com/waymark-dns/waymark/internal/plan"
)

// watchInterval is how often files are looked at where that was asked for.
const watchInterval = time.Second

// reload reads configuration and zones anew, aside, and swaps them in whole. A
// problem in the configuration or with a new listener changes nothing; a zone
// that does not load keeps its version and is told as an error, while the rest
// is taken. The text says what is served now.
func (s *Server) reload() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	notify(reloading(machineTime()))
	defer notify("READY=1")
	old := s.world.Load()
	p := old.plan
	if s.load != nil {
		var err error
		if p, err = s.load(); err != nil {
			return "", err
		}
	}
	opened, kept, gone, err := s.changeListeners(p)
	if err != nil {
		return "", err
	}
	w, failed, err := s.build(p, old)
	if err != nil {
		for _, l := range opened {
			l.Close()
		}
		return "", errors.Join(append(failed, err)...)
	}
	s.warnFixed(old.plan, p)
	s.use(w)
	for _, l := range opened {
		l.Serve()
	}
	s.listeners = append(kept, opened...)
	s.retire(gone, p.Server.Drain)
	s.reloads.Add(1)
	return summary(w, len(failed)), errors.Join(failed...)
}

// retire drains listeners that are not in the plan any more.
func (s *Server) retire(gone []*listener, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	drain(ctx, gone)
	for _, l := range gone {
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

// warnFixed tells of changes that take effect at the next start only.
func (s *Server) warnFixed(old, p *plan.Plan) {
	fixed := old.Server
	fixed.ID, fixed.Version, fixed.Watch, fixed.Drain = p.Server.ID, p.Server.Version, p.Server.Watch, p.Server.Drain
	if fixed != p.Server || old.Log != p.Log || old.Metrics != p.Metrics || old.Control != p.Control {
		s.log.Warn("limits of listeners, user, log, metrics and control take effect at the next start")
	}
}

func summary(w *world, failed int) string {
	names := make([]string, 0, len(w.plan.Zones))
	for _, z := range w.table.Zones() {
		if z.Broken() {
			names = append(names, z.Name().String()+" broken")
			continue
		}
		names = append(names, fmt.Sprintf("%s %d", z.Name(), z.Serial()))
	}
	const shown = 10
	if more := len(names) - shown; more > 0 {
		names = append(names[:shown], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d zones, %d failed: %s", len(w.plan.Zones), failed, strings.Join(names, ", "))
}

// watch reloads where a zone's file has changed and has been left alone since the
// last look, so that a half-written file is not read.
func (s *Server) watch() {
	w := s.world.Load()
	if !w.plan.Server.Watch {
		return
	}
	changed := false
	for i, z := range w.plan.Zones {
		now, err := stampOf(z.File)
		if err != nil || now == w.stamps[i] {
			continue
		}
		if time.Since(now.time) < watchInterval {
			return
		}
		changed = true
	}
	if !changed {
		return
	}
	if text, err := s.reload(); err != nil {
		s.log.Error("a zone file changed, reload failed", "error", err)
	} else {
		s.log.Info("a zone file changed, reloaded", "result", text)
	}
}

// command does what the control socket asks for.
func (s *Server) command(_ context.Context, r control.Request) control.Response {
	switch r.Command {
	case "reload":
		text, err := s.reload()
		if err != nil {
			return control.Response{Text: text, Error: err.Error()}
		}
		return control.Response{Text: text}
	case "status":
		w := s.world.Load()
		return control.Response{Text: summary(w, 0)}
	}
	return control.Response{Error: fmt.Sprintf("no command %q: there are reload and status", r.Command)}
}
