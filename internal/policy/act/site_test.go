package act

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/upstream"
	"github.com/waymark-dns/waymark/internal/wire"
)

// patience bounds what never takes long, so that a failure is no hanging test.
const patience = 20 * time.Second

// asked is a query that came to the upstream.
type asked struct {
	raw  []byte
	from netip.AddrPort
}

// msg is the query, unpacked.
func (q asked) msg(t testing.TB) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(q.raw); err != nil {
		t.Fatalf("the upstream got %x: %v", q.raw, err)
	}
	return m
}

// authority is an upstream on loopback. It answers when the test says so.
type authority struct {
	conn *net.UDPConn
	got  chan asked
	done sync.WaitGroup
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	u := &authority{conn: conn, got: make(chan asked, 1<<12)}
	u.done.Go(u.readLoop)
	t.Cleanup(func() {
		_ = u.conn.Close()
		u.done.Wait()
	})
	return u
}

// readLoop ends with the socket.
func (u *authority) readLoop() {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := u.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		u.got <- asked{bytes.Clone(buf[:n]), from}
	}
}

// next is the next query.
func (u *authority) next(t testing.TB) asked {
	t.Helper()
	select {
	case q := <-u.got:
		return q
	case <-time.After(patience):
		t.Fatal("the upstream was not asked")
		panic("unreachable")
	}
}

// send answers q with these octets behind the ID.
func (u *authority) send(q asked, msg []byte) {
	_, _ = u.conn.WriteToUDPAddrPort(append(bytes.Clone(q.raw[:2]), msg[2:]...), q.from)
}

// answer answers q with a code and records, and whatever change does.
func (u *authority) answer(t testing.TB, q asked, rcode int, records []string, change ...func(*dns.Msg)) {
	t.Helper()
	u.send(q, packed(t, q.msg(t), rcode, records, change...))
}

// packed is a response to a query; "soa" puts a SOA into the authority section.
func packed(t testing.TB, query *dns.Msg, rcode int, records []string, change ...func(*dns.Msg)) []byte {
	t.Helper()
	m := new(dns.Msg)
	m.SetRcode(query, rcode)
	m.RecursionAvailable, m.Compress = true, true
	m.SetEdns0(1232, true)
	for _, text := range records {
		section := &m.Answer
		if text == "soa" {
			text, section = "example. 600 IN SOA ns.example. root.example. 1 2 3 4 60", &m.Ns
		}
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		*section = append(*section, rr)
	}
	for _, f := range change {
		f(m)
	}
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

// site is a forwarder in front of an upstream, with a clock that only the test
// moves. Its program is route, cache and forward.
type site struct {
	t       testing.TB
	up      *authority
	group   *upstream.Group
	cache   *cache.Cache
	forward *Forward
	set     *policy.Set
	forks   *policy.Forks
	again   atomic.Int32 // refreshes begun
	clock   atomic.Int64
}

// siteConfig is what tests vary.
type siteConfig struct {
	cache cache.Config
	none  bool // no cache
	ecs   bool
	first policy.Rule // in front of all, where it does anything
}

func newSite(t testing.TB, c siteConfig) *site {
	t.Helper()
	s := &site{t: t, up: newAuthority(t)}
	s.clock.Store(int64(time.Hour))
	addr := s.up.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	conf := upstream.DefaultConfig(upstream.Server{Addr: addr})
	conf.Sockets = 4
	var err error
	if s.group, err = upstream.NewGroup(conf, upstream.Env{Now: s.now, Wake: func() {}}); err != nil {
		t.Fatal(err)
	}
	if !c.none {
		c.cache.Size = cache.MinSize
		if s.cache, err = cache.New(c.cache); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := s.group.Close(); err != nil {
			t.Error(err)
		}
		if n := s.forward.Flights.Len(); n != 0 {
			t.Errorf("%d flights are left", n)
		}
		if s.cache != nil {
			_ = s.cache.Close()
		}
	})
	routes := NewRoutes([]RouteGroup{{}})
	act := &Cache{Cache: s.cache, Routes: routes, Again: func(r *serve.Request) {
		s.again.Add(1)
		(&policy.Runner{Forks: s.forks, Set: s.set}).Background(r)
	}}
	if c.ecs {
		act.ECS = []bool{true}
	}
	s.forward = &Forward{
		Cache: act, Flights: cache.NewFlights(), Now: s.now,
		Groups: []ForwardGroup{{Group: s.group, Numbers: []uint16{7}, Servers: []string{"udp://up"}}},
	}
	rules := []policy.Rule{{Do: routes}, {Do: act}, {Start: s.forward}}
	if c.first.Do != nil {
		rules = append([]policy.Rule{c.first}, rules...)
	}
	s.set = program(rules...)
	s.forks = policy.NewForks(context.Background(), 4)
	return s
}

