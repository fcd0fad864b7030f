package app

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/wire"
)

// flap makes TestFlap go on for that long instead of a few seconds.
var flap = flag.Duration("flap", 0, "how long TestFlap lets upstreams go up and down; 0 is a short time")

const (
	flapNames   = 5000            // that are asked again and again
	flapPhase   = 5 * time.Second // between two changes
	flapShort   = time.Second     // the same without -flap
	flapRate    = 20000           // queries a second with -flap
	flapSlow    = 2000            // the same without
	flapSockets = 8               // of clients
	flapTTL     = 3               // seconds, so that answers expire while nobody can be asked
	flapGiveUp  = 6 * time.Second // a client waits no longer
	flapFresh   = 50              // one query in so many is for a name that nobody has asked for
	flapKnown   = 1 << 16         // queries of a socket that may be under way
)

// mirror is an upstream that answers every question with an address, unless it is
// down.
type mirror struct {
	conn *net.UDPConn
	down atomic.Bool
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadBuffer(4 << 20)
	m := &mirror{conn: conn}
	var wg sync.WaitGroup
	wg.Go(m.serveLoop)
	t.Cleanup(func() {
		_ = conn.Close()
		wg.Wait()
	})
	return m
}

func (m *mirror) serveLoop() {
	buf, out := make([]byte, 4096), make([]byte, 4096)
	set := &wire.RRset{Type: wire.TypeA, Class: wire.ClassIN, TTL: flapTTL, Count: 1, RDATA: []byte{0, 4, 192, 0, 2, 1}}
	var q wire.Query
	var b wire.Builder
	for {
		n, from, err := m.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		if m.down.Load() || q.Parse(buf[:n]) != nil {
			continue
		}
		b.Begin(&q, out)
		b.Add(wire.Answer, q.Name, set, nil)
		b.End(wire.NoError)
		_, _ = m.conn.WriteToUDPAddrPort(b.Fit(1232, 1232), from)
	}
}

// flapper is the clients of one socket.
type flapper struct {
	t    *testing.T
	conn net.Conn
	id   uint16
	rng  *rand.Rand

	mu    sync.Mutex // guards sent
	sent  [flapKnown]flapQuery
	known *[flapNames]atomic.Bool // was answered once
	tally *flapTally
}

type flapQuery struct {
	name int // of flapNames; -1 is a name that nobody has asked for
	at   time.Time
}

// flapTally is what became of the queries.
type flapTally struct{ sent, good, servfail, bad, lost, slow atomic.Int64 }

