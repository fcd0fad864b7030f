package listen

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waymark-dns/waymark/internal/stats"
)

// handed is a net.Listener whose connections and errors the test hands out.
type handed struct {
	next   chan any // net.Conn or error
	closed chan struct{}
}

func newHanded() *handed { return &handed{make(chan any), make(chan struct{})} }

func (h *handed) Accept() (net.Conn, error) {
	select {
	case x := <-h.next:
		if conn, ok := x.(net.Conn); ok {
			return conn, nil
		}
		return nil, x.(error)
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error {
	select {
	case <-h.closed:
	default:
		close(h.closed)
	}
	return nil
}

func (h *handed) Addr() net.Addr { return &net.TCPAddr{} }

// bubble is a stream listener in synthetic time, with connections in memory.
type bubble struct {
	*site
	*handed
	tcp *TCP
}

// inBubble runs test in synthetic time.
func inBubble(t *testing.T, change func(*TCPConfig), test func(t *testing.T, b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{site: newSite(100), handed: newHanded()}
		c := b.tcpConfig()
		if change != nil {
			change(&c)
		}
		b.tcp = newTCP(c, b.handed)
		b.tcp.Serve()
		test(t, b)
		b.giveUp()
		b.tcp.Close()
	})
}

// connect is a connection from 192.0.2.n.
func (b *bubble) connect(t *testing.T, n byte) *client {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	b.tcp.start(theirs, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, n}), 4000), netip.AddrPort{})
	return &client{t: t, conn: ours, stream: true, buf: make([]byte, 1<<17)}
}

// ends waits for the end of the connection and checks when it comes: at that
// time or as much later as the server looks for a last query.
func (b *bubble) ends(t *testing.T, c *client, at time.Duration) {
	t.Helper()
	if m := c.next(); m != nil {
		t.Errorf("response %x, want the end of the connection", m)
	}
	if now := time.Since(b.begin); now < at || now > at+pollTime {
		t.Errorf("closed after %v, want %v", now, at)
	}
}

func TestIdle(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		b.ends(t, b.connect(t, 1), 10*time.Second)
	})
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.connect(t, 1)
		time.Sleep(6 * time.Second)
		c.send(question(1, "now.example."))
		c.reply()
		b.ends(t, c, 16*time.Second)
	})
}

// A client that is owed a response is not idle (RFC 7766 §6.2.3).
func TestWaitingIsNotIdle(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.connect(t, 1)
		c.send(question(1, "wait.example."))
		time.Sleep(33 * time.Second)
		b.desk.let(1)
		if r := c.reply(); r.id != 1 {
			t.Errorf("response %+v, want that to query 1", r)
		}
		b.ends(t, c, 43*time.Second)
	})
}

// Octets that never become a query keep no connection.
func TestTrickle(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.connect(t, 1)
		for range 9 {
			time.Sleep(time.Second)
			if _, err := c.conn.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
		}
		b.ends(t, c, 10*time.Second)
	})
}

func TestTotal(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.connect(t, 1)
		for range 11 {
			time.Sleep(5 * time.Second)
			c.send(question(1, "now.example."))
			c.reply()
		}
		b.ends(t, c, time.Minute)
	})
}

func TestSlowReader(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.connect(t, 1)
		c.send(question(1, "now.example."))
		time.Sleep(5*time.Second + 1)
		synctest.Wait()
		b.ends(t, c, 5*time.Second)
		b.count(t, "failed", stats.SendFailed, 1)
	})
}

// So is one that does not read the response to a query that had to wait.
func TestSlowReaderOfParked(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.connect(t, 1)
		b.desk.let(1)
		c.send(question(1, "wait.example."))
		time.Sleep(5*time.Second + 1)
		b.ends(t, c, 5*time.Second)
		b.count(t, "failed", stats.SendFailed, 1)
	})
}

