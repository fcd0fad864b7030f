package upstream

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/proxy"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Buffers of a connection.
const (
	readSize = 4096     // at first; grows with the responses
	keepSize = 64 << 10 // of memory for writing between uses
)

// conn is a TCP connection with pipelining (RFC 7766 §6.2.1.1). Its goroutines
// dial, read and write; whoever sends only leaves the query here.
type conn struct {
	server *server
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	ready  chan struct{} // something is in out

	pending atomic.Int32 // tries that wait
	retired atomic.Bool  // takes no new tries

	mu       sync.Mutex // guards what follows
	table    table
	out      []byte   // framed queries that are not written yet: those of the table at most
	nc       net.Conn // nil until the dial is done
	opened   time.Duration
	lastUsed time.Duration
	heard    time.Duration
	closed   bool
}

// send leaves one query to be written.
func (c *conn) send(msg []byte, sl *slot, ids uint64) outcome {
	c.mu.Lock()
	switch {
	case c.closed || c.retired.Load():
		c.mu.Unlock()
		return spent
	case c.table.n >= maxPipeline || !c.table.put(sl, ids):
		c.mu.Unlock()
		return full
	}
	binary.BigEndian.PutUint16(msg, sl.id)
	c.out = binary.BigEndian.AppendUint16(c.out, uint16(len(msg)))
	c.out = append(c.out, msg...)
	c.lastUsed = sl.sent
	c.pending.Store(int32(c.table.n))
	c.mu.Unlock()
	select {
	case c.ready <- struct{}{}:
	default:
	}
	return sent
}

// dialLoop is the life of the connection: it dials and reads. Tick ends a dial that
// takes too long.
func (c *conn) dialLoop() {
	nc, err := c.server.cfg.dial(c.ctx)
	if err != nil {
		c.end(true, false)
		return
	}
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.nc = nc
	}
	c.mu.Unlock()
	cut := false
	if !closed {
		c.server.group.wg.Go(func() { c.writeLoop(nc) })
		cut = c.read(nc)
	}
	_ = nc.Close()
	c.end(false, cut)
}

// dial connects to the server, through its proxy where it has one.
func (s *Server) dial(ctx context.Context) (net.Conn, error) {
	d := &net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		outer := raw.Control(func(fd uintptr) { err = s.Take(int(fd)) })
		return errors.Join(err, outer)
	}}
	if s.Socks5 == "" {
		return d.DialContext(ctx, "tcp", s.Addr.String())
	}
	through, err := proxy.SOCKS5("tcp", s.Socks5, nil, d)
	if err != nil {
		return nil, err
	}
	return through.(proxy.ContextDialer).DialContext(ctx, "tcp", s.Addr.String())
}

// writeLoop writes what is left in out, until the connection ends.
func (c *conn) writeLoop(nc net.Conn) {
	var mine []byte
	for {
		select {
		case <-c.ready:
		case <-c.ctx.Done():
			return
		}
		c.mu.Lock()
		mine, c.out = c.out, mine[:0]
		c.mu.Unlock()
		if _, err := nc.Write(mine); err != nil {
			_ = nc.Close() // the reading ends too
			return
		}
		if cap(mine) > keepSize {
			mine = nil
		}
	}
}

// read reads until the connection ends. It tells whether that was in the middle of
// a message.
func (c *conn) read(nc net.Conn) (cut bool) {
	buf, have := make([]byte, readSize), 0
	for {
		n, err := nc.Read(buf[have:])
		have += n
		rest := buf[:have]
		for {
			size := 0
			if len(rest) >= 2 {
				size = 2 + int(binary.BigEndian.Uint16(rest))
			}
			if size == 0 || len(rest) < size {
				break
			}
			c.take(rest[2:size:size])
			rest = rest[size:]
		}
		have = copy(buf, rest)
		if err != nil {
			return have > 0
		}
		if have == len(buf) {
			buf = append(make([]byte, 0, 2+wire.MaxMessage), buf...)[:2+wire.MaxMessage]
		}
	}
}

// take is given each message.
func (c *conn) take(msg []byte) {
	s := c.server
	now := s.group.env.Now()
	c.mu.Lock()
	sl, v := c.table.match(msg, &s.group.questions)
	c.heard, c.lastUsed = now, now
	c.pending.Store(int32(c.table.n))
	c.mu.Unlock()
	s.count.note(v)
	if v == anAnswer {
		s.answered(&sl, msg, now)
	}
}

// end takes the connection down. What waits on it is sent once more on a new one,
// for a server may close any connection at any time (RFC 7766 §6.2.4); but not
// where the server cannot be reached or that was done before.
func (c *conn) end(unreachable, cut bool) {
	s := c.server
	c.retired.Store(true)
	c.mu.Lock()
	c.closed = true
	all := c.table.drain()
	c.mu.Unlock()
	c.cancel()
	s.tcp.remove(c)
	s.count.conns.Add(-1)
	now := s.group.env.Now()
	if cut || unreachable && len(all) > 0 {
		s.broke(now)
	}
	for i := range all {
		sl := &all[i]
		w := want{server: int8(s.index + 1), tcp: true, bare: sl.flags&bareTry != 0, again: true}
		if unreachable || sl.flags&againTry != 0 {
			w = want{}
		}
		switch {
		case sl.x == nil:
		case s.group.closed.Load():
			s.group.fail(sl.x, sl.gen, ErrClosed)
		default:
			s.group.broken(sl.x, sl.gen, sl.try, now, w)
		}
	}
}

// stop makes the connection end.
func (c *conn) stop() {
	c.retired.Store(true)
	c.mu.Lock()
	c.closed = true
	nc := c.nc
	c.mu.Unlock()
	c.cancel()
	if nc != nil {
		_ = nc.Close()
	}
}

// suspect retires the connection where nothing comes over it any more. A try that
// times out while others are answered says nothing about it.
func (c *conn) suspect(now time.Duration) {
	c.mu.Lock()
	dead := now-c.heard >= minTCPTimeout
	c.mu.Unlock()
	if dead {
		c.retired.Store(true)
	}
}

// tend closes the connection where it is idle, dead or does not come about, and
// looks again later where not.
func (c *conn) tend(now time.Duration) {
	g := c.server.group
	c.mu.Lock()
	closed := c.closed
	over := false
	switch idle := now - c.lastUsed; {
	case c.nc == nil:
		over = now-c.opened >= dialTimeout
	case c.table.n == 0:
		over = idle >= connIdle || c.retired.Load()
	default:
		over = idle > g.cfg.Timeout && c.retired.Load()
	}
	c.mu.Unlock()
	switch {
	case closed:
	case over:
		c.stop()
	default:
		g.add(&event{due: now + tendEvery, line: c, kind: lineDue})
	}
}

func (c *conn) owner() *server { return c.server }

func (c *conn) waits(id uint16, serial uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table.waits(id, serial)
}
