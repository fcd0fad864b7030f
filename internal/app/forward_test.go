package app

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/wire"
)

// other is a server of others, which a test forwards to.
type other struct {
	addr    netip.AddrPort
	asked   atomic.Int64
	respond atomic.Pointer[func(q *dns.Msg, tcp bool) []*dns.Msg]
	servers []*dns.Server
	seen    sync.Map // *dns.Msg of each question, by name and type
}

// newOther starts one on UDP and TCP.
func newOther(t *testing.T, respond func(q *dns.Msg, tcp bool) []*dns.Msg) *other {
	t.Helper()
	o := &other{}
	o.respond.Store(&respond)
	pc, l := bothPorts(t)
	o.addr = netip.MustParseAddrPort(pc.LocalAddr().String())
	o.servers = []*dns.Server{{PacketConn: pc, Handler: o.handler(false)}, {Listener: l, Handler: o.handler(true)}}
	var up, down sync.WaitGroup
	for _, s := range o.servers {
		up.Add(1)
		s.NotifyStartedFunc = up.Done
		down.Go(func() { _ = s.ActivateAndServe() })
	}
	up.Wait()
	t.Cleanup(func() {
		for _, s := range o.servers {
			_ = s.Shutdown()
		}
		down.Wait()
	})
	return o
}

// bothPorts is sockets of one port on UDP and TCP.
func bothPorts(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 50 {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", pc.LocalAddr().String())
		if err == nil {
			return pc, l
		}
		_ = pc.Close()
	}
	t.Fatal("no port is free for both UDP and TCP")
	return nil, nil
}

func (o *other) handler(tcp bool) dns.HandlerFunc {
	return func(w dns.ResponseWriter, q *dns.Msg) {
		o.asked.Add(1)
		o.seen.Store(q.Question[0].Name+dns.TypeToString[q.Question[0].Qtype], q)
		for _, m := range (*o.respond.Load())(q, tcp) {
			_ = w.WriteMsg(m)
		}
	}
}

func (o *other) answers(respond func(q *dns.Msg, tcp bool) []*dns.Msg) { o.respond.Store(&respond) }

// silent never answers.
func silent(*dns.Msg, bool) []*dns.Msg { return nil }

// fails answers with that code.
func fails(rcode int) func(*dns.Msg, bool) []*dns.Msg {
	return func(q *dns.Msg, _ bool) []*dns.Msg { return []*dns.Msg{new(dns.Msg).SetRcode(q, rcode)} }
}

// gives answers every question with these records, whose owner is the name asked.
func gives(t *testing.T, records ...string) func(*dns.Msg, bool) []*dns.Msg {
	t.Helper()
	for _, text := range records {
		if _, err := dns.NewRR("x. " + text); err != nil {
			t.Fatal(err)
		}
	}
	return func(q *dns.Msg, _ bool) []*dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.RecursionAvailable = true
		for _, text := range records {
			rr, _ := dns.NewRR(q.Question[0].Name + " " + text)
			m.Answer = append(m.Answer, rr)
		}
		return []*dns.Msg{m}
	}
}

// denies answers NXDOMAIN.
func denies(q *dns.Msg, _ bool) []*dns.Msg {
	m := new(dns.Msg).SetRcode(q, dns.RcodeNameError)
	soa, _ := dns.NewRR("example. 300 SOA ns. host. 1 2 3 4 120")
	m.Ns = []dns.RR{soa}
	return []*dns.Msg{m}
}

// forward adds a group of upstreams to the plan.
func (s *site) forward(edit func(*plan.Forward), to ...*other) {
	f := plan.DefaultForward()
	for _, o := range to {
		f.To = append(f.To, plan.Upstream{Scheme: "udp", Addr: o.addr})
	}
	f.Hedge = len(to) > 1
	if edit != nil {
		edit(&f)
	}
	s.plan.Forward = append(s.plan.Forward, f)
}

// cached turns the cache on.
func (s *site) cached(edit func(*plan.Cache)) {
	s.plan.Cache = plan.DefaultCache()
	s.plan.Cache.Size = 4 << 20
	if edit != nil {
		edit(&s.plan.Cache)
	}
}

// settable makes a running server's clock one that the test moves on.
func (s *site) settable() *atomic.Int64 {
	ahead := new(atomic.Int64)
	s.edit = func(srv *Server) {
		real, wall := srv.clock, srv.wall
		srv.clock = func() time.Duration { return real() + time.Duration(ahead.Load()) }
		srv.wall = func() time.Time { return wall().Add(time.Duration(ahead.Load())) }
	}
	return ahead
}

// begin asks without waiting; the answer comes on the channel, nil where none
// comes.
func (r *running) begin(name string, typ uint16) <-chan *dns.Msg {
	got := make(chan *dns.Msg, 1)
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), typ)
	go func() {
		c := &dns.Client{Timeout: patience}
		resp, _, _ := c.Exchange(m, r.udp)
		got <- resp
	}()
	return got
}

// await waits until cond holds.
func (r *running) await(what string, cond func() bool) {
	r.t.Helper()
	look, end := time.NewTicker(time.Millisecond), time.After(patience)
	defer look.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-end:
			r.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// flying waits until that many flights are under way.
func (r *running) flying(n int) {
	r.t.Helper()
	r.await("flights", func() bool { return r.world.Load().engines.flights.Len() == n })
}

// told is the text of an answer's records, their TTLs apart.
func told(m *dns.Msg) (data string, ttl uint32) {
	for _, rr := range m.Answer {
		data += rr.String()[len(rr.Header().String()):] + " "
		ttl = rr.Header().Ttl
	}
	return data, ttl
}

// ede is the extended error of a response, or -1.
func ede(m *dns.Msg) int {
	if o := m.IsEdns0(); o != nil {
		for _, opt := range o.Option {
			if e, ok := opt.(*dns.EDNS0_EDE); ok {
				return int(e.InfoCode)
			}
		}
	}
	return -1
}

// askEDNS asks with an OPT record.
func (r *running) askEDNS(name string, typ uint16, edit func(*dns.Msg)) *dns.Msg {
	r.t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), typ)
	m.SetEdns0(1232, false)
	if edit != nil {
		edit(m)
	}
	return r.exchange("udp", m)
}

