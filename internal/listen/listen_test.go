package listen

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"github.com/waymark-dns/waymark/internal/stats"
	"github.com/waymark-dns/waymark/internal/wire"
)

// transports is what the shared listener test runs over.
var transports = []struct {
	name string
	open func(*testing.T, *site) (addr netip.AddrPort, drain func())
}{
	{"udp", func(t *testing.T, s *site) (netip.AddrPort, func()) {
		u := s.openUDP(t, "127.0.0.1:0", 1)
		return u.Addr(), func() { u.Drain(context.Background()) }
	}},
	{"tcp", func(t *testing.T, s *site) (netip.AddrPort, func()) {
		l := s.openTCP(t, "127.0.0.1:0", nil)
		return l.Addr(), func() { l.Drain(context.Background()) }
	}},
}

// overEach runs a test over each transport, with requests that wait in a goroutine
// and with requests that wait to be woken.
func overEach(t *testing.T, parked int, test func(t *testing.T, s *site, c *client, drain func())) {
	for _, tr := range transports {
		for _, woken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s woken %v", tr.name, woken), func(t *testing.T) {
				s := newSite(parked)
				s.desk.woken = woken
				addr, drain := tr.open(t, s)
				test(t, s, dial(t, tr.name, addr), drain)
			})
		}
	}
}

func TestAnswers(t *testing.T) {
	keepalive := []byte{0, wire.OptKeepalive, 0, 0}
	timed := []byte{0, wire.OptKeepalive, 0, 2, 0, 1}
	malformed := func(at int, b byte) []byte {
		m := question(9, "now.example.")
		m[at] = b
		return m
	}
	notify := question(9, "now.example.")
	notify[2] |= wire.OpNotify << 3
	for _, c := range []struct {
		name     string
		query    []byte
		udp, tcp reply
	}{
		{"a query without OPT has a response without (RFC 6891 §7)", question(9, "now.example."),
			reply{id: 9, answers: 1}, reply{id: 9, answers: 1}},
		{"OPT (RFC 6891 §6.1.1)", withOPT(question(9, "now.example."), 1232),
			reply{id: 9, answers: 1, opt: true}, reply{id: 9, answers: 1, opt: true}},
		{"too long for 512 octets (RFC 1035 §4.2.1)", question(9, "big.example."),
			reply{id: 9, tc: true}, reply{id: 9, answers: 1}},
		{"the client's size is UDP's only (RFC 6891 §6.2.3)", withOPT(question(9, "huge.example."), 512),
			reply{id: 9, tc: true, opt: true}, reply{id: 9, answers: 1, opt: true}},
		{"an opcode that the handler sees", notify, reply{id: 9, answers: 1}, reply{id: 9, answers: 1}},
		{"a label behind the end", malformed(12, 60), reply{id: 9, rcode: wire.FormErr}, reply{id: 9, rcode: wire.FormErr}},
		{"no question", malformed(5, 0), reply{id: 9, rcode: wire.FormErr}, reply{id: 9, rcode: wire.FormErr}},
		{"two questions (RFC 9619)", malformed(5, 2), reply{id: 9, rcode: wire.FormErr}, reply{id: 9, rcode: wire.FormErr}},
		{"a header alone", question(9, "now.example.")[:12], reply{id: 9, rcode: wire.FormErr}, reply{id: 9, rcode: wire.FormErr}},
		{"octets behind the query", append(question(9, "now.example."), 0), reply{id: 9, rcode: wire.FormErr}, reply{id: 9, rcode: wire.FormErr}},
		{"keepalive (RFC 7828 §3.3.2)", withOPT(question(9, "now.example."), 1232, keepalive...),
			reply{id: 9, answers: 1, opt: true}, reply{id: 9, answers: 1, opt: true, options: []byte{0, 11, 0, 2, 0, 100}}},
		{"keepalive with a time (RFC 7828 §3.3.1)", withOPT(question(9, "now.example."), 1232, timed...),
			reply{id: 9, answers: 1, opt: true}, reply{id: 9, rcode: wire.FormErr, opt: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			overEach(t, 1, func(t *testing.T, s *site, cl *client, drain func()) {
				cl.send(c.query)
				got, want := cl.reply(), c.udp
				if cl.stream {
					want = c.tcp
				}
				if got.id != want.id || got.rcode != want.rcode || got.tc != want.tc || got.answers != want.answers ||
					got.opt != want.opt || string(got.options) != string(want.options) {
					t.Errorf("got %+v, want %+v", got, want)
				}
				cl.conn.Close()
				drain()
				s.count(t, "queries", stats.Queries, 1)
				s.count(t, "octets in", stats.BytesIn, uint64(len(c.query)))
				s.count(t, "responses by code", stats.Rcode(uint16(want.rcode)), 1)
				if n, octets := s.watcher.observed.Load(), s.watcher.octets.Load(); n != 1 || s.watcher.flushed.Load() == 0 {
					t.Errorf("observed %d responses of %d octets, flushed %d times", n, octets, s.watcher.flushed.Load())
				} else {
					s.count(t, "octets out", stats.BytesOut, uint64(octets))
				}
			})
		})
	}
}