func (s *site) now() time.Duration { return time.Duration(s.clock.Load()) }

// pass lets time go by, with a tick every 10 ms as in earnest.
func (s *site) pass(d time.Duration) {
	const tick = 10 * time.Millisecond
	for range d / tick {
		now := time.Duration(s.clock.Add(int64(tick)))
		s.group.Tick(now)
		s.forward.Flights.Tick(now)
	}
}

// client is a request that may wait, as a listener has it.
type client struct {
	serve.Request
	set    *policy.Set
	starts atomic.Int32 // how often it was begun or woken
	done   chan *dns.Msg
	query  [512]byte
	reply  [4096]byte
}

// Wake is part of serve.Waker.
func (c *client) Wake() {
	c.starts.Add(1)
	switch c.set.Start(&c.Request) {
	case serve.Done:
		m := new(dns.Msg)
		if err := m.Unpack(c.Fit(1232)); err != nil {
			panic(err)
		}
		c.done <- m
	case serve.Drop:
		c.done <- nil
	case serve.Wait:
		panic("a forwarder needs no goroutine")
	}
}

// ask puts a question; the answer may come later.
func (s *site) ask(name string, typ uint16, with ...how) *client {
	s.t.Helper()
	return s.put(overUDP, query(s.t, name, typ, with...))
}

func (s *site) put(peer *serve.Peer, msg []byte) *client {
	s.t.Helper()
	c := &client{set: s.set, done: make(chan *dns.Msg, 4)}
	r := received(s.t, "192.0.2.1", peer, msg)
	r.At = s.now()
	switch got := s.set.Serve(r); got {
	case serve.Done:
		c.Request = *r
		m := fitted(s.t, r)
		c.Note = r.Note
		c.done <- m
	case serve.Wait:
		r.Detach(&c.Request, c.query[:], c.reply[:])
		clear(msg) // the listener's memory is used again
		c.Waker = c
		c.Wake()
	default:
		s.t.Fatalf("Serve says %d", got)
	}
	return c
}

// answer is the response to c.
func (s *site) answer(c *client) *dns.Msg {
	s.t.Helper()
	select {
	case m := <-c.done:
		return m
	case <-time.After(patience):
		s.t.Fatal("there is no answer")
		panic("unreachable")
	}
}

// waits checks that c has no answer yet.
func (s *site) waits(c *client) {
	s.t.Helper()
	if len(c.done) > 0 {
		s.t.Fatalf("answered too early: %v", <-c.done)
	}
}

// unasked checks that the upstream was not asked again.
func (s *site) unasked() {
	s.t.Helper()
	if len(s.up.got) > 0 {
		s.t.Fatalf("the upstream is asked: %v", (<-s.up.got).msg(s.t))
	}
}

// hit checks that a question is answered at once.
func (s *site) hit(name string, typ uint16, with ...how) (*dns.Msg, *client) {
	s.t.Helper()
	c := s.ask(name, typ, with...)
	if len(c.done) == 0 {
		s.t.Fatalf("%s is not answered at once", name)
	}
	return <-c.done, c
}

// fill has the upstream asked for a name, and answers with that.
func (s *site) fill(name string, typ uint16, rcode int, records ...string) {
	s.t.Helper()
	c := s.ask(name, typ)
	s.up.answer(s.t, s.up.next(s.t), rcode, records)
	if m := s.answer(c); m.Rcode != rcode {
		s.t.Fatalf("%s is answered %v", name, m)
	}
}

// records is the answer section as text.
func records(m *dns.Msg) (all []string) {
	for _, rr := range m.Answer {
		all = append(all, rr.String())
	}
	return all
}

const (
	www    = "www.example."
	wwwA   = "www.example. 60 IN A 192.0.2.1"
	wwwSig = "www.example. 60 IN RRSIG A 8 2 60 20300101000000 20200101000000 1 example. c2ln"
)

func soaTTL(m *dns.Msg) int {
	if len(m.Ns) == 1 && m.Ns[0].Header().Rrtype == wire.TypeSOA {
		return int(m.Ns[0].Header().Ttl)
	}
	return -1
}
