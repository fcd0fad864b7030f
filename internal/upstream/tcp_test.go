package upstream

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// stream is the TCP side of a fake server. Each connection is given to serve,
// with its number from 1, and closed behind it.
type stream struct {
	listener net.Listener
	addr     netip.AddrPort
	conns    chan int // each connection as it is accepted
	done     sync.WaitGroup

	mu   sync.Mutex // guards open
	open []net.Conn
}

func newStream(t testing.TB, addr netip.AddrPort, serve func(n int, c net.Conn)) *stream {
	t.Helper()
	l, err := net.Listen("tcp4", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	return serveStream(t, l, serve)
}

// newPair is a fake server on one port of both.
func newPair(t testing.TB, respond func(q query) [][]byte, serve func(n int, c net.Conn)) (*fake, *stream) {
	t.Helper()
	for range 10 {
		f := newFake(t, respond)
		if l, err := net.Listen("tcp4", f.addr.String()); err == nil {
			return f, serveStream(t, l, serve)
		}
	}
	t.Fatal("no port is free for both")
	panic("unreachable")
}

func serveStream(t testing.TB, l net.Listener, serve func(n int, c net.Conn)) *stream {
	s := &stream{listener: l, conns: make(chan int, 1<<14)}
	s.addr = l.Addr().(*net.TCPAddr).AddrPort()
	s.done.Go(func() { s.acceptLoop(serve) })
	t.Cleanup(s.close)
	return s
}

func (s *stream) acceptLoop(serve func(n int, c net.Conn)) {
	for n := 1; ; n++ {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open = append(s.open, c)
		s.mu.Unlock()
		s.conns <- n
		s.done.Go(func() {
			serve(n, c)
			_ = c.Close()
		})
	}
}

func (s *stream) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for _, c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
}

func anywhere() netip.AddrPort { return netip.AddrPortFrom(loopback, 0) }

// receive is the next message, nil at the end.
func receive(c net.Conn) []byte {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil
	}
	m := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, m); err != nil {
		return nil
	}
	return m
}

func framed(m []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...)
}

// What the TCP side of a fake server may do.

func answerAll(_ int, c net.Conn) {
	for q := receive(c); q != nil; q = receive(c) {
		_, _ = c.Write(framed(reply(q, wire.NoError)))
	}
}

// half is cut in the middle of the first answer.
func half(_ int, c net.Conn) {
	if q := receive(c); q != nil {
		m := framed(reply(q, wire.NoError))
		_, _ = c.Write(m[:len(m)/2])
	}
}

// onlyTCP is a group of servers that are asked by TCP.
func onlyTCP(t testing.TB, servers ...*stream) *rig {
	return newRig(t, func(c *Config) {
		c.Select = Order
		for _, s := range servers {
			c.Servers = append(c.Servers, Server{Addr: s.addr, TCP: true})
		}
	})
}

func TestTruncating(t *testing.T) {
	f, s := newPair(t, func(q query) [][]byte { return [][]byte{truncate(q.msg)} }, answerAll)
	r := newRig(t, nil, f)
	for range 3 {
		if w := r.good("www.example.", 0); w.Tries != 2 {
			t.Errorf("%d tries, want 2", w.Tries)
		}
	}
	if n := len(s.conns); n != 1 {
		t.Errorf("%d connections for three queries, want 1", n)
	}
	if got := r.status(0); got.Truncated != 3 || got.TCPQueries != 3 || got.Conns != 1 || !got.Healthy {
		t.Errorf("%+v", got)
	}
}

// Where the server does not take connections, the next server is asked, and nobody
// is given the truncated response as if it were whole.
func TestTruncatingWithoutTCP(t *testing.T) {
	f := newFake(t, func(q query) [][]byte { return [][]byte{truncate(q.msg)} })
	other := newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select = Order }, f, other)
	r.good("www.example.", 1)
	r = newRig(t, nil, f)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	r.awaits(w, retryDue, 0)
	r.pass(100 * time.Millisecond)
	w.wait(t)
	w.failed(t, ErrUnreachable)
}

func TestTCPTruncated(t *testing.T) {
	s := newStream(t, anywhere(), func(_ int, c net.Conn) {
		for q := receive(c); q != nil; q = receive(c) {
			_, _ = c.Write(framed(truncate(q)))
		}
	})
	onlyTCP(t, s).run("www.example.").failed(t, ErrUnreachable)
}