// What is no query is never answered; over a stream it ends the connection,
// behind the answers to what came before it.
func TestNeverAnswered(t *testing.T) {
	response := question(9, "now.example.")
	response[2] |= 0x80
	for _, c := range []struct {
		name    string
		msg     []byte
		counter stats.Counter
	}{
		{"a response", response, stats.DroppedResponse},
		{"a malformed response", append(response[:14:14], 255), stats.DroppedResponse},
		{"a header cut short", response[:11], stats.DroppedShort},
		{"one octet", []byte{0}, stats.DroppedShort},
		{"an empty message", nil, stats.DroppedShort},
	} {
		t.Run(c.name, func(t *testing.T) {
			overEach(t, 1, func(t *testing.T, s *site, cl *client, drain func()) {
				cl.send(question(1, "now.example."), c.msg, question(2, "now.example."))
				if r := cl.reply(); r.id != 1 {
					t.Errorf("response %+v, want that to query 1", r)
				}
				if !cl.stream {
					if r := cl.reply(); r.id != 2 {
						t.Errorf("response %+v, want that to query 2", r)
					}
				} else if m := cl.next(); m != nil {
					t.Errorf("response %x, want the end of the connection", m)
				}
				drain()
				s.count(t, "dropped", c.counter, 1)
			})
		})
	}
}

func TestDropped(t *testing.T) {
	overEach(t, 1, func(t *testing.T, s *site, c *client, drain func()) {
		c.send(question(1, "drop.example."), question(2, "now.example."))
		if r := c.reply(); r.id != 2 {
			t.Errorf("response %+v, want that to query 2", r)
		}
		c.conn.Close()
		drain()
		s.count(t, "dropped", stats.DroppedPolicy, 1)
	})
}

func TestPipelined(t *testing.T) {
	overEach(t, 1, func(t *testing.T, s *site, c *client, drain func()) {
		c.send(questions(100, "now.example.")...)
		c.replies(100)
		c.conn.Close()
		drain()
		s.count(t, "queries", stats.Queries, 100)
		s.count(t, "from local data", stats.FromLocal, 100)
	})
}

// A query that waits holds up no other (RFC 7766 §6.2.1.1), and those that wait
// are answered in the order they are ready.
func TestOutOfOrder(t *testing.T) {
	overEach(t, 10, func(t *testing.T, s *site, c *client, drain func()) {
		c.send(question(1, "wait.example."), question(2, "wait.example."), question(3, "now.example."))
		if r := c.reply(); r.id != 3 {
			t.Errorf("response %+v, want that to query 3", r)
		}
		for _, id := range []uint16{2, 1} {
			s.desk.let(id)
			if r := c.reply(); r.id != id || r.answers != 1 {
				t.Errorf("response %+v, want that to query %d", r, id)
			}
		}
		c.conn.Close()
		drain()
		s.parked.Wait(context.Background())
		s.count(t, "parked", stats.Parked, 2)
	})
}

func TestParkedLimit(t *testing.T) {
	overEach(t, 2, func(t *testing.T, s *site, c *client, drain func()) {
		c.send(append(questions(4, "wait.example."), question(5, "now.example."))...)
		if r := c.reply(); r.id != 5 {
			t.Errorf("response %+v, want that to query 5", r)
		}
		for id := range uint16(4) {
			s.desk.let(id + 1)
		}
		for range 2 { // the first that came have their places
			if r := c.reply(); r.id > 2 {
				t.Errorf("response %+v, want those to queries 1 and 2", r)
			}
		}
		c.conn.Close()
		drain()
		s.parked.Wait(context.Background())
		s.count(t, "parked", stats.Parked, 2)
		s.count(t, "shed", stats.Shed, 2)
		if n := s.parked.n.Load(); n != 0 {
			t.Errorf("%d places still taken", n)
		}
	})
}

// What has been sent before Drain is answered.
func TestDrainLosesNothing(t *testing.T) {
	overEach(t, 100, func(t *testing.T, s *site, c *client, drain func()) {
		c.send(questions(100, "now.example.")...)
		var drained sync.WaitGroup
		drained.Go(drain)
		c.replies(100)
		if c.stream && c.next() != nil {
			t.Error("more responses than queries")
		}
		c.conn.Close()
		drained.Wait()
		s.count(t, "queries", stats.Queries, 100)
	})
}

// A collection of garbage while the kernel holds addresses of buffers moves and
// frees nothing that is in use.
func TestGarbageCollections(t *testing.T) {
	overEach(t, 1000, func(t *testing.T, s *site, c *client, drain func()) {
		ctx, cancel := context.WithCancel(context.Background())
		var collector sync.WaitGroup
		collector.Go(func() {
			for ctx.Err() == nil {
				runtime.GC()
			}
		})
		for id := range uint16(1000) {
			s.desk.let(id + 1)
		}
		for range 20 {
			var msgs [][]byte
			for id := range uint16(60) {
				name := "now.example."
				if id%3 == 0 {
					name = "wait.example."
				}
				msgs = append(msgs, question(id+1, name))
			}
			c.send(msgs...)
			c.replies(60)
		}
		cancel()
		collector.Wait()
	})
}

// The handler may be another for every query: a reload loses none.
func TestHandlerSwap(t *testing.T) {
	overEach(t, 10, func(t *testing.T, s *site, c *client, drain func()) {
		c.send(question(1, "wait.example."), question(2, "now.example."))
		if r := c.reply(); r.id != 2 {
			t.Errorf("response %+v, want that to query 2", r)
		}
		second := newDesk()
		s.entry.Set(second)
		second.let(3)
		c.send(question(3, "wait.example."))
		if r := c.reply(); r.id != 3 {
			t.Errorf("response %+v, want that to query 3, from the new handler", r)
		}
		s.desk.let(1)
		if r := c.reply(); r.id != 1 {
			t.Errorf("response %+v, want that to query 1, from the handler it came to", r)
		}
	})
}
