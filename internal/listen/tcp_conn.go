package listen

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/stats"
	"github.com/waymark-dns/waymark/internal/wire"
)

// lingerTime is how long a connection that we end waits for the client to end
// it too: a socket that is closed while octets come in is reset, and answers that
// are still on their way are lost.
const lingerTime = time.Second

// drainReads bounds what a connection that ends still reads, to more than a
// socket's buffer holds.
const drainReads = 512

// tcpConn is one connection. The goroutine of serveLoop owns it; requests that
// wait have goroutines of their own, which share with it what is marked so.
// While nothing is being served it holds no buffer.
type tcpConn struct {
	t             *TCP
	conn          net.Conn // shared
	io            stream
	client, local netip.AddrPort
	born          time.Duration
	work          *workspace // nil while nothing is being served
	rest          []byte     // the beginning of a message that has not come whole
	over          bool       // we end the connection, the client has done no wrong

	last   atomic.Int64   // when the last query came or the last answer went; shared
	slots  chan struct{}  // one token per request that waits; shared
	parked sync.WaitGroup // of the requests that wait
	write  sync.Mutex     // held for one write each, so that answers do not mix; shared

	queueing sync.Mutex // guards what follows
	queue    []*parkedTCP
	writing  bool // writeLoop runs
}

// serveLoop serves the connection from its first query to its end.
func (c *tcpConn) serveLoop() {
	defer c.end()
	c.io = newStream(c)
	c.slots = make(chan struct{}, c.t.cfg.Inflight)
	c.born = c.t.cfg.Now()
	c.last.Store(int64(c.born))
	c.over = !c.extend()
	for !c.over {
		if !c.receive() {
			break
		}
		if !c.serveAll() {
			return
		}
	}
	for range drainReads { // what had come by the time that was the last
		if !c.over || c.io.poll() != nil || !c.serveAll() {
			return
		}
	}
}

// receive waits for octets. It is false where the connection is over.
func (c *tcpConn) receive() bool {
	for {
		err := c.io.read()
		if err == nil {
			return true
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) { // the client has ended it, or is gone
			return false
		}
		if !c.extend() {
			c.over = true
			return false
		}
	}
}

// extend sets the time until which the client may be silent. It is false where
// the connection's time is over. It runs when the time set before has come, not
// with every query: nobody sets a timer for those.
func (c *tcpConn) extend() bool {
	cfg := &c.t.cfg
	now := cfg.Now()
	left := time.Duration(c.last.Load()) + cfg.Idle - now
	if len(c.slots) > 0 { // not idle: the client waits for us
		left = cfg.Idle
	}
	left = min(left, c.born+cfg.Total-now)
	if left <= 0 {
		return false
	}
	_ = c.conn.SetReadDeadline(cfg.Deadline(left)) // an error comes again from the read
	return !c.t.draining.Load()                    // after ours was set: Drain's must not be lost
}

// serveAll serves every whole message that has come and sends the answers. It is
// false where nothing more is to be read.
func (c *tcpConn) serveAll() bool {
	w := c.work
	h := c.t.cfg.Entry.load() // one configuration for all of them
	w.req.At = c.t.cfg.Now()
	ok := true
	for served := false; ok; served = true {
		msg, whole := w.next()
		if !whole {
			if served {
				c.last.Store(int64(w.req.At))
			}
			break
		}
		ok = c.makeRoom(w) && c.serveOne(w, h, msg)
	}
	ok = c.flush(w) && ok
	c.putBack(w)
	return ok
}

// makeRoom sees to it that one more query may be served: that its response has
// room, and that not too many wait already.
func (c *tcpConn) makeRoom(w *workspace) bool {
	full := len(c.slots) == cap(c.slots)
	if !full && w.size <= flushSize {
		return true
	}
	if !c.flush(w) {
		return false
	}
	if full {
		c.slots <- struct{}{}
		<-c.slots
	}
	return true
}

// serveOne serves one message; its response, unless it has to wait, is put
// behind those that are ready. It is false where the client breaks the protocol:
// whoever sends less than a header or a response would never be understood.
func (c *tcpConn) serveOne(w *workspace, h serve.Handler, msg []byte) bool {
	r := &w.req
	w.counts[stats.Queries]++
	w.counts[stats.BytesIn] += uint64(len(msg))
	switch r.Receive(msg, w.room()) {
	case serve.Short:
		w.counts[stats.DroppedShort]++
		return false
	case serve.Reply:
		w.counts[stats.DroppedResponse]++
		return false
	case serve.Query:
		if !c.keepalive(r) {
			break
		}
		switch h.Serve(r) {
		case serve.Wait:
			c.park(w, h)
			return true
		case serve.Drop:
			dropped(&w.counts, r)
			return true
		}
	}
	r.Fit(c.t.cfg.UDPSize)
	answered(&w.counts, r)
	c.t.cfg.Worker.Shared.Observe(r)
	w.add(r.Out)
	return true
}

// keepalive tells a client that asks how long the connection may be idle (RFC
// 7828 §3.3.2), in tenths of a second; nothing when it is about to end. A client
// that gives a time of its own is malformed (§3.3.1): false, with r answered.
func (c *tcpConn) keepalive(r *serve.Request) bool {
	data, asked := r.EDNS.Option(wire.OptKeepalive)
	switch {
	case !asked:
		return true
	case len(data) != 0:
		r.Note.Source = serve.SourceError
		r.Finish(wire.FormErr)
		return false
	}
	tenths := min(c.t.cfg.Idle/(100*time.Millisecond), 65535)
	if c.t.draining.Load() {
		tenths = 0
	}
	r.Reply.Option(wire.OptKeepalive, []byte{byte(tenths >> 8), byte(tenths)})
	return true
}

// flush publishes what was counted, so that who has an answer finds it counted,
// and sends the responses that are ready. It is false where the client does not
// take them.
func (c *tcpConn) flush(w *workspace) bool {
	c.t.cfg.Worker.Stats.Publish(&w.counts)
	c.t.cfg.Worker.Shared.Flush()
	if c.t.cfg.Flush != nil {
		c.t.cfg.Flush()
	}
	ok := w.size == 0 || c.send(w.out[:w.size]) == nil
	if !ok {
		w.counts[stats.SendFailed] += uint64(w.ready)
		c.t.cfg.Worker.Stats.Publish(&w.counts)
	}
	w.size, w.ready = 0, 0
	return ok
}

// send writes whole messages, each with its length.
func (c *tcpConn) send(msgs []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	err := c.io.write(msgs)
	if err != nil {
		_ = c.conn.Close() // part of a message may be out, nothing can follow it
	}
	return err
}

// park lets the request wait, or sheds it where too many wait already.
func (c *tcpConn) park(w *workspace, h serve.Handler) {
	if !c.t.cfg.Parked.enter(&w.req, &w.counts) {
		return
	}
	c.slots <- struct{}{} // makeRoom found one
	c.parked.Add(1)
	k := c.t.parkings.Get().(*parkedTCP)
	k.c = c
	k.park(c.t.cfg.Parked, h, &w.req)
}

// end waits for the requests that still wait and closes the connection.
func (c *tcpConn) end() {
	c.parked.Wait()
	if c.over {
		c.linger()
	}
	_ = c.conn.Close()
	c.t.leave(c)
}

// linger says that nothing more will come and reads until the client says so
// too.
func (c *tcpConn) linger() {
	half, ok := c.conn.(interface{ CloseWrite() error })
	if ok && half.CloseWrite() == nil && c.conn.SetReadDeadline(c.t.cfg.Deadline(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, c.conn)
	}
}