func TestForward(t *testing.T) {
	o := newOther(t, gives(t, "300 A 192.0.2.1"))
	s := newSite(t)
	s.forward(nil, o)
	s.cached(nil)
	r := s.run(nil)
	for i, network := range []string{"udp", "tcp", "udp"} {
		q := new(dns.Msg)
		q.SetQuestion([]string{"wWw.example.", "www.example.", "WWW.EXAMPLE."}[i], dns.TypeA)
		m := r.exchange(network, q)
		if data, ttl := told(m); data != "192.0.2.1 " || ttl > 300 || ttl < 290 || m.Rcode != 0 || m.Authoritative || !m.RecursionAvailable || m.IsEdns0() != nil || m.Question[0] != q.Question[0] {
			t.Errorf("over %s: %v", network, m)
		}
	}
	if n := o.asked.Load(); n != 1 {
		t.Errorf("the upstream was asked %d times, want once", n)
	}
	o.answers(denies)
	for range 2 {
		if m := r.ask("no.example", dns.TypeA); m.Rcode != dns.RcodeNameError || len(m.Ns) != 1 || m.Ns[0].Header().Ttl > 120 {
			t.Errorf("NXDOMAIN: %v", m)
		}
	}
	if n := o.asked.Load(); n != 2 {
		t.Errorf("the upstream was asked %d times, want that NXDOMAIN is kept (RFC 2308)", n)
	}
}

// Without a cache every question goes out, identical ones in flight as one.
func TestFlightMerges(t *testing.T) {
	gate := make(chan struct{})
	o := newOther(t, func(q *dns.Msg, tcp bool) []*dns.Msg {
		<-gate
		return gives(t, "300 A 192.0.2.1")(q, tcp)
	})
	s := newSite(t)
	s.forward(func(f *plan.Forward) { f.Timeout = patience }, o)
	r := s.run(nil)
	var all []<-chan *dns.Msg
	for range 20 {
		all = append(all, r.begin("www.example", dns.TypeA))
	}
	r.await("requests that wait", func() bool { return r.parked.Len() == 20 })
	r.flying(1)
	close(gate)
	for _, got := range all {
		if m := <-got; m == nil || len(m.Answer) != 1 {
			t.Fatalf("answered %v", m)
		}
	}
	if n := r.world.Load().engines.flights.Len(); n != 0 {
		t.Errorf("%d flights are left", n)
	}
}

// A flight outlives its client: what it brings is in the cache.
func TestFlightOutlivesClient(t *testing.T) {
	gate := make(chan struct{})
	o := newOther(t, func(q *dns.Msg, tcp bool) []*dns.Msg {
		<-gate
		return gives(t, "300 A 192.0.2.1")(q, tcp)
	})
	s := newSite(t)
	s.forward(func(f *plan.Forward) { f.Timeout = patience }, o)
	s.cached(nil)
	r := s.run(nil)
	conn, err := net.Dial("tcp", r.tcp)
	if err != nil {
		t.Fatal(err)
	}
	co := &dns.Conn{Conn: conn}
	q := new(dns.Msg)
	q.SetQuestion("www.example.", dns.TypeA)
	if err := co.WriteMsg(q); err != nil {
		t.Fatal(err)
	}
	r.flying(1)
	_ = conn.Close()
	close(gate)
	r.flying(0)
	before := o.asked.Load()
	if m := r.ask("www.example", dns.TypeA); len(m.Answer) != 1 || o.asked.Load() != before {
		t.Errorf("the answer that nobody waited for is not kept: %v", m)
	}
}

// Names go where their group is, by the longest match.
func TestRouteByName(t *testing.T) {
	all, corp, lab := newOther(t, gives(t, "60 A 192.0.2.1")), newOther(t, gives(t, "60 A 192.0.2.2")), newOther(t, gives(t, "60 A 192.0.2.3"))
	s := newSite(t)
	named := func(name string) func(*plan.Forward) {
		n, err := wire.ParseName(name)
		if err != nil {
			t.Fatal(err)
		}
		return func(f *plan.Forward) { f.For = []wire.Name{n} }
	}
	s.forward(named("corp.example"), corp)
	s.forward(nil, all)
	s.forward(named("lab.corp.example"), lab)
	s.forward(named("10.in-addr.arpa"), lab)
	s.cached(nil)
	r := s.run(nil)
	for name, want := range map[string]string{
		"example": "192.0.2.1 ", "corp.example": "192.0.2.2 ", "x.CORP.example": "192.0.2.2 ", "notcorp.example": "192.0.2.1 ",
		"lab.corp.example": "192.0.2.3 ", "a.b.lab.corp.example": "192.0.2.3 ", "1.0.0.10.in-addr.arpa": "192.0.2.3 ",
	} {
		if data, _ := told(r.ask(name, dns.TypeA)); data != want {
			t.Errorf("%s: %s, want %s", name, data, want)
		}
	}
	if m := r.ask("1.168.192.in-addr.arpa", dns.TypePTR); m.Rcode != dns.RcodeNameError || !m.Authoritative {
		t.Errorf("the reverse of a private address left the site: %v", m)
	}
}

func addrOf(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
