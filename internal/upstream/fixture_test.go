package upstream

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waymark-dns/waymark/internal/wheel"
	"github.com/waymark-dns/waymark/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what should never take long, so that a failure is a failure
// and no hanging test.
const patience = 20 * time.Second

// loopback is where the servers of tests are.
var loopback = netip.MustParseAddr("127.0.0.1")

// query is one that came to a fake server.
type query struct {
	msg  []byte
	from netip.AddrPort
	n    int // from 1
}

// opt tells whether the query has an OPT record.
func (q query) opt() bool { return q.msg[11] > 0 }

// fake is a server on loopback. It answers each query with the messages that
// respond gives, at once and in the order of the queries.
type fake struct {
	addr    netip.AddrPort
	udp     *net.UDPConn
	got     chan query // each query that came by UDP
	respond atomic.Pointer[func(q query) [][]byte]
	done    sync.WaitGroup
}

func newFake(t testing.TB, respond func(q query) [][]byte) *fake {
	t.Helper()
	return fakeAt(t, netip.AddrPortFrom(loopback, 0), respond)
}

func fakeAt(t testing.TB, addr netip.AddrPort, respond func(q query) [][]byte) *fake {
	t.Helper()
	return serveFake(t, listenAt(t, addr), respond)
}

func serveFake(t testing.TB, conn *net.UDPConn, respond func(q query) [][]byte) *fake {
	f := &fake{udp: conn, addr: conn.LocalAddr().(*net.UDPAddr).AddrPort(), got: make(chan query, 1<<14)}
	f.respond.Store(&respond)
	f.done.Go(f.serveLoop)
	t.Cleanup(f.close)
	return f
}

func (f *fake) close() {
	_ = f.udp.Close()
	f.done.Wait()
}

func (f *fake) become(respond func(q query) [][]byte) { f.respond.Store(&respond) }

func (f *fake) serveLoop() {
	buf := make([]byte, 1<<16)
	for n := 1; ; n++ {
		size, from, err := f.udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		q := query{bytes.Clone(buf[:size]), from, n}
		f.got <- q
		f.send(q, (*f.respond.Load())(q)...)
	}
}

// send sends responses to where q came from.
func (f *fake) send(q query, msgs ...[]byte) {
	for _, m := range msgs {
		_, _ = f.udp.WriteToUDPAddrPort(m, q.from)
	}
}

// next is the next query that came.
func (f *fake) next(t testing.TB) query {
	t.Helper()
	select {
	case q := <-f.got:
		return q
	case <-time.After(patience):
		t.Fatal("the server was not asked")
		panic("unreachable")
	}
}

// unasked checks that no query came that was not looked at.
func (f *fake) unasked(t testing.TB) {
	t.Helper()
	if len(f.got) > 0 {
		t.Errorf("%d more queries than expected", len(f.got))
	}
}

// What a fake server may do.

func answer(q query) [][]byte { return [][]byte{reply(q.msg, wire.NoError)} }

func silent(query) [][]byte { return nil }

func rcodes(r wire.Rcode) func(query) [][]byte {
	return func(q query) [][]byte { return [][]byte{reply(q.msg, r)} }
}

// reply is a response to a query, with an A record if it is no error.
func reply(q []byte, r wire.Rcode) []byte {
	end := questionEnd(q)
	m := bytes.Clone(q[:end])
	m[2] |= 0x80
	m[3] = 0x80 | byte(r)
	clear(m[6:12])
	if r == wire.NoError {
		m[7] = 1
		m = append(m, 0xc0, 12, 0, wire.TypeA, 0, wire.ClassIN, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
	}
	if q[11] > 0 {
		m[11] = 1
		m = append(m, 0, 0, wire.TypeOPT, 4, 208, 0, 0, 0, 0, 0, 0)
	}
	return m
}

// truncate is a response cut behind its question.
func truncate(q []byte) []byte {
	m := reply(q, wire.NXDomain)
	m[2] |= wire.FlagTC >> 8
	m[3] &= 0xf0
	return m
}

// ask is a query for an A record, with OPT as its last record.
func ask(name string) (msg []byte, bare int) {
	m := []byte{0xde, 0xad, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1}
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		m = append(append(m, byte(len(label))), label...)
	}
	m = append(m, 0, 0, wire.TypeA, 0, wire.ClassIN)
	bare = len(m)
	return append(m, 0, 0, wire.TypeOPT, 4, 208, 0, 0, 0x80, 0, 0, 0), bare
}

// waiter is an exchange whose end can be waited for.
type waiter struct {
	Exchange
	ended chan struct{}
	calls atomic.Int32
	copy  []byte
}

func (w *waiter) Exchanged(x *Exchange) {
	w.calls.Add(1)
	w.copy = append(w.copy[:0], x.Response...)
	w.ended <- struct{}{}
}

func newWaiter(name string) *waiter {
	w := &waiter{ended: make(chan struct{}, 16)}
	w.Query, w.Bare = ask(name)
	w.Owner = w
	return w
}