// A connection whose client has gone ends with the last request that waits on it.
func TestClientGoesAway(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.connect(t, 1)
		c.send(question(1, "wait.example."))
		<-b.desk.waiting
		c.conn.Close()
		b.desk.let(1)
		b.tcp.conns.Wait()
		b.count(t, "failed", stats.SendFailed, 1)
		if n := b.parked.n.Load(); n != 0 {
			t.Errorf("%d requests still wait", n)
		}
	})
}

// A connection with as many queries in flight as it may have is not read until
// one is answered; what is ready is sent before.
func TestInflight(t *testing.T) {
	inBubble(t, func(c *TCPConfig) { c.Inflight = 2 }, func(t *testing.T, b *bubble) {
		c := b.connect(t, 1)
		c.send(question(9, "now.example."), question(1, "wait.example."), question(2, "wait.example."),
			question(3, "wait.example."), question(4, "now.example."))
		if r := c.reply(); r.id != 9 {
			t.Errorf("response %+v, want that to query 9", r)
		}
		synctest.Wait()
		if n := len(b.desk.waiting); n != 2 {
			t.Errorf("%d queries in flight, want 2", n)
		}
		b.desk.let(1)
		if r := c.reply(); r.id != 1 {
			t.Errorf("response %+v, want that to query 1", r)
		}
		synctest.Wait()
		if n := len(b.desk.waiting); n != 3 { // 3 has the place of 1, and 4 has none
			t.Errorf("%d queries have been begun, want 3", n)
		}
		b.desk.let(3)
		for _, id := range []uint16{3, 4} {
			if r := c.reply(); r.id != id {
				t.Errorf("response %+v, want that to query %d", r, id)
			}
		}
	})
}

func TestConnectionLimits(t *testing.T) {
	inBubble(t, func(c *TCPConfig) { c.Conns, c.PerClient = 3, 2 }, func(t *testing.T, b *bubble) {
		answered := func(c *client) {
			t.Helper()
			c.send(question(1, "now.example."))
			c.reply()
		}
		refused := func(c *client) {
			t.Helper()
			b.ends(t, c, 0)
		}
		first, second := b.connect(t, 1), b.connect(t, 1)
		answered(first)
		answered(second)
		refused(b.connect(t, 1)) // of this client
		answered(b.connect(t, 2))
		refused(b.connect(t, 3)) // of all
		second.conn.Close()
		synctest.Wait()
		answered(b.connect(t, 1)) // its place is free again
		refused(b.connect(t, 2))
		b.count(t, "refused", stats.Refused, 3)
		b.count(t, "accepted", stats.Accepted, 4)
		first.conn.Close()
	})
}

// Accepting goes on behind errors, with pauses that grow.
func TestAcceptErrors(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		for range 10 {
			b.next <- &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		}
		ours, theirs := net.Pipe()
		b.next <- theirs
		if now := time.Since(b.begin); now < 3*time.Second || now > 10*time.Second {
			t.Errorf("ten errors took %v, want pauses that grow to a second", now)
		}
		c := &client{t: t, conn: ours, stream: true, buf: make([]byte, 1<<17)}
		c.send(question(1, "now.example."))
		c.reply()
		ours.Close()
	})
}

// A pause of the accept loop does not hold up the end.
func TestDrainWhileAcceptFails(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		for range 10 {
			b.next <- &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		}
		synctest.Wait()
		begin := time.Since(b.begin)
		b.tcp.Drain(t.Context())
		if took := time.Since(b.begin) - begin; took != 0 {
			t.Errorf("drained in %v, want at once", took)
		}
	})
}

// A connection that the kernel has taken, with a query, is not lost.
func TestDrainTakesBacklog(t *testing.T) {
	c := newSite(1).tcpConfig()
	c.Addr, c.PerClient = netip.MustParseAddrPort("127.0.0.1:0"), 10
	l, err := OpenTCP(c)
	if err != nil {
		t.Fatal(err)
	}
	var clients []*client
	for range 10 {
		cl := dial(t, "tcp", l.Addr())
		cl.send(question(1, "now.example."))
		clients = append(clients, cl)
	}
	l.Serve()
	drained := make(chan struct{})
	go func() {
		l.Drain(t.Context())
		close(drained)
	}()
	for _, cl := range clients {
		cl.reply()
		if m := cl.next(); m != nil {
			t.Errorf("response %x, want the end of the connection", m)
		}
		cl.conn.Close()
	}
	<-drained
}

