// Package app makes a running server of a plan: it opens the sockets, builds the
// engines, swaps a new configuration in, and stops everything in order. It is
// the only package that asks for the time (DESIGN decision 7).
package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/api"
	"github.com/waymark-dns/waymark/internal/control"
	"github.com/waymark-dns/waymark/internal/history"
	"github.com/waymark-dns/waymark/internal/listen"
	"github.com/waymark-dns/waymark/internal/netsets"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/querylog"
	"github.com/waymark-dns/waymark/internal/stats"
	"github.com/waymark-dns/waymark/internal/system"
	"github.com/waymark-dns/waymark/internal/upstream"
)

// Options is what a server is made with.
type Options struct {
	Plan *plan.Plan
	// Load reads the configuration anew for a reload; its error tells every
	// problem. It is nil where there is nothing to read again but the zones.
	Load func() (*plan.Plan, error)
	// File is the configuration file, and Parse reads a text that is to stand there;
	// without a file both are empty.
	File    string
	Parse   func(text []byte) (*plan.Plan, []plan.Problem)
	Log     *slog.Logger
	Stdout  io.Writer // what listens is told here, for people
	Name    string    // how the program is called, for what to try
	Version string    // of the program
}

// Server is a server from Run to its end.
type Server struct {
	console
	load func() (*plan.Plan, error)
	clocks

	entry     listen.Entry
	parked    *listen.Parked
	workers   registry
	world     atomic.Pointer[world]
	inherited system.Inherited
	secret    [16]byte // of DNS cookies, where the configuration has none
	netSets   *netsets.Writer
	logged
	outbox upstream.Outbox

	ticks ticks
	ctx   context.Context // ends with the server
	end   context.CancelFunc
	wg    sync.WaitGroup // of goroutines that end with ctx

	mu        sync.Mutex // one reload at a time; guards listeners
	listeners []*listener

	management
	reloads atomic.Uint64 // that succeeded
}

// console is where a server says what happens.
type console struct {
	log    *slog.Logger
	stdout io.Writer
	name   string // of the program
}

// logged is the log of queries, and what it has numbers for.
type logged struct {
	queries          *querylog.Keeper
	rules, upstreams numbers
}

// clocks is the time.
type clocks struct {
	clock func() time.Duration // since the start, monotonic
	wall  func() time.Time
	unix  atomic.Uint32 // wall, in seconds, not older than watchInterval
}

// management is what a server is looked at and handled by; nil is off.
type management struct {
	managed managedZones
	version string // of the program
	control *control.Server
	metrics *metricsServer
	api     *api.Server
	history *history.Manager
	series  *stats.Series // of the API's

	setReads sync.Mutex // one set at a time is read anew: memory for one is enough
}

// Run serves until ctx ends, then drains and returns nil. Each value on hup
// reloads. An error means that the server did not start; nothing is left open.
func Run(ctx context.Context, o Options, hup <-chan os.Signal) error {
	s := newServer(o)
	if err := s.start(ctx, o.Plan); err != nil {
		s.close()
		if ctx.Err() != nil {
			return nil // told to stop before it was ready
		}
		return err
	}
	s.serve(ctx, hup, o.Plan.Server.Drain)
	return nil
}

func newServer(o Options) *Server {
	begin := time.Now()
	s := &Server{
		console: console{log: o.Log, stdout: o.Stdout, name: o.Name}, load: o.Load,
		clocks: clocks{clock: func() time.Duration { return time.Since(begin) }, wall: time.Now},
		parked: listen.NewParked(o.Plan.Server.Parked), ticks: ticks{wake: make(chan struct{}, 1)},
	}
	s.workers.now, s.history = s.now, s.newHistory(o)
	s.queries = querylog.New(querylog.Env{
		Names: qlog.Names{Rule: s.rules.text, Upstream: s.upstreams.text, Listener: s.workers.key},
		Now:   s.now, Wall: s.wall, Log: o.Log, Stdout: o.Stdout,
	})
	s.netSets = netsets.NewWriter(s.now, o.Log)
	s.version = o.Version
	s.seeTime()
	s.ctx, s.end = context.WithCancel(context.Background())
	s.ticks.groups.Store(&[]*upstream.Group{})
	return s
}

// serve runs a started server until ctx ends, and drains it within limit.
func (s *Server) serve(ctx context.Context, hup <-chan os.Signal, limit time.Duration) {
	system.Notify("READY=1")
	s.waitLoop(ctx, hup)
	system.Notify("STOPPING=1")
	s.stop(limit)
}

// now is the monotonic time since the server began.
func (s *Server) now() time.Duration { return s.clock() }

// seeTime notes the time of day, which the steps of the policy are not to ask for.
func (s *Server) seeTime() { s.unix.Store(uint32(s.wall().Unix())) }

func deadline(d time.Duration) time.Time { return time.Now().Add(d) }

// start opens the sockets first: a port that is taken is told before a large zone
// is read. Queries and commands that come in while zones load wait in the
// sockets' buffers.
func (s *Server) start(ctx context.Context, p *plan.Plan) error {
	s.inherited = system.TakeInherited()
	if err := s.probe(p); err != nil {
		return err
	}
	for _, l := range p.Listen {
		opened, err := s.open(p, l)
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, opened)
	}
	if err := s.inherited.Unused(); err != nil {
		return err
	}
	if err := system.DropPrivileges(p.Server.User, p.Server.Group); err != nil {
		return err
	}
	if err := s.queries.Use(p.QueryLog); err != nil {
		return err
	}
	s.readRings()
	if err := s.openStore(p); err != nil {
		return err
	}
	if err := s.openManagement(p); err != nil {
		return err
	}
	w, failed, err := s.build(ctx, p, nil, all)
	for _, f := range failed {
		s.log.Error("zone not loaded, its names answer SERVFAIL until it is", "error", f)
	}
	if err != nil {
		return err
	}
	s.use(w)
	s.wg.Go(func() { s.tickLoop(s.ctx) })
	for _, l := range s.listeners {
		l.Serve()
	}
	if s.history != nil {
		s.history.Serve()
	}
	if s.control != nil {
		s.control.Serve()
	}
	if s.api != nil {
		s.api.Serve()
	}
	s.announce(w)
	debug.SetGCPercent(gcPercent)
	return nil
}

