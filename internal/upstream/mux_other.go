//go:build !linux

package upstream

import (
	"errors"
	"sync"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
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
	sock egress.Socket
	out  func(*endpoint) // takes the socket out of the mux
}

// open gives k a socket of its own on a random port, connected to the server.
func (m *mux) open(k *socket) error {
	sock, err := k.server.cfg.Open(k.server.cfg.Addr, m.group.dice)
	if err != nil {
		return err
	}
	k.end = endpoint{sock: sock, out: func(*endpoint) {
		m.mu.Lock()
		delete(m.sockets, k)
		m.mu.Unlock()
	}}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errors.Join(ErrClosed, sock.Close())
	}
	m.sockets[k] = struct{}{}
	m.group.wg.Go(k.readLoop)
	return nil
}

// readLoop takes messages from k until it is closed.
func (k *socket) readLoop() {
	buf := make([]byte, readBuffer)
	for {
		n, err := k.end.sock.Read(buf)
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
	_ = e.sock.Close()
}
