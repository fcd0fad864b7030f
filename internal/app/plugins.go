package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymark-dns/waymark/internal/netsets"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
)

// made is what the present configuration has made.
func (s *Server) made() (*act.Made, *act.Metrics) {
	w := s.world.Load()
	if w == nil {
		return &act.Made{}, &act.Metrics{}
	}
	return w.made, w.metrics
}

// liveSet is a set and what its files were when they were read.
type liveSet struct {
	*act.Set

	mu     sync.Mutex // guards what follows
	stamps []stamp
	at     time.Duration // of the last reading
}

// stampSets looks at the files of all sets before they are read: a change while
// they are is then seen later.
func stampSets(p *plan.Plan) map[string][]stamp {
	all := map[string][]stamp{}
	for _, o := range p.Objects {
		var files []string
		switch a := o.Args.(type) {
		case *act.DomainSetArgs:
			files = a.Files
		case *act.IPSetArgs:
			files = a.Files
		}
		all[o.Tag] = stampsOf(files)
	}
	return all
}

func stampsOf(files []string) []stamp {
	var all []stamp
	for _, f := range files {
		st, _ := stampOf(f) // one that is not there has none
		all = append(all, st)
	}
	return all
}

func (s *Server) liveSets(sets []*act.Set, read map[string][]stamp) []*liveSet {
	var all []*liveSet
	for _, set := range sets {
		all = append(all, &liveSet{Set: set, stamps: read[set.Tag], at: s.now()})
	}
	return all
}

// errNoSet is told for a tag that no set has.
var errNoSet = errors.New("there is no set of that tag")

// reloadSets reads the sets with that tag anew, all of them where it is empty. One
// that cannot be read stays as it was.
func (s *Server) reloadSets(tag string) (n int, err error) {
	var errs []error
	for _, set := range s.world.Load().sets {
		if tag != "" && set.Tag != tag {
			continue
		}
		n++
		errs = append(errs, s.reloadSet(set))
	}
	if n == 0 && tag != "" {
		return 0, fmt.Errorf("reading set %s: %w", tag, errNoSet)
	}
	return n, errors.Join(errs...)
}

func (s *Server) reloadSet(set *liveSet) error {
	s.setReads.Lock()
	defer s.setReads.Unlock()
	stamps := stampsOf(set.Files())
	err := set.Reload()
	set.mu.Lock()
	set.stamps, set.at = stamps, s.now()
	set.mu.Unlock()
	if err != nil {
		s.log.Warn("a set could not be read anew, it stays as it was", "set", set.Tag, "error", err)
	}
	return err
}

// due tells whether the time of a set has come, or a file of it has changed and is
// left alone since the look before.
func (l *liveSet) due(now time.Duration, seen map[string]stamp) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Reread.Seconds > 0 && now-l.at >= time.Duration(l.Reread.Seconds)*time.Second {
		return true
	}
	if !l.Reread.Changed {
		return false
	}
	changed := false
	for _, was := range l.stamps {
		is, _ := stampOf(was.file)
		if before, ok := seen[was.file]; is != was && ok && before == is {
			changed = true
		}
		seen[was.file] = is
	}
	return changed
}

// setWatcher reads sets anew that ask for it.
type setWatcher struct {
	seen    map[string]stamp
	running chan struct{}
}

// look begins the readings whose time has come, in a goroutine of their own.
func (f *setWatcher) look(s *Server) {
	if f.seen == nil {
		f.seen, f.running = map[string]stamp{}, make(chan struct{}, 1)
	}
	var due []*liveSet
	for _, set := range s.world.Load().sets {
		if set.due(s.now(), f.seen) {
			due = append(due, set)
		}
	}
	if len(due) == 0 {
		return
	}
	select {
	case f.running <- struct{}{}:
	default:
		return // those before are not finished
	}
	s.wg.Go(func() {
		defer func() { <-f.running }()
		for _, set := range due {
			_ = s.reloadSet(set) // it has told the log
		}
	})
}

// setsCommand lists sets, or reads them anew.
func (s *Server) setsCommand(_ context.Context, args []string) (string, error) {
	switch {
	case len(args) == 1 && args[0] == "list":
		return s.listSets(), nil
	case len(args) >= 1 && len(args) <= 2 && args[0] == "reload":
		tag := ""
		if len(args) == 2 {
			tag = args[1]
		}
		n, err := s.reloadSets(tag)
		return fmt.Sprintf("%d sets read", n), err
	}
	return "", errors.New("sets needs to know what to do: list, or reload with or without a tag")
}

func (s *Server) listSets() string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "TAG\tTYPE\tRULES\tFILES")
	for _, set := range s.world.Load().sets {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", set.Tag, set.Type, set.Len(), strings.Join(set.Files(), " "))
	}
	_ = t.Flush()
	return strings.TrimRight(b.String(), "\n")
}

// setMetrics sends how large the sets are.
func setMetrics(sets []*liveSet, ch chan<- prometheus.Metric) {
	desc := prometheus.NewDesc("waymark_set_rules", "Rules of a set.", []string{"set"}, nil)
	for _, set := range sets {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(set.Len()), set.Tag)
	}
}

// netSetMetrics sends what was written into sets of the kernel.
func netSetMetrics(n netsets.Counts, ch chan<- prometheus.Metric) {
	for _, row := range []struct {
		name, help string
		v          uint64
	}{
		{"waymark_kernel_sets_written_total", "Addresses written into sets of the kernel.", n.Written},
		{"waymark_kernel_sets_failed_total", "Addresses that the kernel did not take.", n.Failed},
		{"waymark_kernel_sets_dropped_total", "Addresses dropped because too many waited.", n.Dropped},
	} {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(row.name, row.help, nil, nil), prometheus.CounterValue, float64(row.v))
	}
}
