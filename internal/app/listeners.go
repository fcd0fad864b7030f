package app

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/waymark-dns/waymark/internal/listen"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/stats"
)

// listener is one open address.
type listener struct {
	key    string         // as plan.Listen.String has it
	parked *listen.Parked // its requests that wait
	peer   *serve.Peer    // what its clients have in common
	transport
}

// transport is what the listeners of all transports can do.
type transport interface {
	Addr() netip.AddrPort
	Serve()
	Drain(ctx context.Context)
	Close()
}

// source is the counters and the rings of one listener.
type source struct {
	key     string
	workers []listen.Worker
	shared  *qlog.Shared // of goroutines without a ring of their own
	rings   []*qlog.Ring
}

// registry knows the counters of all listeners there ever were: a counter must
// not go back when a listener goes.
type registry struct {
	mu      sync.Mutex // guards sources
	sources []*source
	now     func() time.Duration // the clock of rings
}

// source is that of key, with at least n workers; a listener that comes back goes
// on counting where it ended.
func (g *registry) source(key string, n int) (s *source, index uint16) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, have := range g.sources {
		if have.key == key {
			s, index = have, uint16(i)
		}
	}
	if s == nil {
		s, index = &source{key: key}, uint16(len(g.sources))
		g.sources = append(g.sources, s)
	}
	if s.shared == nil {
		for range runtime.GOMAXPROCS(0) {
			s.rings = append(s.rings, qlog.NewRing(g.now))
		}
		s.shared = qlog.NewShared(s.rings...)
	}
	for len(s.workers) < n {
		ring := qlog.NewRing(g.now)
		s.rings = append(s.rings, ring)
		s.workers = append(s.workers, listen.Worker{Observer: ring, Shared: s.shared, Stats: &stats.Worker{}})
	}
	return s, index
}

// entries is the programs of listeners by their index.
func (g *registry) entries(byKey map[string]uint16) []uint16 {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]uint16, len(g.sources))
	for i, s := range g.sources {
		all[i] = byKey[s.key]
	}
	return all
}

// all is the sources as they are now.
func (g *registry) all() []source {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]source, len(g.sources))
	for i, s := range g.sources {
		all[i] = *s
	}
	return all
}

// probe makes sure that no other program has one of p's UDP addresses. Where a
// listener of ours overlaps, or a socket was inherited, binding would tell nothing.
func (s *Server) probe(p *plan.Plan) error {
	for _, l := range p.Listen {
		if l.Scheme != "udp" || s.inherited.UDP[l.String()] != nil || s.overlaps(l.Addr) {
			continue
		}
		if err := listen.ProbeUDP(l.Addr); err != nil {
			return err
		}
	}
	return nil
}

// overlaps tells whether a UDP listener of ours has some address of a already.
func (s *Server) overlaps(a netip.AddrPort) bool {
	for _, l := range s.listeners {
		have := l.Addr()
		if strings.HasPrefix(l.key, "udp") && have.Port() == a.Port() &&
			(have.Addr() == a.Addr() || have.Addr().IsUnspecified() || a.Addr().IsUnspecified()) {
			return true
		}
	}
	return false
}

// open binds one address of p.
func (s *Server) open(p *plan.Plan, l plan.Listen) (*listener, error) {
	opened := &listener{key: l.String(), parked: s.parked.Of(), peer: &serve.Peer{Listener: l.String()}}
	var err error
	switch l.Scheme {
	case "udp":
		opened.transport, err = s.openUDP(p, l, opened)
	case "tcp":
		opened.transport, err = s.openTCP(p, l, opened)
	default:
		err = fmt.Errorf("listening on %s: no transport %q", opened.key, l.Scheme)
	}
	if err != nil {
		return nil, err
	}
	return opened, nil
}

func (s *Server) config(p *plan.Plan, proto serve.Proto, o *listener, index uint16) listen.Config {
	o.peer.Proto, o.peer.Index = proto, index
	return listen.Config{
		Entry: &s.entry, Now: s.now, Deadline: deadline, UDPSize: uint16(p.Server.UDPSize),
		Peer: o.peer, Parked: o.parked, Flush: s.outbox.Flush,
	}
}

func (s *Server) openUDP(p *plan.Plan, l plan.Listen, o *listener) (*listen.UDP, error) {
	key := o.key
	files := s.inherited.UDP[key]
	delete(s.inherited.UDP, key)
	n := p.Server.Workers
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	if len(files) > 0 {
		n = len(files) // the service manager said how many
	} else if !listen.SharesPort {
		n = 1
	}
	src, index := s.workers.source(key, n)
	return listen.OpenUDP(listen.UDPConfig{
		Config: s.config(p, serve.UDP, o, index),
		Addr:   l.Addr, Workers: src.workers[:n], V6Only: bothFamilies(p, l), Steer: p.Server.CPUSteer, Files: files,
	})
}

func (s *Server) openTCP(p *plan.Plan, l plan.Listen, o *listener) (*listen.TCP, error) {
	key := o.key
	file := s.inherited.TCP[key]
	delete(s.inherited.TCP, key)
	src, index := s.workers.source(key, 1)
	worker := src.workers[0]
	worker.Observer = worker.Shared // a goroutine per connection
	t := p.Server.TCP
	if l.Idle > 0 {
		t.Idle = l.Idle
	}
	return listen.OpenTCP(listen.TCPConfig{
		Config: s.config(p, serve.TCP, o, index),
		Addr:   l.Addr, Worker: worker, V6Only: bothFamilies(p, l), File: file,
		Conns: t.Conns, PerClient: t.PerClient, Inflight: t.Inflight, Idle: t.Idle, Total: t.Total, Write: t.Write,
	})
}

// bothFamilies tells whether [::] has 0.0.0.0 beside it on the same port, so that
// it must not take IPv4 as well.
func bothFamilies(p *plan.Plan, l plan.Listen) bool {
	for _, o := range p.Listen {
		if o.Scheme == l.Scheme && o.Addr.Port() == l.Addr.Port() && o.Addr.Addr() == netip.IPv4Unspecified() {
			return true
		}
	}
	return false
}

// key is the URL of the listener with that index.
func (g *registry) key(index uint16) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if int(index) >= len(g.sources) {
		return fmt.Sprintf("listener %d", index)
	}
	return g.sources[index].key
}

// readRings makes the query log read the rings of all listeners.
func (s *Server) readRings() {
	for _, src := range s.workers.all() {
		s.queries.Add(src.rings...)
	}
}