// Drain waits for the requests that wait, but not for longer than it may.
func TestDrainWaits(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.connect(t, 1)
		c.send(question(1, "wait.example."), question(2, "wait.example."))
		<-b.desk.waiting
		<-b.desk.waiting
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		drained := make(chan struct{})
		go func() {
			b.tcp.Drain(ctx)
			close(drained)
		}()
		b.desk.let(1)
		if r := c.reply(); r.id != 1 {
			t.Errorf("response %+v, want that to query 1", r)
		}
		<-drained
		b.ends(t, c, 3*time.Second)
	})
}

// Drain waits for no client that has nothing to ask, and tells one that asks
// meanwhile not to keep the connection (RFC 7828 §3.4).
func TestDrainIdle(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		silent, asks := b.connect(t, 1), b.connect(t, 2)
		synctest.Wait()
		go b.tcp.Drain(t.Context())
		synctest.Wait()
		asks.send(withOPT(question(1, "now.example."), 1232, 0, 11, 0, 0))
		if r := asks.reply(); string(r.options) != string([]byte{0, 11, 0, 2, 0, 0}) {
			t.Errorf("options %x, want a keepalive of no time", r.options)
		}
		b.ends(t, silent, 0)
		asks.conn.Close()
	})
}

// half is a connection of which one side can be closed.
type half struct {
	net.Conn
	wrote chan struct{} // closed with the writing side
}

func (h *half) CloseWrite() error {
	close(h.wrote)
	return nil
}

// A connection that we end is closed when the client has closed it too, or has
// had its time: what is on its way to it would be lost otherwise.
func TestLinger(t *testing.T) {
	for _, c := range []struct {
		name   string
		closes bool
		want   time.Duration
	}{
		{"a client that closes", true, 300 * time.Millisecond},
		{"a client that does not", false, lingerTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, b *bubble) {
				ours, theirs := net.Pipe()
				h := &half{theirs, make(chan struct{})}
				b.tcp.start(h, netip.AddrPort{}, netip.AddrPort{})
				synctest.Wait()
				drained := make(chan time.Duration)
				go func() {
					b.tcp.Drain(t.Context())
					drained <- time.Since(b.begin)
				}()
				<-h.wrote
				begin := time.Since(b.begin)
				if _, err := ours.Write([]byte("still sent")); err != nil {
					t.Error(err)
				}
				time.Sleep(300 * time.Millisecond)
				if c.closes {
					ours.Close()
				}
				if took := <-drained - begin; took != c.want {
					t.Errorf("drained %v behind the last response, want %v", took, c.want)
				}
				ours.Close()
			})
		})
	}
}

// The keepalive of a query that had to wait is answered too.
func TestKeepaliveParked(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.connect(t, 1)
		b.desk.let(1)
		c.send(withOPT(question(1, "wait.example."), 1232, 0, 11, 0, 0))
		if r := c.reply(); string(r.options) != string([]byte{0, 11, 0, 2, 0, 100}) {
			t.Errorf("options %x, want a keepalive of 10 s", r.options)
		}
		c.conn.Close()
	})
}