func TestTCPClosesMidAnswer(t *testing.T) {
	bad, s := newStream(t, anywhere(), half), newStream(t, anywhere(), answerAll)
	r := onlyTCP(t, bad, s)
	if w := r.good("www.example.", 1); w.Tries != 3 { // once more on a new connection
		t.Errorf("%d tries, want 3", w.Tries)
	}
	if got := r.status(0); got.Errors < 2 || got.Healthy {
		t.Errorf("%+v", got)
	}
	r = onlyTCP(t, bad)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	r.awaits(w, retryDue, 0)
	r.pass(100 * time.Millisecond)
	w.wait(t)
	w.failed(t, ErrUnreachable)
}

// A server may close a connection that it takes for idle just when a query comes.
func TestTCPClosesUnanswered(t *testing.T) {
	s := newStream(t, anywhere(), func(n int, c net.Conn) {
		if q := receive(c); n > 1 && q != nil {
			_, _ = c.Write(framed(reply(q, wire.NoError)))
			answerAll(n, c)
		}
	})
	r := onlyTCP(t, s)
	if w := r.good("www.example.", 0); w.Tries != 2 {
		t.Errorf("%d tries, want 2", w.Tries)
	}
	r.good("www.example.", 0)
	if got := r.status(0); !got.Healthy || got.Penalty != 0 || len(s.conns) != 2 {
		t.Errorf("%+v, %d connections", got, len(s.conns))
	}
}

func TestTCPDead(t *testing.T) {
	l := newStream(t, anywhere(), answerAll)
	l.close()
	s := newStream(t, anywhere(), answerAll)
	onlyTCP(t, l, s).good("www.example.", 1)
}

func TestTCPSilent(t *testing.T) {
	mute := newStream(t, anywhere(), func(_ int, c net.Conn) {
		for receive(c) != nil {
		}
	})
	s := newStream(t, anywhere(), answerAll)
	r := onlyTCP(t, mute, s)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	<-mute.conns
	r.pass(time.Second)
	w.wait(t)
	w.answered(t, wire.NoError, 1)
	r.pass(time.Second)
	r.until("the connection is closed", func() bool {
		r.pass(time.Second)
		return r.status(0).Conns == 0
	})
}

// Answers come in the order in which they are ready (RFC 7766 §7).
func TestTCPOutOfOrder(t *testing.T) {
	const n = crowded - 1 // on one connection
	s := newStream(t, anywhere(), func(_ int, c net.Conn) {
		var all [][]byte
		for range n {
			all = append(all, receive(c))
		}
		for i := range all {
			_, _ = c.Write(framed(reply(all[n-1-i], wire.NoError)))
		}
		answerAll(0, c)
	})
	r := onlyTCP(t, s)
	var all []*waiter
	for i := range n {
		w := newWaiter(string(rune('a'+i)) + ".example.")
		all = append(all, w)
		r.Start(&w.Exchange)
	}
	for _, w := range all {
		w.wait(t)
		w.answered(t, wire.NoError, 0)
	}
	if len(s.conns) != 1 {
		t.Errorf("%d connections, want 1", len(s.conns))
	}
}

// A crowd is spread over connections, but not more of them than may be.
func TestTCPCrowd(t *testing.T) {
	let := make(chan struct{})
	s := newStream(t, anywhere(), func(n int, c net.Conn) {
		<-let
		answerAll(n, c)
	})
	r := onlyTCP(t, s)
	const n = maxConns * maxPipeline
	all := make([]*waiter, n+1)
	for i := range all {
		all[i] = newWaiter("www.example.")
		r.Start(&all[i].Exchange)
	}
	if got := r.status(0); got.Conns != maxConns {
		t.Errorf("%d connections, want %d", got.Conns, maxConns)
	}
	close(let)
	for _, w := range all[:n] {
		w.wait(t)
		w.answered(t, wire.NoError, 0)
	}
	r.pass(100 * time.Millisecond) // there was no room for the last one
	all[n].wait(t)
	all[n].answered(t, wire.NoError, 0)
}

// A server that answers one query at a time gets one on each connection, and the
// next where an answer has come.
func TestTCPSerial(t *testing.T) {
	let := make(chan struct{})
	s := newStream(t, anywhere(), func(n int, c net.Conn) {
		<-let
		answerAll(n, c)
	})
	r := newRig(t, func(c *Config) { c.Servers = []Server{{Addr: s.addr, TCP: true, Serial: true}} })
	const n = 20
	all := make([]*waiter, n)
	for i := range all {
		all[i] = newWaiter("www.example.")
		r.Start(&all[i].Exchange)
	}
	if got := r.status(0); got.Conns != n {
		t.Errorf("%d connections for %d queries", got.Conns, n)
	}
	close(let)
	for _, w := range all {
		w.wait(t)
		w.answered(t, wire.NoError, 0)
	}
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	w.wait(t)
	if got := r.status(0); got.Conns > n {
		t.Errorf("%d connections after %d queries at once", got.Conns, n)
	}
}

