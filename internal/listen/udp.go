package listen

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/stats"
)

// Room of one slot of a batch. A query is far shorter than querySize, which is the
// most that we ever say we take; what is longer is cut by the kernel and then
// malformed. A response is written whole
// before it is cut to the client's limit, of at most 4,096 octets.
const (
	querySize = 4096
	replySize = 8192
)

// busyBatches is how many full batches a reader serves before it lets other
// goroutines have its processor.
const busyBatches = 16

// UDP is the sockets of one address. Each has a reader: a goroutine that receives
// in batches, serves every query at once, and sends in batches.
type UDP struct {
	readers []*udpReader
	wg      sync.WaitGroup // of the readers
}

// UDPConfig is what one address is opened with.
type UDPConfig struct {
	Config
	Addr    netip.AddrPort
	Workers []Worker         // one socket each
	V6Only  bool             // [::] is not to take IPv4 as well
	Steer   bool             // the kernel picks the socket by the receiving CPU
	Files   []net.PacketConn // inherited sockets, used in place of new ones
}

// ProbeUDP is an error where another program has the address already. Binding
// alone would not tell: sockets that share a port, as a reader's do, may belong
// to two programs, and each would get some of the queries.
func ProbeUDP(addr netip.AddrPort) error {
	conn, err := net.ListenPacket("udp", addr.String())
	if err != nil {
		return fmt.Errorf("listening on udp://%s: %w", addr, err)
	}
	return conn.Close()
}

// OpenUDP binds the sockets. Nothing is read before Serve.
func OpenUDP(c UDPConfig) (*UDP, error) {
	u := &UDP{}
	for i, w := range c.Workers {
		conn, err := c.socket(i)
		if err != nil {
			u.Close()
			return nil, fmt.Errorf("listening on udp://%s: %w", c.Addr, err)
		}
		r, err := newUDPReader(conn, &c, w)
		if err != nil {
			_ = conn.Close()
			u.Close()
			return nil, fmt.Errorf("listening on udp://%s: %w", c.Addr, err)
		}
		u.readers = append(u.readers, r)
		if c.Addr.Port() == 0 { // the first socket chose the port of all
			c.Addr = conn.LocalAddr().(*net.UDPAddr).AddrPort()
		}
	}
	if c.Steer {
		if err := u.readers[0].steer(len(u.readers)); err != nil {
			u.Close()
			return nil, fmt.Errorf("steering udp://%s by CPU: %w", c.Addr, err)
		}
	}
	return u, nil
}

// socket is the next inherited socket, or a new one.
func (c *UDPConfig) socket(i int) (*net.UDPConn, error) {
	if i < len(c.Files) {
		conn, ok := c.Files[i].(*net.UDPConn)
		if !ok {
			return nil, fmt.Errorf("inherited socket %d is not UDP", i)
		}
		return conn, prepare(conn, c.network())
	}
	lc := net.ListenConfig{Control: socketOptions}
	conn, err := lc.ListenPacket(context.Background(), c.network(), c.Addr.String())
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

// network is "udp" where IPv4 and IPv6 share the socket.
func (c *UDPConfig) network() string {
	switch {
	case c.Addr.Addr().Is4():
		return "udp4"
	case c.V6Only || !c.Addr.Addr().IsUnspecified():
		return "udp6"
	}
	return "udp"
}

// prepare sets on an inherited socket what new ones get before they are bound.
func prepare(conn *net.UDPConn, network string) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	return socketOptions(network, "", raw)
}