// ask sends one query.
func (f *flapper) ask(now time.Time, fresh uint64) {
	name, text := f.rng.IntN(flapNames), ""
	if f.rng.IntN(flapFresh) == 0 {
		name, text = -1, fmt.Sprintf("f%d-%d.fresh.example.", f.rng.Uint32(), fresh)
	} else {
		text = fmt.Sprintf("n%d.example.", name)
	}
	n, err := wire.ParseName(text)
	if err != nil {
		panic(err)
	}
	f.id++
	msg := binary.BigEndian.AppendUint16(nil, f.id)
	msg = append(msg, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	msg = append(append(msg, n...), 0, 1, 0, 1)
	f.mu.Lock()
	if old := f.sent[f.id]; !old.at.IsZero() {
		f.tally.lost.Add(1)
	}
	f.sent[f.id] = flapQuery{name, now}
	f.mu.Unlock()
	f.tally.sent.Add(1)
	_, _ = f.conn.Write(msg)
}

// readLoop takes the responses until the connection is closed.
func (f *flapper) readLoop() {
	buf := make([]byte, 4096)
	for {
		n, err := f.conn.Read(buf)
		if err != nil {
			return
		}
		if n < wire.HeaderSize {
			f.tally.bad.Add(1)
			continue
		}
		id := binary.BigEndian.Uint16(buf)
		f.mu.Lock()
		q := f.sent[id]
		f.sent[id] = flapQuery{}
		f.mu.Unlock()
		if q.at.IsZero() {
			continue
		}
		if time.Since(q.at) > flapGiveUp {
			f.tally.slow.Add(1)
		}
		switch rcode := wire.Rcode(buf[3] & 15); {
		case rcode == wire.NoError && buf[7] == 1:
			f.tally.good.Add(1)
			if q.name >= 0 {
				f.known[q.name].Store(true)
			}
		case q.name >= 0 && f.known[q.name].Load():
			f.tally.bad.Add(1)
			f.t.Errorf("n%d.example was answered before, and now with %v", q.name, rcode)
		default:
			f.tally.servfail.Add(1)
		}
	}
}

// TestFlap lets two upstreams go down and up, one after the other and both, under
// load: a name that was ever answered is answered from then on, memory stays, and
// when both are back all is as before.
func TestFlap(t *testing.T) {
	a, b := newMirror(t), newMirror(t)
	s := newSite(t)
	f := plan.DefaultForward()
	for _, m := range []*mirror{a, b} {
		f.To = append(f.To, plan.Upstream{Scheme: "udp", Addr: addrOf(m.conn.LocalAddr().String())})
	}
	s.plan.Forward = []plan.Forward{f}
	s.cached(func(c *plan.Cache) { c.Size = 16 << 20 })
	r := s.run(nil)
	phase, rate := flapShort, flapSlow
	if *flap > 0 {
		phase, rate = flapPhase, flapRate
	}
	stop := startFlappers(t, r, rate)
	tick := time.NewTicker(phase)
	defer tick.Stop()
	end := time.Now().Add(max(*flap, 4*phase))
	var goroutines int
	var heap uint64
	for round := 0; time.Now().Before(end); round++ {
		down := [][2]bool{{true, false}, {true, true}, {false, true}, {false, false}}[round%4]
		a.down.Store(down[0])
		b.down.Store(down[1])
		<-tick.C
		if round%4 == 3 {
			r.flapBack(round, phase == flapPhase)
			if heap == 0 {
				goroutines, heap = settled()
			}
		}
	}
	a.down.Store(false)
	b.down.Store(false)
	tally := stop()
	nowGoroutines, nowHeap := settled()
	if *flap > 0 && (nowGoroutines > goroutines+8 || nowHeap > heap+16<<20) {
		t.Errorf("goroutines %d, then %d; heap %d, then %d octets", goroutines, nowGoroutines, heap, nowHeap)
	}
	t.Logf("sent %d, answered %d, SERVFAIL for new names %d, lost %d, later than %v %d; goroutines %d, then %d; heap %d, then %d octets",
		tally.sent.Load(), tally.good.Load(), tally.servfail.Load(), tally.lost.Load(), flapGiveUp, tally.slow.Load(), goroutines, nowGoroutines, heap, nowHeap)
}

// flapBack sees that new names are answered when both upstreams are back, and after
// a whole phase that both are in use again.
func (r *running) flapBack(round int, whole bool) {
	r.t.Helper()
	for i := range 20 {
		if m := r.ask(fmt.Sprintf("back%d-%d.example", round, i), 1); m.Rcode != 0 {
			r.t.Errorf("when both are back: %v", m)
		}
	}
	for _, st := range r.world.Load().engines.groups[0].Status(r.now()) {
		if whole && !st.Healthy {
			r.t.Errorf("when both are back: %+v", st)
		}
	}
}

// startFlappers sends so many queries a second until stop is called, which waits
// for the answers.
func startFlappers(t *testing.T, r *running, rate int) (stop func() *flapTally) {
	t.Helper()
	tally, known, quit := &flapTally{}, &[flapNames]atomic.Bool{}, make(chan struct{})
	var senders, readers sync.WaitGroup
	var conns []net.Conn
	for i := range flapSockets {
		conn, err := net.Dial("udp", r.udp)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		f := &flapper{t: t, conn: conn, rng: rand.New(rand.NewPCG(uint64(i), 1)), known: known, tally: tally}
		readers.Go(f.readLoop)
		senders.Go(func() {
			const pause = 5 * time.Millisecond
			tick := time.NewTicker(pause)
			defer tick.Stop()
			per := max(1, rate*int(pause)/int(time.Second)/flapSockets)
			for n := uint64(0); ; n++ {
				select {
				case <-quit:
					return
				case now := <-tick.C:
					for range per {
						f.ask(now, n)
					}
				}
			}
		})
	}
	return func() *flapTally {
		close(quit)
		senders.Wait()
		r.await("the last answers", func() bool {
			return tally.good.Load()+tally.servfail.Load()+tally.bad.Load()+tally.lost.Load() >= tally.sent.Load() || r.parked.Len() == 0
		})
		for _, c := range conns {
			_ = c.Close()
		}
		readers.Wait()
		return tally
	}
}
