package upstream

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
	"github.com/waymark-dns/waymark/internal/wheel"
)

// Group is servers that answer the same queries. All its methods may be called by
// any goroutine.
type Group struct {
	cfg       Config
	env       Env
	servers   []*server
	dice      *egress.Dice
	questions questions
	wheel     wheel.Wheel[event]
	mux       *mux
	wg        sync.WaitGroup // of all goroutines; Close waits for it

	inFlight atomic.Int64
	started  atomic.Uint64
	credit   atomic.Int64 // for hedges
	probeAt  atomic.Int64 // no server is to be measured before
	awake    atomic.Bool  // Tick is being called, or asked for
	ticking  atomic.Bool  // it runs now
	closed   atomic.Bool
}

// NewGroup opens no socket yet: that is done by the queries that need one.
func NewGroup(c Config, e Env) (*Group, error) {
	if n := len(c.Servers); n == 0 || n > MaxServers {
		return nil, fmt.Errorf("making a group of %d servers: 1 to %d can be", n, MaxServers)
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Sockets <= 0 {
		c.Sockets = defaultSockets
	}
	if c.Race <= 0 {
		c.Race = defaultRace
	}
	g := &Group{cfg: c, env: e, dice: egress.NewDice()}
	g.questions = questions{seed: maphash.MakeSeed(), exact: c.MixCase}
	g.credit.Store(maxHedgeCredit)
	for i, s := range c.Servers {
		if !s.Addr.IsValid() || s.Addr.Port() == 0 {
			return nil, fmt.Errorf("making a group of servers: server %q has no address and port", s.Name)
		}
		g.servers = append(g.servers, newServer(g, i))
	}
	var err error
	if g.mux, err = newMux(g); err != nil {
		return nil, fmt.Errorf("making a group of servers: %w", err)
	}
	return g, nil
}

// Start sends x. It never waits. How x ended is told to x.Owner: usually later by
// a goroutine of the group, but it may be before Start returns.
func (g *Group) Start(x *Exchange) {
	now := g.env.Now()
	gather := x.Gather && g.env.Outbox != nil // now, while x cannot have ended
	gen := x.begin(now, now+g.cfg.Timeout, len(g.servers))
	if err := g.admit(x); err != nil {
		g.fail(x, gen, err)
		return
	}
	count := g.started.Add(1)
	if c := g.credit.Load(); c < maxHedgeCredit {
		g.credit.Add(1)
	}
	w := want{gather: gather}
	if g.mayProbe(now, count) {
		g.askAndProbe(x, gen, now, count)
	} else {
		g.ask(x, gen, now, w)
	}
	if g.cfg.Select == Race {
		for range min(g.cfg.Race, len(g.servers)) - 1 {
			g.ask(x, gen, now, w)
		}
	}
}

// admit counts x and says what keeps it from being sent.
func (g *Group) admit(x *Exchange) error {
	switch {
	case g.inFlight.Add(1) > MaxInFlight:
		return ErrBusy
	case g.closed.Load():
		return ErrClosed
	case x.job.end == 0:
		return ErrQuery
	}
	return nil
}

// askAndProbe asks for x, and then sends a duplicate to another server, to learn
// how that does. Its answer is nobody's.
func (g *Group) askAndProbe(x *Exchange, gen uint32, now time.Duration, count uint64) {
	var room [queryRoom]byte
	msg := append(room[:0], x.Query...) // now, while x cannot have ended
	sl := slot{sent: now, end: uint16(x.job.end)}
	bare := x.Bare
	s := g.probed(now, g.ask(x, gen, now, want{}), count)
	if s == nil {
		return
	}
	opt := bare > 0
	if opt && !s.speaksEDNS(now) {
		msg, opt = stripOPT(msg[:bare]), false
	}
	sl.flags = want{}.flags(s.cfg.TCP, opt)
	e := event{due: now + s.timeout(0, s.cfg.TCP), kind: tryDue}
	if s.send(msg, &sl, g.dice.Throw(), &e) {
		g.add(&e)
	}
}

func (g *Group) mayHedge(s *server) bool {
	return g.cfg.Hedge && len(g.servers) > 1 && g.cfg.Select != Race && s.samples.Load() >= knownSamples
}

func (g *Group) takeCredit() bool {
	if g.credit.Add(-hedgePrice) >= 0 {
		return true
	}
	g.credit.Add(hedgePrice)
	return false
}

// add puts e on the wheel and sees to it that somebody turns it. An exchange in
// flight always has an event there that leads to its end, so that Close finds all
// of them: what comes too late for Close is ended here.
func (g *Group) add(e *event) {
	g.wheel.Add(e, e.due, e.id^uint16(e.gen)>>1)
	if !g.awake.Load() && g.awake.CompareAndSwap(false, true) {
		g.env.Wake()
	}
	if g.closed.Load() {
		g.giveUp(e)
	}
}

// giveUp ends the exchange of an event with the group.
func (g *Group) giveUp(e *event) {
	if e.x != nil {
		g.fail(e.x, e.gen, ErrClosed)
	}
}

// Tick does what is due at now: time-outs, hedges, retries, closing of what is
// idle. It is false where nothing is in flight: it need not be called until Wake.
func (g *Group) Tick(now time.Duration) bool {
	if !g.ticking.CompareAndSwap(false, true) {
		return true
	}
	if g.env.Outbox != nil { // of those whose batch has not ended yet
		g.env.Outbox.Flush()
	}
	for i := range g.wheel.Shards() {
		s := &g.wheel.Shards()[i]
		for list := s.Take(now); list != nil; list = s.Take(now) {
			list.Each(func(e *event) { g.look(e, now) })
			s.Release(list)
		}
	}
	g.ticking.Store(false)
	if !g.idle() {
		return true
	}
	// Who adds an event from here on sees that Tick is not called any more, or
	// the event is seen here.
	g.awake.Store(false)
	return !g.idle() && g.awake.CompareAndSwap(false, true)
}

func (g *Group) idle() bool { return g.inFlight.Load() <= 0 && g.wheel.Empty() }

// look does what an event stands for.
func (g *Group) look(e *event, now time.Duration) {
	if e.due > now || g.closed.Load() {
		g.add(e)
		return
	}
	switch e.kind {
	case hedgeDue, tryDue:
		if e.line.waits(e.id, e.serial) {
			g.overdue(e, now)
		}
	case tryLost:
		g.expired(e.x, e.gen, e.try, now)
	case tryBroken:
		g.broken(e.x, e.gen, e.try, now, want{})
	case retryDue:
		g.retry(e.x, e.gen, now)
	case exchangeDue:
		g.end(e.x, e.gen)
	case lineDue:
		e.line.tend(now)
	}
}

// overdue is of a try that is later than expected.
func (g *Group) overdue(e *event, now time.Duration) {
	s := e.line.owner()
	if e.kind == hedgeDue {
		next := *e
		next.kind, next.due = tryDue, e.last
		g.add(&next)
		g.ask(e.x, e.gen, now, want{hedge: true})
		return
	}
	s.count.timeouts.Add(1)
	s.punish(timeoutPenalty, now)
	e.line.suspect(now)
	if e.x != nil {
		g.expired(e.x, e.gen, e.try, now)
	}
}

// Close ends everything in flight with ErrClosed and waits for the goroutines of
// the group. It must not be called within Exchanged.
func (g *Group) Close() error {
	if !g.closed.CompareAndSwap(false, true) {
		return nil
	}
	for i := range g.wheel.Shards() {
		s := &g.wheel.Shards()[i]
		for list := s.TakeAny(); list != nil; list = s.TakeAny() {
			list.Each(g.giveUp)
			s.Release(list)
		}
	}
	for _, s := range g.servers {
		s.tcp.close()
	}
	err := g.mux.close()
	g.wg.Wait()
	return err
}
