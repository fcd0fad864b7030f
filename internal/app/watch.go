package app

import (
	"context"
	"maps"
	"slices"
	"time"
)

// watchInterval is how often files are looked at where that was asked for.
const watchInterval = time.Second

// watcher remembers what files looked like, from one look to the next.
type watcher struct{ seen map[string]stamp }

// look reloads the zones with a file that is not what it was when it was read,
// and that has been left alone since the last look, so that a half-written file
// is not read.
func (f *watcher) look(ctx context.Context, s *Server) {
	w := s.world.Load()
	if !w.plan.Server.Watch {
		return
	}
	changed := f.changed(w.files)
	if len(changed) == 0 {
		return
	}
	names := make([]string, 0, len(changed))
	for _, i := range slices.Sorted(maps.Keys(changed)) {
		names = append(names, w.plan.Zones[i].Name.String())
	}
	if _, err := s.reloadZones(ctx, changed); err != nil {
		s.log.Error("files changed, reload failed", "zones", names, "error", err)
	} else {
		s.log.Info("files changed, reloaded", "zones", names)
	}
}

// changed is the indices of what is to be read anew, of all that was read.
func (f *watcher) changed(all [][]stamp) map[int]bool {
	changed := map[int]bool{}
	seen := map[string]stamp{}
	for i, files := range all {
		settled := true
		differs := false
		for _, was := range files {
			now, _ := stampOf(was.file) // a file that is gone has changed
			if now == was {
				continue
			}
			differs = true
			seen[was.file] = now
			if before, ok := f.seen[was.file]; !ok || before != now {
				settled = false
			}
		}
		if differs && settled {
			changed[i] = true
		}
	}
	f.seen = seen
	return changed
}
