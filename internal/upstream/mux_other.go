//go:build !linux

package upstream

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

const (
	portsTried = 5
	lowestPort = 1024
	readBuffer = 4096 // a larger message is cut and so malformed
)

// mux reads each UDP socket of a group with a goroutine of its own.
type mux struct {
	group *Group

	mu      sync.Mutex // guards what follows
	sockets map[*socket]struct{}
	closed  bool
}

func newMux(g *Group) (*mux, error) {
	return &mux{group: g, sockets: map[*socket]struct{}{}}, nil
}

// close closes all sockets, which ends their goroutines.
func (m *mux) close() error {
	m.mu.Lock()
	m.closed = true
	all := m.sockets
	m.sockets = nil
	m.mu.Unlock()
	for k := range all {
		k.abandon()
	}
	return nil
}

// endpoint is the system's side of a socket.
type endpoint struct {
	conn *net.UDPConn
	out  func(*endpoint) // takes the socket out of the mux
}

// open gives k a socket of its own on a random port, connected to the server.
func (m *mux) open(k *socket) error {
	conn, err := dialSomewhere(k.server.cfg.Addr, m.group.dice)
	if err != nil {
		return err
	}
	k.end = endpoint{conn: conn, out: func(*endpoint) {
		m.mu.Lock()
		delete(m.sockets, k)
		m.mu.Unlock()
	}}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errors.Join(ErrClosed, conn.Close())
	}
	m.sockets[k] = struct{}{}
	m.group.wg.Go(k.readLoop)
	return nil
}

// readLoop takes messages from k until it is closed.
func (k *socket) readLoop() {
	buf := make([]byte, readBuffer)
	for {
		n, err := k.end.conn.Read(buf)
		now := k.server.group.env.Now()
		k.mu.Lock()
		if k.closed {
			k.mu.Unlock()
			return
		}
		if err != nil {
			all := k.close()
			k.mu.Unlock()
			k.failed(all, now)
			return
		}
		c := k.catch(buf[:n])
		k.mu.Unlock()
		k.handle(&c, buf[:n], now)
	}
}

// close is called once.
func (e *endpoint) close() {
	e.out(e)
	_ = e.conn.Close()
}

// write sends one message.
func (e *endpoint) write(msg []byte) error {
	_, err := e.conn.Write(msg)
	return err
}

// writeAll sends what has not been sent of g.
func (e *endpoint) writeAll(g *gathered) error {
	for ; g.done < len(g.ends); g.done++ {
		if err := e.write(g.at(g.done)); err != nil {
			return err
		}
	}
	return nil
}

// dialSomewhere connects from a random port, or from one of the system's choice
// where those tried are all taken.
func dialSomewhere(addr netip.AddrPort, d *dice) (*net.UDPConn, error) {
	network, local := "udp4", netip.IPv4Unspecified()
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	if !addr.Addr().Is4() {
		network, local = "udp6", netip.IPv6Unspecified()
	}
	to := net.UDPAddrFromAddrPort(addr)
	for range portsTried {
		from := netip.AddrPortFrom(local, uint16(d.between(lowestPort, 65535)))
		if conn, err := net.DialUDP(network, net.UDPAddrFromAddrPort(from), to); err == nil {
			return conn, nil
		}
	}
	return net.DialUDP(network, nil, to)
}
