package listen

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/stats"
	"github.com/waymark-dns/waymark/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what should never take long, so that a failure is a failure
// and no hanging test.
const patience = 10 * time.Second

// desk is a Handler that does what the first label of the name says: "now", "large",
// "big" and "huge" are answered with a TXT record of 1, 10, 20 and 240 strings, "drop" is
// dropped, "wait" waits for let.
type desk struct {
	waiting chan uint16 // IDs of the requests that wait, as they begin to
	sets    map[string]*wire.RRset
	woken   bool // "wait" waits for its Waker, not in a goroutine

	mu    sync.Mutex // guards what follows
	gates map[uint16]chan struct{}
	seen  map[uint16]netip.AddrPort // clients by ID
	local netip.AddrPort
}

func newDesk() *desk {
	return &desk{
		waiting: make(chan uint16, 1024),
		sets:    map[string]*wire.RRset{"now": text(1), "large": text(10), "big": text(20), "huge": text(240)},
		gates:   map[uint16]chan struct{}{},
		seen:    map[uint16]netip.AddrPort{},
	}
}

// text is one TXT record of so many strings of 250 octets.
func text(n int) *wire.RRset {
	rdata := binary.BigEndian.AppendUint16(nil, uint16(n*251))
	for range n {
		rdata = append(append(rdata, 250), bytes.Repeat([]byte{'x'}, 250)...)
	}
	return &wire.RRset{Type: wire.TypeTXT, Class: wire.ClassIN, TTL: 60, Count: 1, RDATA: rdata}
}

func (d *desk) Serve(r *serve.Request) serve.Status {
	if len(r.Ask.Name) < 2 {
		r.Finish(wire.Refused)
		return serve.Done
	}
	label := string(r.Ask.Name[1 : 1+r.Ask.Name[0]])
	switch label {
	case "drop":
		return serve.Drop
	case "wait":
		return serve.Wait
	case "seen":
		d.mu.Lock()
		d.seen[r.ID], d.local = r.Client, r.Local
		d.mu.Unlock()
	}
	set := d.sets[label]
	if set == nil {
		set = d.sets["now"]
	}
	r.Note.Source = serve.SourceLocal
	r.Reply.Add(wire.Answer, r.Ask.Name, set, nil)
	r.Finish(wire.NoError)
	return serve.Done
}

// Start waits for let by itself where the desk is told to.
func (d *desk) Start(r *serve.Request) serve.Status {
	switch {
	case !d.woken:
		return serve.Wait
	case r.Pending == nil:
		gate := d.gate(r.ID)
		r.Pending = gate
		waker := r.Waker
		go func() {
			<-gate
			waker.Wake()
		}()
		d.waiting <- r.ID
		return serve.Pending
	}
	r.Pending = nil
	r.Note.Source = serve.SourceLocal
	r.Reply.Add(wire.Answer, r.Ask.Name, d.sets["now"], nil)
	r.Finish(wire.NoError)
	return serve.Done
}

func (d *desk) Resume(ctx context.Context, r *serve.Request) serve.Status {
	gate := d.gate(r.ID)
	d.waiting <- r.ID
	select {
	case <-gate:
	case <-ctx.Done():
		return serve.Drop
	}
	r.Note.Source = serve.SourceLocal
	r.Reply.Add(wire.Answer, r.Ask.Name, d.sets["now"], nil)
	r.Finish(wire.NoError)
	return serve.Done
}

// saw is the addresses of the query with that ID.
func (d *desk) saw(id uint16) (client, local netip.AddrPort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[id], d.local
}

func (d *desk) gate(id uint16) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gates[id] == nil {
		d.gates[id] = make(chan struct{})
	}
	return d.gates[id]
}

// let answers the request with that ID, also one that is still to come.
func (d *desk) let(id uint16) { close(d.gate(id)) }

// watcher is an Observer that counts.
type watcher struct{ observed, flushed, octets atomic.Int64 }

func (w *watcher) Observe(r *serve.Request) {
	w.observed.Add(1)
	w.octets.Add(int64(r.Note.Size))
}

func (w *watcher) Flush() { w.flushed.Add(1) }

// site is what all listeners of a test have in common.
type site struct {
	desk    *desk
	entry   Entry
	parked  *Parked
	watcher watcher
	stats   [2]stats.Worker
	begin   time.Time
}

func newSite(parked int) *site {
	s := &site{desk: newDesk(), parked: NewParked(parked), begin: time.Now()}
	s.entry.Set(s.desk)
	return s
}

func (s *site) config(proto serve.Proto) Config {
	return Config{
		Entry:    &s.entry,
		Now:      func() time.Duration { return time.Since(s.begin) },
		Deadline: func(d time.Duration) time.Time { return time.Now().Add(d) },
		UDPSize:  1232,
		Parked:   s.parked,
		Peer:     &serve.Peer{Listener: "test", Proto: proto},
	}
}

// worker is the i-th of UDP; a stream listener has the first.
func (s *site) worker(i int) Worker {
	return Worker{Observer: &s.watcher, Shared: &s.watcher, Stats: &s.stats[i]}
}

func (s *site) tcpConfig() TCPConfig {
	return TCPConfig{
		Config: s.config(serve.TCP), Worker: s.worker(0),
		Conns: 10, PerClient: 5, Inflight: 100,
		Idle: 10 * time.Second, Total: time.Minute, Write: 5 * time.Second,
	}
}

// count checks a counter, over all workers.
func (s *site) count(t *testing.T, what string, c stats.Counter, want uint64) {
	t.Helper()
	if got := s.stats[0].Load(c) + s.stats[1].Load(c); got != want {
		t.Errorf("%s: counted %d, want %d", what, got, want)
	}
}

