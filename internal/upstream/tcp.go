package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
)

// Connections towards one server (RFC 7766 §6.2).
const (
	maxConns    = 4  // that take queries
	maxAllConns = 12 // with those that only wait for answers
	maxPipeline = 64 // queries that wait on one connection
	crowded     = 8  // from so many on another connection is opened
	serialConns = 64 // that take queries, of a server with Serial
	connIdle    = 10 * time.Second
	dialTimeout = 2 * time.Second
	tendEvery   = time.Second
)

// connPool is the TCP connections towards one server.
type connPool struct {
	mu     sync.Mutex // guards what follows
	conns  []*conn
	closed bool
}

// sendTCP gives the connection that the try was given to, nil where there is none.
// It does not wait for the connection to be made.
func (s *server) sendTCP(msg []byte, sl *slot, t egress.Throw) line {
	for range placesTried {
		c := s.connection(sl.flags&againTry != 0, sl.sent)
		if c == nil {
			return nil
		}
		if c.send(msg, sl, t.IDs) == sent {
			return c
		}
	}
	return nil
}

// connection is the least used connection, or a new one where that is wanted or
// all are in good use; nil where none can be.
func (s *server) connection(fresh bool, now time.Duration) *conn {
	best, opened := s.tcp.pick(s, fresh, now)
	if opened {
		s.count.conns.Add(1)
		s.count.opened.Add(1)
		s.group.add(&event{due: now + tendEvery, line: best, kind: lineDue})
	}
	return best
}

// pick also starts the goroutine of a connection that it opens.
func (p *connPool) pick(s *server, fresh bool, now time.Duration) (best *conn, opened bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false
	}
	taking, most, full := 0, maxConns, int32(crowded)
	if s.cfg.Serial {
		most, full = serialConns, 1
	}
	for _, c := range p.conns {
		if c.retired.Load() {
			continue
		}
		taking++
		if best == nil || c.pending.Load() < best.pending.Load() {
			best = c
		}
	}
	if best != nil && !fresh && best.pending.Load() < full || taking >= most || len(p.conns) >= most+maxAllConns-maxConns {
		return best, false
	}
	c := &conn{server: s, ready: make(chan struct{}, 1), lastUsed: now, heard: now, opened: now}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	p.conns = append(p.conns, c)
	s.group.wg.Go(c.dialLoop)
	return c, true
}

func (p *connPool) remove(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.conns {
		if p.conns[i] == c {
			p.conns = append(p.conns[:i], p.conns[i+1:]...)
			return
		}
	}
}

// close ends all connections; their goroutines are in the group's wg.
func (p *connPool) close() {
	p.mu.Lock()
	p.closed = true
	all := append([]*conn(nil), p.conns...)
	p.mu.Unlock()
	for _, c := range all {
		c.stop()
	}
}
