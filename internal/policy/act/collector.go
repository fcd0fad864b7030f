package act

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
)

// Metrics is the collectors of a configuration.
type Metrics struct {
	// Before is the collectors of the configuration before this one: who has the same
	// name goes on counting.
	Before []*Collector

	mu   sync.Mutex // guards list
	list []*Collector
}

// All is the collectors in the order of the configuration. The caller owns the
// slice.
func (m *Metrics) All() []*Collector {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

func (m *Metrics) add(c *Collector) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(m.list, func(o *Collector) bool { return o.Name == c.Name }) {
		return fmt.Errorf("naming a collector %q: there is one of that name", c.Name)
	}
	m.list = append(m.list, c)
	return nil
}

// LatencyBounds is where the classes of Collector.Latency end, in milliseconds,
// that number included. One more class has the rest.
var LatencyBounds = [...]uint64{1, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}

// Collector counts the queries that pass it.
type Collector struct {
	Name    string
	Queries atomic.Uint64
	Errors  atomic.Uint64 // queries with a rule that could not do its work
	Thread  atomic.Int64  // queries that are on their way

	now     func() time.Duration
	classes [len(LatencyBounds) + 1]atomic.Uint64
	sum     atomic.Uint64
}

func makeCollector(e *Env, args string) (any, error) {
	c := &Collector{Name: strings.TrimSpace(args), now: e.Now}
	if c.Name == "" {
		return nil, errors.New("naming a collector: it has to have a name")
	}
	if e.Metrics == nil {
		e.Metrics = &Metrics{}
	}
	for _, was := range e.Metrics.Before {
		if was.Name == c.Name {
			c = was
		}
	}
	return c, e.Metrics.add(c)
}

// Latency is how many responses there were in each class of time, and how many
// milliseconds all of them took.
func (a *Collector) Latency() (classes [len(LatencyBounds) + 1]uint64, sum uint64) {
	for i := range classes {
		classes[i] = a.classes[i].Load()
	}
	return classes, a.sum.Load()
}

// Do is part of policy.Step.
func (a *Collector) Do(r *serve.Request) policy.Next {
	f := policy.NewFrame(r)
	if f == nil {
		return policy.Fail
	}
	f.A = uint64(a.now())
	a.Queries.Add(1)
	a.Thread.Add(1)
	return policy.Go
}

// After is part of policy.Finisher.
func (a *Collector) After(r *serve.Request, f *serve.Frame) {
	a.Thread.Add(-1)
	if r.Policy.Failed {
		a.Errors.Add(1)
	}
	if r.Out == nil {
		return
	}
	ms := uint64((a.now() - time.Duration(f.A)).Milliseconds())
	i := 0
	for i < len(LatencyBounds) && ms > LatencyBounds[i] {
		i++
	}
	a.classes[i].Add(1)
	a.sum.Add(ms)
}