func (s *site) openUDP(t *testing.T, addr string, workers int) *UDP {
	t.Helper()
	c := UDPConfig{Config: s.config(serve.UDP), Addr: netip.MustParseAddrPort(addr)}
	for i := range workers {
		c.Workers = append(c.Workers, s.worker(i))
	}
	u, err := OpenUDP(c)
	if err != nil {
		t.Fatal(err)
	}
	u.Serve()
	t.Cleanup(func() {
		u.Drain(context.Background())
		s.giveUp()
		u.Close()
	})
	return u
}

func (s *site) openTCP(t *testing.T, addr string, change func(*TCPConfig)) *TCP {
	t.Helper()
	c := s.tcpConfig()
	c.Addr = netip.MustParseAddrPort(addr)
	if change != nil {
		change(&c)
	}
	l, err := OpenTCP(c)
	if err != nil {
		t.Fatal(err)
	}
	l.Serve()
	t.Cleanup(func() {
		s.giveUp()
		l.Close()
	})
	return l
}

// giveUp ends the requests that still wait.
func (s *site) giveUp() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.parked.Wait(ctx)
}

// question is a query without OPT for a name in presentation format.
func question(id uint16, name string) []byte {
	m := binary.BigEndian.AppendUint16(nil, id)
	m = append(m, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		m = append(append(m, byte(len(label))), label...)
	}
	return append(m, 0, 0, wire.TypeTXT, 0, wire.ClassIN)
}

// withOPT adds an OPT record with options to a query.
func withOPT(m []byte, size uint16, options ...byte) []byte {
	m[11]++
	m = append(m, 0, 0, wire.TypeOPT, byte(size>>8), byte(size), 0, 0, 0, 0, 0, byte(len(options)))
	return append(m, options...)
}

// reply is what a test looks at in a response.
type reply struct {
	id      uint16
	rcode   wire.Rcode
	tc      bool
	answers int
	opt     bool
	options []byte
}

func parseReply(t *testing.T, m []byte) reply {
	t.Helper()
	var c wire.Response
	if !c.Read(m) || m[2]&0x80 == 0 {
		t.Fatalf("no response: %x", m)
	}
	r := reply{id: binary.BigEndian.Uint16(m), rcode: wire.Rcode(m[3] & 15), tc: m[2]&2 != 0}
	var rec wire.Record
	for c.Next(&rec) {
		switch {
		case rec.Section == wire.Answer:
			r.answers++
		case rec.Type == wire.TypeOPT:
			r.opt, r.options = true, m[rec.RDATA:rec.End]
			r.rcode |= wire.Rcode(rec.TTL >> 24 << 4)
		}
	}
	if !c.Whole() {
		t.Fatalf("malformed response: %x", m)
	}
	return r
}

// client is a client's end of either transport.
type client struct {
	t      *testing.T
	conn   net.Conn
	stream bool
	buf    []byte // buf[from:to] has come and is not looked at yet
	from   int
	to     int
}

func dial(t *testing.T, network string, to netip.AddrPort) *client {
	t.Helper()
	conn, err := net.Dial(network, to.String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn, stream: network[0] == 't', buf: make([]byte, 1<<17)}
}

// send sends messages: in one write over a stream.
func (c *client) send(msgs ...[]byte) {
	c.t.Helper()
	var all []byte
	for _, m := range msgs {
		if c.stream {
			all = append(all, framed(m)...)
		} else if _, err := c.conn.Write(m); err != nil {
			c.t.Fatal(err)
		}
	}
	if !c.stream {
		return
	}
	if _, err := c.conn.Write(all); err != nil {
		c.t.Fatal(err)
	}
}

func framed(m []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...)
}

// next is the next message, nil where the server has closed the connection.
func (c *client) next() []byte {
	c.t.Helper()
	for {
		if have := c.buf[c.from:c.to]; c.stream && len(have) >= 2 {
			if n := 2 + int(binary.BigEndian.Uint16(have)); len(have) >= n {
				c.from += n
				return bytes.Clone(have[2:n])
			}
		}
		c.from, c.to = 0, copy(c.buf, c.buf[c.from:c.to])
		n, err := c.conn.Read(c.buf[c.to:])
		var e net.Error
		switch {
		case err == nil && !c.stream:
			return bytes.Clone(c.buf[:n])
		case err == nil:
			c.to += n
		case !c.stream || errors.As(err, &e) && e.Timeout():
			c.t.Fatal(err)
		case c.to > 0:
			c.t.Fatalf("closed behind %d octets of a message", c.to)
		default:
			return nil
		}
	}
}

// reply is the next response.
func (c *client) reply() reply {
	c.t.Helper()
	m := c.next()
	if m == nil {
		c.t.Fatal("the connection was closed, want a response")
	}
	return parseReply(c.t, m)
}

// replies reads n responses and checks that they have the IDs 1 to n, in any
// order.
func (c *client) replies(n int) {
	c.t.Helper()
	got := make([]bool, n+1)
	for range n {
		r := c.reply()
		if r.id == 0 || int(r.id) > n || got[r.id] || r.rcode != wire.NoError {
			c.t.Fatalf("response %+v: unasked, answered before or an error", r)
		}
		got[r.id] = true
	}
}

// questions is n queries for a name, with the IDs 1 to n.
func questions(n int, name string) [][]byte {
	var all [][]byte
	for id := range n {
		all = append(all, question(uint16(id+1), name))
	}
	return all
}
