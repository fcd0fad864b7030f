//go:build linux

package listen

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/waymark-dns/waymark/internal/stats"
)

// segmentClient is a socket that asks u directly, and knows the size of what it
// wants back.
func segmentClient(t *testing.T, addr string) (*udpReader, *net.UDPConn) {
	t.Helper()
	s := newSite(1)
	l, err := OpenUDP(UDPConfig{Config: s.config(0), Addr: netip.MustParseAddrPort(addr), Workers: []Worker{s.worker(0)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(l.Addr().Port())}
	c, err := net.DialUDP("udp", nil, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	l.readers[0].cfg.UDPSize = 4096
	return l.readers[0], c
}

// once serves one batch, and returns the responses of the client in order.
func once(t *testing.T, u *udpReader, c *net.UDPConn, queries [][]byte) [][]byte {
	t.Helper()
	for _, q := range queries {
		if _, err := c.Write(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.raw.Control(func(fd uintptr) { u.batch(fd) }); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	var all [][]byte
	for range queries {
		buf := make([]byte, 4096)
		n, err := c.Read(buf)
		if err != nil {
			t.Fatalf("after %d responses: %v", len(all), err)
		}
		all = append(all, buf[:n])
	}
	return all
}

// Responses to one client leave as one message that the kernel cuts, and arrive
// as if they had not: each for itself, in order. A longer one starts a message, a
// shorter one ends it.
func TestJoined(t *testing.T) {
	same := questions(6, "now.example.")
	longer := withOPT(question(7, "now.example."), 1232)
	for _, c := range []struct {
		name     string
		queries  [][]byte
		messages []uint64 // pieces of each
	}{
		{"of one size", same, []uint64{6}},
		{"one", same[:1], []uint64{1}},
		{"longer than a packet may be", [][]byte{withOPT(question(1, "large.example."), 4096), withOPT(question(2, "large.example."), 4096)}, []uint64{1, 1}},
		{"a longer one in the middle", [][]byte{same[0], same[1], longer, same[2], same[3]}, []uint64{2, 2, 1}},
		{"a longer one first", [][]byte{longer, same[0], same[1]}, []uint64{2, 1}},
	} {
		for _, addr := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0"} {
			t.Run(c.name+" at "+addr, func(t *testing.T) {
				u, conn := segmentClient(t, addr)
				got := once(t, u, conn, c.queries)
				for i, q := range c.queries {
					if got[i][0] != q[0] || got[i][1] != q[1] || got[i][2]&0x80 == 0 {
						t.Errorf("response %d is % x", i, got[i])
					}
				}
				for i, want := range c.messages {
					if n := uint64(u.out[i].hdr.Iovlen); n != want {
						t.Errorf("message %d has %d pieces, want %d", i, n, want)
					}
				}
				if u.whole || u.worker.Stats.Load(stats.SendFailed) != 0 {
					t.Error("the kernel did not cut")
				}
			})
		}
	}
}

// Two clients' responses are not joined.
func TestJoinedNotAcrossClients(t *testing.T) {
	u, a := segmentClient(t, "127.0.0.1:0")
	b, err := net.DialUDP("udp", nil, a.RemoteAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Write(question(9, "now.example.")); err != nil {
		t.Fatal(err)
	}
	once(t, u, a, questions(2, "now.example."))
	if u.out[0].hdr.Iovlen != 1 || u.out[1].hdr.Iovlen != 2 {
		t.Errorf("%d and %d pieces, want 1 and 2", u.out[0].hdr.Iovlen, u.out[1].hdr.Iovlen)
	}
}

// Where the way out does not cut, the pieces are sent one by one, and nothing is
// joined from then on.
func TestJoinedRefused(t *testing.T) {
	u, c := segmentClient(t, "127.0.0.1:0")
	// Without checksums the kernel refuses to cut.
	if err := u.raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1) }); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		once(t, u, c, questions(5, "now.example."))
		if !u.whole {
			t.Errorf("round %d: still joined", round)
		}
	}
	if n := u.worker.Stats.Load(stats.SendFailed); n != 0 {
		t.Errorf("%d responses were not sent", n)
	}
}
