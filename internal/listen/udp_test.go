package listen

import (
	"net"
	"testing"

	"github.com/waymark-dns/waymark/internal/stats"
)

// Two sockets on one port share the clients, and each counts its own.
func TestTwoWorkers(t *testing.T) {
	s := newSite(100)
	u := s.openUDP(t, "127.0.0.1:0", 2)
	for id := range uint16(64) { // all to one socket: once in 2^63
		c := dial(t, "udp", u.Addr())
		name := "now.example."
		if id%4 == 0 {
			name = "wait.example."
			s.desk.let(id)
		}
		c.send(question(id, name))
		if r := c.reply(); r.id != id {
			t.Errorf("response %+v, want that to query %d", r, id)
		}
	}
	u.Drain(t.Context())
	s.parked.Wait(t.Context())
	s.count(t, "queries", stats.Queries, 64)
	for i := range s.stats {
		if s.stats[i].Load(stats.Queries) == 0 {
			t.Errorf("socket %d has had no query", i)
		}
	}
}

// Inherited sockets are used as they are.
func TestInheritedUDP(t *testing.T) {
	s := newSite(1)
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := OpenUDP(UDPConfig{
		Config: s.config(0), Addr: conn.LocalAddr().(*net.UDPAddr).AddrPort(),
		Workers: []Worker{s.worker(0)}, Files: []net.PacketConn{conn},
	})
	if err != nil {
		t.Fatal(err)
	}
	u.Serve()
	c := dial(t, "udp", conn.LocalAddr().(*net.UDPAddr).AddrPort())
	c.send(question(1, "now.example."))
	c.reply()
	u.Drain(t.Context())
	u.Close()
}

func TestInheritedTCP(t *testing.T) {
	s := newSite(1)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, "tcp", s.openTCP(t, "0.0.0.0:0", func(c *TCPConfig) { c.File = ln }).Addr())
	c.send(question(1, "now.example."))
	c.reply()
}

func TestAddressTaken(t *testing.T) {
	s := newSite(1)
	l := s.openTCP(t, "127.0.0.1:0", nil)
	c := s.tcpConfig()
	c.Addr = l.Addr()
	if second, err := OpenTCP(c); err == nil {
		second.Close()
		t.Error("two listeners on one address")
	}
}
