package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/stats"
)

// How long the accept loop waits after an error, such as too many open files:
// at first, and at most.
const (
	acceptWait    = 5 * time.Millisecond
	acceptMaxWait = time.Second
)

// backlogTime is how long Drain still takes connections that the kernel has
// completed. It hands them over without waiting, so this is plenty.
const backlogTime = 50 * time.Millisecond

// TCPConfig is what one address is opened with. No limit may be zero.
type TCPConfig struct {
	Config
	Addr      netip.AddrPort
	Worker    Worker        // of which Stats and Shared are used
	Conns     int           // connections at once
	PerClient int           // connections at once from one address
	Inflight  int           // queries that wait at once on one connection
	Idle      time.Duration // a connection is closed after so long without a query
	Total     time.Duration // a connection is closed after so long in any case
	Write     time.Duration // a client that takes so long to read is dropped
	V6Only    bool          // [::] is not to take IPv4 as well
	File      net.Listener  // inherited socket, used in place of a new one
}

// TCP is the listener of one address and its connections (RFC 7766). Each
// connection has a goroutine that reads, serves and writes.
type TCP struct {
	cfg       TCPConfig
	ln        net.Listener
	spaces    sync.Pool      // of *workspace
	parkings  sync.Pool      // of *parkedTCP
	joined    sync.Pool      // of *[flushSize]byte
	accepting sync.WaitGroup // the accept loop
	conns     sync.WaitGroup // the connections
	draining  atomic.Bool
	stopped   context.Context // ends when nothing more is to be accepted
	stop      context.CancelFunc

	mu      sync.Mutex // guards what follows
	open    map[*tcpConn]struct{}
	clients map[netip.Addr]int // by network
	closed  bool
}

// OpenTCP binds the socket. Nothing is accepted before Serve.
func OpenTCP(c TCPConfig) (*TCP, error) {
	ln := c.File
	if ln == nil {
		network := "tcp"
		if c.Addr.Addr().Is4() {
			network = "tcp4"
		} else if c.V6Only || !c.Addr.Addr().IsUnspecified() {
			network = "tcp6"
		}
		lc := net.ListenConfig{KeepAlive: -1} // idle connections are closed anyway
		lc.SetMultipathTCP(false)             // slower, and of no use to connections this short
		var err error
		if ln, err = lc.Listen(context.Background(), network, c.Addr.String()); err != nil {
			return nil, fmt.Errorf("listening on tcp://%s: %w", c.Addr, err)
		}
	}
	return newTCP(c, ln), nil
}

func newTCP(c TCPConfig, ln net.Listener) *TCP {
	t := &TCP{cfg: c, ln: ln, open: map[*tcpConn]struct{}{}, clients: map[netip.Addr]int{}}
	t.stopped, t.stop = context.WithCancel(context.Background())
	t.spaces.New = func() any { return new(workspace) }
	t.parkings.New = newParkedTCP
	t.joined.New = func() any { return new([flushSize]byte) }
	return t
}

// Addr is the address that is bound.
func (t *TCP) Addr() netip.AddrPort { return addrPort(t.ln.Addr()) }

// Serve starts the accept loop.
func (t *TCP) Serve() { t.accepting.Go(t.acceptLoop) }

// acceptLoop ends with Drain or Close and with no error before.
func (t *TCP) acceptLoop() {
	defer t.ln.Close()
	wait := acceptWait
	for {
		conn, err := t.ln.Accept()
		switch {
		case err == nil:
			wait = acceptWait
			t.start(conn, addrPort(conn.RemoteAddr()), addrPort(conn.LocalAddr()))
		case t.draining.Load() || errors.Is(err, net.ErrClosed):
			return
		default:
			t.pause(wait)
			wait = min(2*wait, acceptMaxWait)
		}
	}
}

// pause waits, but not into the end of the listener.
func (t *TCP) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.stopped.Done():
	}
}

// start serves a connection, or closes it where there are too many.
func (t *TCP) start(conn net.Conn, client, local netip.AddrPort) {
	var b stats.Batch
	c := &tcpConn{t: t, conn: conn, client: client, local: local}
	if t.enter(c) {
		b[stats.Accepted]++
		t.conns.Go(c.serveLoop)
	} else {
		b[stats.Refused]++
		_ = conn.Close()
	}
	t.cfg.Worker.Stats.Publish(&b)
}

// enter takes a place for c; false where there is none.
func (t *TCP) enter(c *tcpConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	client := network(c.client.Addr())
	if t.closed || len(t.open) >= t.cfg.Conns || t.clients[client] >= t.cfg.PerClient {
		return false
	}
	t.open[c] = struct{}{}
	t.clients[client]++
	return true
}

// network is what counts as one client: an IPv4 address, or an IPv6 /64, of which
// a single host may use every address.
func network(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}

func (t *TCP) leave(c *tcpConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c)
	client := network(c.client.Addr())
	if t.clients[client]--; t.clients[client] == 0 {
		delete(t.clients, client)
	}
}

// Drain accepts and reads nothing more, answers what has been received by now,
// also what the kernel still holds, and closes the connections. It returns when
// all are closed; when ctx ends it closes those that are left, whose requests
// may still wait: Parked.Wait ends them.
func (t *TCP) Drain(ctx context.Context) {
	t.draining.Store(true)
	t.stop()
	if ln, ok := t.ln.(interface{ SetDeadline(time.Time) error }); ok {
		_ = ln.SetDeadline(t.cfg.Deadline(backlogTime)) // an error means that it is closed
	} else {
		_ = t.ln.Close()
	}
	t.each(func(c *tcpConn) { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) }) // wakes its reader
	drained := make(chan struct{})
	waitLoop := func() {
		t.accepting.Wait()
		t.conns.Wait()
		close(drained)
	}
	go waitLoop() // ends with the connections, and Close waits for those
	select {
	case <-drained:
	case <-ctx.Done():
		t.closeAll()
	}
}

// Close closes everything and waits for all goroutines. Requests that wait are
// waited for: end them with Parked.Wait first.
func (t *TCP) Close() {
	t.draining.Store(true)
	t.stop()
	t.closeAll()
	t.accepting.Wait()
	t.conns.Wait()
}

// closeAll closes the connections, those too that are just being accepted.
func (t *TCP) closeAll() {
	_ = t.ln.Close()
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.each(func(c *tcpConn) { _ = c.conn.Close() })
}

// each calls do for every connection there is.
func (t *TCP) each(do func(*tcpConn)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.open {
		do(c)
	}
}

// addrPort is an address of the net package, IPv4 as such also where the socket
// is IPv6.
func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := tcp.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}