// gcPercent keeps the heap of a running server close to what is alive: queries
// leave hardly any garbage, and what is not needed is memory that the cache was
// promised. Loading is over by then.
const gcPercent = 50

// openManagement opens the control socket, the metrics listener and the API.
func (s *Server) openManagement(p *plan.Plan) error {
	if p.Control.Path != "" {
		c, err := control.Listen(p.Control.Path, s.command, deadline, s.log)
		if err != nil {
			return err
		}
		s.control = c
	}
	if p.Metrics.Listen.IsValid() {
		m, err := serveMetrics(p.Metrics.Listen, s)
		if err != nil {
			return err
		}
		s.metrics = m
	}
	return s.openAPI(p)
}

// manyRecords is where the garbage of loading is worth giving back at once.
const manyRecords = 100_000

// use swaps w in: each batch that starts from now on sees it. What the world
// before it took, and what loading took, goes back to the system.
func (s *Server) use(w *world) {
	s.keepTicking(w, s.world.Load())
	if w.entries != nil {
		w.root.entries = s.workers.entries(w.entries)
	}
	s.world.Store(w)
	s.entry.Set(w.root)
	if w.records() > manyRecords {
		debug.FreeOSMemory()
	}
}

// announce tells people what listens and what to try.
func (s *Server) announce(w *world) {
	var b strings.Builder
	for _, l := range s.listeners {
		scheme, _, _ := strings.Cut(l.key, "://")
		fmt.Fprintf(&b, "listening on %s://%s\n", scheme, l.Addr())
	}
	if zones := len(w.zones) + len(w.beside); zones > 0 || len(w.plan.Forward) == 0 && !w.plan.Level2 {
		fmt.Fprintf(&b, "serving %d zones with %d records\n", zones, w.records())
	}
	if s.api != nil {
		fmt.Fprintf(&b, "HTTP API at %s/api/v1\n", s.api.URL())
	}
	if w.plan.Level2 {
		fmt.Fprintf(&b, "running %d sequences with %d plugins beside them\n", len(w.plan.Programs), len(w.plan.Objects))
	}
	for _, f := range w.plan.Forward {
		fmt.Fprintf(&b, "forwarding %s\n", forwardText(f))
	}
	if len(w.plan.Zones)+len(w.plan.Forward) == 0 && !w.plan.Level2 && s.managed.store == nil {
		s.log.Warn("no zones and nothing to forward to: every query will be refused")
	}
	if len(s.listeners) > 0 {
		addr := s.listeners[0].Addr()
		switch {
		case len(w.plan.Zones) > 0:
			fmt.Fprintf(&b, "try: %s query @%s %s SOA\n", s.name, addr, w.plan.Zones[0].Name)
		case len(w.plan.Forward) > 0 || w.plan.Level2:
			fmt.Fprintf(&b, "try: %s query @%s %s A\n", s.name, addr, "example.org.")
		}
	}
	_, _ = io.WriteString(s.stdout, b.String()) // nobody may be reading
}

// waitLoop waits for what happens from outside.
func (s *Server) waitLoop(ctx context.Context, hup <-chan os.Signal) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var files watcher
	var sets setWatcher
	dumps := dumper{begin: s.now(), last: map[string]time.Duration{}, running: make(chan struct{}, 1)}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			_, _ = s.reload(ctx) // it has told the log
		case <-tick.C:
			s.seeTime()
			files.look(ctx, s)
			sets.look(s)
			dumps.look(s)
		}
	}
}

// stop drains: every query that has been received is answered, within limit. The
// control socket and the API go first, and a reload that runs gives up, so that the
// limit is the drain's alone.
func (s *Server) stop(limit time.Duration) {
	s.closeControl()
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	drain(ctx, s.listeners)
	s.parked.Wait(ctx)
	w := s.world.Load()
	s.closeAll()
	s.dump(w.dumps())
}

// drain drains listeners side by side.
func drain(ctx context.Context, listeners []*listener) {
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() { l.Drain(ctx) })
	}
	wg.Wait()
}

// closeControl closes the control socket and the API and waits for their commands;
// none may hold or want what the caller holds.
func (s *Server) closeControl() {
	if s.history != nil {
		s.history.Close()
	}
	if s.control != nil {
		if err := s.control.Close(); err != nil {
			s.log.Warn("closing the control socket failed", "error", err)
		}
		s.control = nil
	}
	if s.api != nil {
		if err := s.api.Close(); err != nil {
			s.log.Warn("closing the API failed", "error", err)
		}
		s.api = nil
	}
}

// close closes whatever is open.
func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeAll()
}

// closeAll is close under the lock. Upstreams come before listeners: who waits for
// one gets the answer that there is none.
func (s *Server) closeAll() {
	s.closeControl()
	s.end()
	s.closeEngines()
	if err := s.netSets.Close(); err != nil {
		s.log.Warn("closing sets of the kernel failed", "error", err)
	}
	defer s.wg.Wait()
	for _, l := range s.listeners {
		l.Close()
	}
	s.queries.Close()
	s.closeStore()
	if s.metrics == nil {
		return
	}
	if err := s.metrics.Close(); err != nil {
		s.log.Warn("closing metrics failed", "error", err)
	}
}
