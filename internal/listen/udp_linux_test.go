package listen

import (
	"bytes"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/waymark-dns/waymark/internal/wire"
)

// A response leaves from the address that its query came to, also where the
// socket is bound to all of them, and also when it had to wait. A connected
// socket takes nothing from another address.
func TestSourceAddress(t *testing.T) {
	for _, c := range []struct{ name, listen, ask string }{
		{"an address that is not the first", "0.0.0.0:0", "127.0.0.2"},
		{"the first", "0.0.0.0:0", "127.0.0.1"},
		{"IPv6", "[::]:0", "::1"},
		{"IPv4 over a socket for both", "[::]:0", "127.0.0.2"},
		{"one address", "127.0.0.3:0", "127.0.0.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(1)
			u := s.openUDP(t, c.listen, 1)
			if c.ask == "::1" && !hasIPv6() {
				t.Skip("no IPv6 here")
			}
			cl := dial(t, "udp", netip.AddrPortFrom(netip.MustParseAddr(c.ask), u.Addr().Port()))
			s.desk.let(2)
			cl.send(question(1, "seen.example."), question(2, "wait.example."))
			cl.replies(2)
			if seen, _ := s.desk.saw(1); seen.String() != cl.conn.LocalAddr().String() {
				t.Errorf("the handler saw %v, want %v", seen, cl.conn.LocalAddr())
			}
		})
	}
}

func hasIPv6() bool {
	conn, err := net.ListenPacket("udp6", "[::1]:0")
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// The kernel must not learn a smaller MTU from strangers (RFC 9715 §3.1), and no
// control message is asked for where one address is bound.
func TestSocketOptions(t *testing.T) {
	for _, c := range []struct {
		name, listen       string
		level, option, set int
	}{
		{"IPv4 ignores the path's MTU", "127.0.0.1:0", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT},
		{"IPv6 ignores the path's MTU", "[::]:0", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_OMIT},
		{"so does IPv4 on a socket for both", "[::]:0", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT},
		{"all addresses", "0.0.0.0:0", unix.IPPROTO_IP, unix.IP_PKTINFO, 1},
		{"all addresses of IPv6", "[::]:0", unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1},
		{"one address", "127.0.0.1:0", unix.IPPROTO_IP, unix.IP_PKTINFO, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := newSite(1).openUDP(t, c.listen, 1)
			_ = u.readers[0].raw.Control(func(fd uintptr) {
				if got, err := unix.GetsockoptInt(int(fd), c.level, c.option); err != nil || got != c.set {
					t.Errorf("option %d is %d, %v; want %d", c.option, got, err, c.set)
				}
			})
		})
	}
}

// More queries than a batch holds, to sockets that the kernel chooses by CPU.
func TestSteer(t *testing.T) {
	s := newSite(1)
	c := UDPConfig{Config: s.config(0), Addr: netip.MustParseAddrPort("127.0.0.1:0"), Workers: []Worker{s.worker(0), s.worker(1)}, Steer: true}
	u, err := OpenUDP(c)
	if err != nil {
		t.Fatal(err)
	}
	u.Serve()
	cl := dial(t, "udp", u.Addr())
	cl.send(questions(3*batchSize+1, "now.example.")...)
	cl.replies(3*batchSize + 1)
	u.Drain(t.Context())
	u.Close()
}

// direct is a reader whose messages the test puts in; its socket is not read.
func direct(t testing.TB) (*udpReader, *desk) {
	s := newSite(1)
	u, err := OpenUDP(UDPConfig{Config: s.config(0), Addr: netip.MustParseAddrPort("127.0.0.1:0"), Workers: []Worker{s.worker(0)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	u.readers[0].names[0] = unix.RawSockaddrInet6{Family: unix.AF_INET6}
	return u.readers[0], s.desk
}

func TestAllocUDP(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	for _, c := range []struct {
		name  string
		query []byte
	}{
		{"answered", withOPT(question(1, "now.example."), 1232)},
		{"truncated", question(1, "big.example.")},
		{"malformed", question(1, "now.example.")[:20]},
		{"dropped", question(1, "drop.example.")},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, h := direct(t)
			if n := testing.AllocsPerRun(100, func() {
				u.serveOne(h, c.query, u.replies[:replySize], source{u, 0})
				u.publish()
			}); n != 0 {
				t.Errorf("%v allocations for a query, want none", n)
			}
		})
	}
}

// Whatever comes, nothing but a header that is no response is answered, with its
// ID, and with a message that is whole and within the limit.
func FuzzUDP(f *testing.F) {
	for _, m := range garbage() {
		f.Add(m)
	}
	u, h := direct(f)
	f.Fuzz(func(t *testing.T, m []byte) {
		m = m[:min(len(m), querySize)]
		before := bytes.Clone(m)
		out := u.serveOne(h, m, u.replies[:replySize], source{u, 0})
		if !bytes.Equal(m, before) {
			t.Error("the query was changed")
		}
		if len(m) < wire.HeaderSize || m[2]&0x80 != 0 {
			if out != nil {
				t.Errorf("answered %x", m)
			}
			return
		}
		checkReply(t, m, out, 1232)
	})
}