func (w *waiter) wait(t testing.TB) {
	t.Helper()
	select {
	case <-w.ended:
	case <-time.After(patience):
		t.Fatal("the exchange did not end")
	}
	if w.Err == nil && len(w.copy) == 0 {
		t.Error("ended without a response and without an error")
	}
}

// flying checks that the exchange has not ended.
func (w *waiter) flying(t testing.TB) {
	t.Helper()
	if len(w.ended) > 0 {
		t.Fatalf("the exchange has ended: %v", w.Err)
	}
}

// rig is a group with a clock that only the test moves.
type rig struct {
	*Group
	t     testing.TB
	clock atomic.Int64
	woken atomic.Int32
}

func (r *rig) now() time.Duration { return time.Duration(r.clock.Load()) }

func newRig(t testing.TB, change func(*Config), servers ...*fake) *rig {
	t.Helper()
	c := DefaultConfig()
	for _, f := range servers {
		c.Servers = append(c.Servers, Server{Addr: f.addr})
	}
	c.Sockets, c.Hedge = 4, len(servers) > 1
	if change != nil {
		change(&c)
	}
	r := &rig{t: t}
	r.clock.Store(int64(time.Hour))
	var err error
	r.Group, err = NewGroup(c, Env{Now: r.now, Wake: func() { r.woken.Add(1) }, Outbox: &Outbox{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// pass lets time go by, with a Tick every 10 ms.
func (r *rig) pass(d time.Duration) {
	for range d / wheel.Step {
		r.Tick(time.Duration(r.clock.Add(int64(wheel.Step))))
	}
}

// run starts an exchange and waits for its end.
func (r *rig) run(name string) *waiter {
	r.t.Helper()
	w := newWaiter(name)
	r.Start(&w.Exchange)
	w.wait(r.t)
	return w
}

// good runs an exchange that is to be answered by the i-th server.
func (r *rig) good(name string, i int) *waiter {
	r.t.Helper()
	w := r.run(name)
	w.answered(r.t, wire.NoError, i)
	return w
}

func (w *waiter) answered(t testing.TB, want wire.Rcode, i int) {
	t.Helper()
	if w.Err != nil {
		t.Fatalf("ended with %v, want a response", w.Err)
	}
	end := questionEnd(w.Query)
	if got := rcode(w.copy); got != want || int(w.Upstream) != i {
		t.Errorf("%v of server %d, want %v of server %d", got, w.Upstream, want, i)
	}
	if !bytes.EqualFold(w.copy[12:end], w.Query[12:end]) {
		t.Errorf("a response to another question: %x", w.copy)
	}
}

func (w *waiter) failed(t testing.TB, want error) {
	t.Helper()
	if w.Err != want || w.Response != nil {
		t.Errorf("ended with %v and response %x, want %v", w.Err, w.Response, want)
	}
}

// status is of the i-th server.
func (r *rig) status(i int) ServerStatus { return r.Status(r.now())[i] }

// until ticks until something has happened that is not under the test's control.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	for begin := time.Now(); !ok(); r.Tick(r.now()) {
		if time.Since(begin) > patience {
			r.t.Fatal("never: " + what)
		}
	}
}

// retry lets time go by until another query is sent. What was sent before must
// be silent.
func (r *rig) retry() {
	r.t.Helper()
	sent := func() (n uint64) {
		for _, s := range r.Status(r.now()) {
			n += s.Queries
		}
		return n
	}
	for begin, before := r.now(), sent(); sent() == before; r.pass(wheel.Step) {
		if r.now() > begin+time.Minute {
			r.t.Fatal("it was not sent again")
		}
	}
}

// awaits waits until w waits for that kind of event, and for no answer of another
// server than the i-th.
func (r *rig) awaits(w *waiter, kind eventKind, i int) {
	r.t.Helper()
	r.until("the exchange is where it should be", func() bool { return r.onWheel(w, kind, i) })
}

func (r *rig) onWheel(w *waiter, kind eventKind, i int) (found bool) {
	var all []event
	r.wheel.Each(func(e *event) { all = append(all, *e) })
	for _, e := range all {
		switch {
		case e.x != &w.Exchange || e.gen != w.gen.Load():
		case e.kind != tryDue && e.kind != hedgeDue:
			found = found || e.kind == kind
		case e.line.waits(e.id, e.serial):
			found = found || e.kind == kind && e.line.owner().index == i
		}
	}
	return found
}

// closedAddr is where nothing can listen.
var closedAddr = netip.MustParseAddrPort("127.0.0.1:1")

func listenAt(t testing.TB, addr netip.AddrPort) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// closedPort is an address where nobody listens.
func closedPort(t testing.TB) netip.AddrPort {
	t.Helper()
	conn := listenAt(t, netip.AddrPortFrom(loopback, 0))
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

func idOf(m []byte) uint16 { return binary.BigEndian.Uint16(m) }