// The wall between two messages may be anywhere (RFC 7766 §8).
func TestSegments(t *testing.T) {
	s := newSite(1)
	c := dial(t, "tcp", s.openTCP(t, "127.0.0.1:0", nil).Addr())
	for _, b := range append(framed(question(1, "now.example.")), framed(question(2, "now.example."))...) {
		if _, err := c.conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	c.replies(2)
}

// A message may be as long as its length can say, and so may its response.
func TestLongMessages(t *testing.T) {
	s := newSite(1)
	c := dial(t, "tcp", s.openTCP(t, "127.0.0.1:0", nil).Addr())
	padded := func(id uint16) []byte {
		q := question(id, "huge.example.")
		n := 65535 - len(q) - 11
		q[11] = 1
		q = append(q, 0, 0, 41, 2, 0, 0, 0, 0, 0)
		q = binary.BigEndian.AppendUint16(q, uint16(n))
		q = binary.BigEndian.AppendUint16(append(q, 0, 12), uint16(n-4))
		return append(q, make([]byte, n-4)...)
	}
	c.send(question(1, "huge.example."), padded(2), question(3, "now.example."), padded(4))
	for id := range uint16(4) {
		if r := c.reply(); r.id != id+1 || r.rcode != 0 || r.tc || r.answers != 1 {
			t.Errorf("response %+v, want a whole one to query %d", r, id+1)
		}
	}
}

// A client that has asked all may say so; it is answered to the end.
func TestHalfClose(t *testing.T) {
	s := newSite(10)
	l := s.openTCP(t, "127.0.0.1:0", nil)
	c := dial(t, "tcp", l.Addr())
	c.send(question(1, "wait.example."), question(2, "now.example."))
	if err := c.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if r := c.reply(); r.id != 2 {
		t.Errorf("response %+v, want that to query 2", r)
	}
	s.desk.let(1)
	if r := c.reply(); r.id != 1 {
		t.Errorf("response %+v, want that to query 1", r)
	}
	if m := c.next(); m != nil {
		t.Errorf("response %x, want the end of the connection", m)
	}
}

// Thousands of queries at once fill every buffer on the way.
func TestManyAtOnce(t *testing.T) {
	s := newSite(1)
	c := dial(t, "tcp", s.openTCP(t, "127.0.0.1:0", nil).Addr())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 40 {
			c.send(questions(1000, "now.example.")...)
		}
	}()
	for range 40 {
		c.replies(1000)
	}
	<-done
}

// A client that does not read is dropped, over a real socket too.
func TestSlowReaderSocket(t *testing.T) {
	s := newSite(1)
	l := s.openTCP(t, "127.0.0.1:0", func(c *TCPConfig) { c.Write = time.Millisecond })
	c := dial(t, "tcp", l.Addr())
	many := []byte{}
	for range 1000 {
		many = append(many, framed(question(1, "huge.example."))...)
	}
	for err := error(nil); err == nil; {
		_, err = c.conn.Write(many)
	}
	l.Drain(t.Context())
	if s.stats[0].Load(stats.SendFailed) == 0 {
		t.Error("no response was counted as not sent")
	}
}

// An IPv4 client of a socket for both families is an IPv4 client.
func TestMappedAddressTCP(t *testing.T) {
	s := newSite(1)
	l := s.openTCP(t, "[::]:0", nil)
	c := dial(t, "tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), l.Addr().Port()))
	c.send(question(1, "seen.example."))
	c.reply()
	seen, local := s.desk.saw(1)
	if seen.String() != c.conn.LocalAddr().String() {
		t.Errorf("the handler saw %v, want %v", seen, c.conn.LocalAddr())
	}
	if want := c.conn.RemoteAddr().String(); local.String() != want {
		t.Errorf("the handler saw it come to %v, want %v", local, want)
	}
}

// A query over a connection in use allocates nothing.
func TestAllocTCP(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	s := newSite(1)
	c := dial(t, "tcp", s.openTCP(t, "127.0.0.1:0", nil).Addr())
	query, buf := framed(withOPT(question(1, "now.example."), 1232, 0, 11, 0, 0)), make([]byte, 1000)
	if n := testing.AllocsPerRun(1000, func() {
		_, _ = c.conn.Write(query)
		if _, err := c.conn.Read(buf); err != nil {
			t.Error(err)
		}
	}); n > 0.1 { // pools may be emptied by a collection
		t.Errorf("%v allocations for a query, want none", n)
	}
}