// Addr is the address that is bound.
func (u *UDP) Addr() netip.AddrPort {
	return u.readers[0].conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// Serve starts the readers.
func (u *UDP) Serve() {
	for _, r := range u.readers {
		u.wg.Go(r.readLoop)
	}
}

// Drain stops reading: what the kernel has received by now is still served. It
// does not wait for parked requests; Parked.Wait does.
func (u *UDP) Drain(context.Context) {
	for _, r := range u.readers {
		_ = r.conn.SetReadDeadline(time.Unix(1, 0)) // wakes the reader; no error that matters
	}
	u.wg.Wait()
}

// Close closes the sockets. Parked requests that answer later are lost, so they
// are waited for first.
func (u *UDP) Close() {
	for _, r := range u.readers {
		_ = r.conn.Close()
	}
}

// udpReader owns one socket, its slots and the one Request that all queries of
// its batches are served with, one after the other.
type udpReader struct {
	conn   *net.UDPConn
	cfg    *UDPConfig
	worker Worker
	req    serve.Request
	counts stats.Batch
	full   int // full batches since the last yield

	parkings sync.Pool // of *parkedUDP
	batchIO            // what the platform needs to receive and send
}

func newUDPReader(conn *net.UDPConn, c *UDPConfig, w Worker) (*udpReader, error) {
	u := &udpReader{conn: conn, cfg: c, worker: w}
	u.parkings.New = u.newParked
	u.req.Peer = c.Peer
	u.req.Gather = c.Flush != nil
	u.req.Local = conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return u, u.open(conn, c)
}

// serveOne serves one message and returns the response to send, or nil. client is
// asked for only where a query is there to be served.
func (u *udpReader) serveOne(h serve.Handler, msg, out []byte, from source) []byte {
	r := &u.req
	u.counts[stats.Queries]++
	u.counts[stats.BytesIn] += uint64(len(msg))
	switch r.Receive(msg, out) {
	case serve.Short:
		u.counts[stats.DroppedShort]++
		return nil
	case serve.Reply:
		u.counts[stats.DroppedResponse]++
		return nil
	case serve.Query:
		r.Client = from.addr()
		switch h.Serve(r) {
		case serve.Wait:
			u.park(h, from)
			return nil
		case serve.Drop:
			dropped(&u.counts, r)
			return nil
		}
	default:
		r.Client = from.addr()
	}
	r.Fit(u.cfg.UDPSize)
	answered(&u.counts, r)
	u.worker.Observer.Observe(r)
	return r.Out
}

// park lets the request wait, or sheds it where too many wait already.
func (u *udpReader) park(h serve.Handler, from source) {
	if !u.cfg.Parked.enter(&u.req, &u.counts) {
		return
	}
	w := u.parkings.Get().(*parkedUDP)
	from.keep(&w.to)
	w.park(u.cfg.Parked, h, &u.req)
}

// parkedUDP is a request that waits.
type parkedUDP struct {
	parking
	u  *udpReader
	to kept
}

func (u *udpReader) newParked() any {
	w := &parkedUDP{u: u}
	w.end = w.finish
	return w
}

func (w *parkedUDP) finish(done bool) {
	u := w.u
	var b stats.Batch
	if done {
		w.req.Fit(u.cfg.UDPSize)
		answered(&b, &w.req)
		u.worker.Shared.Observe(&w.req)
		u.worker.Stats.Publish(&b)
		if w.to.send(u.conn, w.req.Out) != nil {
			b[stats.SendFailed]++
		}
		u.cfg.Parked.known.Add(w.req.Client.Addr(), w.req.At)
	} else {
		dropped(&b, &w.req)
	}
	u.worker.Stats.Publish(&b)
	w.ended()
	u.parkings.Put(w)
}

// publish ends a batch: what it counted and observed is visible from now on, and
// what it asked for is sent.
func (u *udpReader) publish() {
	u.worker.Stats.Publish(&u.counts)
	u.worker.Observer.Flush()
	if u.cfg.Flush != nil {
		u.cfg.Flush()
	}
}

// rest lets other goroutines have the processor after some full batches. full
// tells whether the last one was, so that another waits already.
func (u *udpReader) rest(full bool) {
	if !full {
		u.full = 0
		return
	}
	if u.full++; u.full == busyBatches {
		u.full = 0
		runtime.Gosched()
	}
}