// Lies over TCP are passed over, and large messages come whole.
func TestTCPLarge(t *testing.T) {
	s := newStream(t, anywhere(), func(_ int, c net.Conn) {
		for q := receive(c); q != nil; q = receive(c) {
			wrong := reply(q, wire.NXDomain)
			wrong[0] ^= 0xff
			m := reply(q, wire.NXDomain)
			end := len(m)
			if q[11] > 0 { // instead of its OPT record
				end -= 11
			}
			m = append(m[:end], 0xc0, 12, 0, wire.TypeTXT, 0, 1, 0, 0, 0, 1)
			rest := wire.MaxMessage - len(m) - 2
			m = binary.BigEndian.AppendUint16(m, uint16(rest))
			m = append(m, bytes.Repeat([]byte{0}, rest)...)
			m[11], m[7] = 0, 1
			both := append(framed(wrong), framed(m)...)
			for len(both) > 0 { // in pieces
				k := min(len(both), 1000)
				_, _ = c.Write(both[:k])
				both = both[k:]
			}
		}
	})
	r := onlyTCP(t, s)
	for range 3 {
		w := r.run("www.example.")
		w.answered(t, wire.NXDomain, 0)
		if len(w.copy) != wire.MaxMessage {
			t.Errorf("%d octets, want %d", len(w.copy), wire.MaxMessage)
		}
	}
	if got := r.status(0); got.Spoofs.WrongID != 3 {
		t.Errorf("%+v", got)
	}
}

func TestTCPIdle(t *testing.T) {
	s := newStream(t, anywhere(), answerAll)
	r := onlyTCP(t, s)
	r.good("www.example.", 0)
	r.pass(connIdle - 10*time.Millisecond)
	r.good("www.example.", 0)
	r.pass(connIdle - 10*time.Millisecond)
	if got := r.status(0); got.Conns != 1 {
		t.Errorf("%d connections, want 1", got.Conns)
	}
	r.until("the connection is closed", func() bool {
		r.pass(100 * time.Millisecond)
		return r.status(0).Conns == 0
	})
	if r.Tick(r.now()) {
		t.Error("nothing is in flight, and yet Tick wants to be called")
	}
	r.good("www.example.", 0)
}

// One query that is not answered does not end a connection over which others are.
func TestTCPTimeoutOfOne(t *testing.T) {
	var lost []byte
	s := newStream(t, anywhere(), func(_ int, c net.Conn) {
		for q := receive(c); q != nil; q = receive(c) {
			if lost == nil {
				lost = q
				continue
			}
			_, _ = c.Write(framed(reply(q, wire.NoError)))
		}
	})
	r := onlyTCP(t, s)
	w := newWaiter("lost.example.")
	r.Start(&w.Exchange)
	r.pass(900 * time.Millisecond)
	r.good("www.example.", 0)
	r.pass(100 * time.Millisecond)
	w.wait(t) // by its second try
	w.answered(t, wire.NoError, 0)
	r.pass(2 * time.Second)
	if len(s.conns) != 1 || r.status(0).Conns != 1 {
		t.Errorf("%d connections", len(s.conns))
	}
}

// More than 16 spoofed responses on a socket: its port is known, so what waits
// there goes on by TCP.
func TestSpoofFlood(t *testing.T) {
	f, s := newPair(t, func(q query) [][]byte {
		var all [][]byte
		for i := range maxSpoofs + 1 {
			m := reply(q.msg, wire.NoError)
			m[0] ^= byte(i + 1)
			all = append(all, m)
		}
		return append(all, reply(q.msg, wire.NXDomain)) // who guesses right comes too late
	}, answerAll)
	r := newRig(t, func(c *Config) { c.Sockets = 1 }, f)
	r.good("www.example.", 0)
	first := f.next(t)
	if got := r.status(0); got.TCPQueries != 1 || got.Spoofs.WrongID != maxSpoofs+1 || got.Sockets != 0 {
		t.Errorf("%+v", got)
	}
	f.become(answer)
	r.good("www.example.", 0)
	if f.next(t).from == first.from {
		t.Error("the port is still in use")
	}
	if len(s.conns) != 1 {
		t.Errorf("%d connections, want 1", len(s.conns))
	}
}
