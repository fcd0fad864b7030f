package listen

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// garbage is messages to begin with.
func garbage() [][]byte {
	response := question(1, "now.example.")
	response[2] |= 0x80
	return [][]byte{
		nil, {0}, make([]byte, 12), response,
		question(1, "now.example."), question(2, "big.example."), question(1, "now.example.")[:20],
		withOPT(question(3, "huge.example."), 4096), withOPT(question(4, "now.example."), 0, 0, 11, 0, 1, 7),
		withOPT(question(4, "drop.example."), 0, 0, 11, 0, 0), append(question(1, "now.example."), 1, 2, 3),
	}
}

// checkReply checks the response to m, which may be nil where the handler may
// have dropped it.
func checkReply(t *testing.T, m, out []byte, limit int) {
	t.Helper()
	if out == nil {
		return
	}
	if r := parseReply(t, out); r.id != binary.BigEndian.Uint16(m) || len(out) > limit {
		t.Errorf("response %+v of %d octets to %x", r, len(out), m)
	}
}

// chunks is a net.Conn whose client sends what it has in pieces, and then ends.
type chunks struct {
	net.Conn // nil: nothing else is called
	left     []byte
	size     int
	out      bytes.Buffer
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.left[:min(c.size, len(c.left))])
	c.left = c.left[n:]
	return n, nil
}

func (c *chunks) Write(p []byte) (int, error)        { return c.out.Write(p) }
func (c *chunks) Close() error                       { return nil }
func (c *chunks) SetReadDeadline(time.Time) error    { return nil }
func (c *chunks) SetWriteDeadline(t time.Time) error { return nil }

// Whatever comes over a stream, what goes back is whole messages to queries that
// came, in their order, and does not depend on how the octets came.
func FuzzTCP(f *testing.F) {
	all := []byte{}
	for _, m := range garbage()[4:] {
		f.Add(framed(m), 1)
		all = append(all, framed(m)...)
	}
	f.Add(all, 7)
	f.Add(append(bytes.Repeat(all, 100), 0, 0), 1000)
	f.Add([]byte{0xff, 0xff, 0}, 1)
	s := newSite(0) // what would have to wait is shed
	serve := func(sent []byte, size int) []byte {
		tcp := newTCP(s.tcpConfig(), newHanded())
		conn := &chunks{left: sent, size: size}
		tcp.start(conn, netip.AddrPort{}, netip.AddrPort{})
		tcp.conns.Wait()
		tcp.Close()
		return conn.out.Bytes()
	}
	f.Fuzz(func(t *testing.T, sent []byte, size int) {
		whole := serve(sent, len(sent)+1)
		if parts := serve(sent, 1+len(sent)/1000+int(uint(size)%1000)); !bytes.Equal(whole, parts) {
			t.Errorf("in pieces it is answered with %x, at once with %x", parts, whole)
		}
		var w, q workspace
		w.to = copy(w.in[:], whole)
		if len(whole) > len(w.in) {
			return
		}
		q.to = copy(q.in[:], sent)
		for {
			out, ok := w.next()
			if !ok {
				break
			}
			m, ok := q.next()
			for ok && (len(m) < wire.HeaderSize || !bytes.Equal(m[:2], out[:2])) {
				m, ok = q.next()
			}
			if !ok {
				t.Fatalf("nobody asked for %x", out)
			}
			checkReply(t, m, out, wire.MaxMessage)
		}
		if w.from != w.to {
			t.Errorf("%d octets behind the last response", w.to-w.from)
		}
	})
}
