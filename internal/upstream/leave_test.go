package upstream

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
	"github.com/waymark-dns/waymark/internal/wire"
)

// TestSocks5 sends queries over TCP through a proxy that knows no more than it has
// to (RFC 1928).
func TestSocks5(t *testing.T) {
	f := newFake(t, answer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		asked <- proxied(c)
	}()
	t.Cleanup(func() { _ = l.Close() })
	r := newRig(t, func(c *Config) {
		c.Servers = []Server{{Addr: f.addr, TCP: true, Socks5: l.Addr().String()}}
	})
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	w.wait(t)
	w.answered(t, wire.NoError, 0)
	if got := <-asked; got != f.addr.String() {
		t.Errorf("the proxy was asked for %s, want %s", got, f.addr)
	}
}

// proxied speaks SOCKS5 on a connection, answers one query, and is what it was
// asked to connect to.
func proxied(c net.Conn) string {
	head := make([]byte, 2)
	if _, err := io.ReadFull(c, head); err != nil {
		return err.Error()
	}
	_, _ = io.ReadFull(c, make([]byte, head[1]))
	_, _ = c.Write([]byte{5, 0})
	request := make([]byte, 10) // IPv4
	if _, err := io.ReadFull(c, request); err != nil {
		return err.Error()
	}
	_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	size := make([]byte, 2)
	if _, err := io.ReadFull(c, size); err != nil {
		return err.Error()
	}
	msg := make([]byte, binary.BigEndian.Uint16(size))
	_, _ = io.ReadFull(c, msg)
	out := reply(msg, wire.NoError)
	_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	addr := &net.TCPAddr{IP: request[4:8], Port: int(binary.BigEndian.Uint16(request[8:]))}
	return addr.String()
}

// A mark or a device that cannot be set is an error of the server, not silence.
func TestLeaveByNoDevice(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Servers = []Server{{Addr: f.addr, Way: egress.Way{Device: "no-such-device"}}} })
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	r.pass(5 * time.Second)
	w.wait(t)
	w.failed(t, ErrUnreachable)
}
