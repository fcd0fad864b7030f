package upstream

import (
	"time"

	"github.com/waymark-dns/waymark/internal/wheel"
)

// want is which try is to be made. The zero value is any server's, by its own
// transport, in the usual way.
type want struct {
	server int8 // index + 1; 0 lets choose decide
	tcp    bool
	bare   bool // without OPT
	again  bool // on a new connection
	hedge  bool
	gather bool // it may wait for the batch to end
}

// target is the server of the next try, or -1. x.mu is held.
func (g *Group) target(x *Exchange, w want, now time.Duration, tie uint32) int {
	if w.server == 0 {
		return g.choose(x, now, tie, w.hedge)
	}
	i := int(w.server) - 1
	if int(x.job.tries) >= maxAttempts || w.tcp && x.job.asked[i].tcp >= maxTCPTries {
		x.job.asked[i].failed = true
		return g.choose(x, now, tie, false)
	}
	return i
}

// attempt is a try made ready under the lock of its exchange.
type attempt struct {
	server *server // nil where there is nobody to ask: then next and due count
	slot   slot
	event  event
	next   step
	due    time.Duration
}

// ask makes one more try of x, at another server where one cannot be reached, and
// gives the index of the server. Where there is nobody to ask it is -1, and x goes
// on waiting or ends.
func (g *Group) ask(x *Exchange, gen uint32, now time.Duration, w want) int {
	var room [queryRoom]byte
	for {
		t := g.dice.Throw()
		if !x.enter(gen) {
			return -1
		}
		a, msg := g.prepare(x, now, w, t.Tie, room[:0]) // msg is not in a, which would put room on the heap
		x.mu.Unlock()
		if a.server == nil {
			g.carryOn(x, gen, a.next, a.due)
			return -1
		}
		a.event.gen, a.slot.gen = gen, gen
		if a.server.send(msg, &a.slot, t, &a.event) {
			g.add(&a.event)
			return a.server.index
		}
		if !x.enter(gen) {
			return -1
		}
		x.job.settle(a.slot.try).broken = true
		x.mu.Unlock()
		w = want{}
	}
}

// prepare chooses the server of the next try and writes its message into room.
// x.mu is held.
func (g *Group) prepare(x *Exchange, now time.Duration, w want, tie uint32, room []byte) (a attempt, msg []byte) {
	j := &x.job
	i := g.target(x, w, now, tie)
	if w.hedge && (i < 0 || !g.takeCredit()) {
		return a, nil
	}
	if i < 0 {
		a.next, a.due = j.rest(now)
		return a, nil
	}
	a.server = g.servers[i]
	if int(w.server) != i+1 {
		w = want{gather: w.gather}
	}
	tcp := w.tcp || a.server.cfg.TCP
	bare := x.Bare > 0 && (w.bare || !a.server.speaksEDNS(now))
	timeout := a.server.timeout(j.asked[i].tries, tcp)
	try := j.open(i, tcp)
	a.slot = slot{x: x, sent: now, end: uint16(j.end), try: try, flags: w.flags(tcp, x.Bare > 0 && !bare)}
	a.event = event{due: min(now+timeout, j.deadline), x: x, try: try, kind: tryDue}
	if try == 0 && g.mayHedge(a.server) {
		if at := now + max(time.Duration(a.server.p95.Load()), wheel.Step); at < a.event.due {
			a.event.last, a.event.due, a.event.kind = a.event.due, at, hedgeDue
		}
	}
	return a, x.message(room, bare)
}

func (w want) flags(tcp, opt bool) (f tryFlags) {
	if tcp {
		f = byTCP
	}
	if opt {
		f |= withOPT
	}
	if w.bare {
		f |= bareTry
	}
	if w.again {
		f |= againTry
	}
	if w.gather {
		f |= gatherTry
	}
	return f
}

// message copies the query. x.mu is held.
func (x *Exchange) message(dst []byte, bare bool) []byte {
	if bare {
		return stripOPT(append(dst, x.Query[:x.Bare]...))
	}
	return append(dst, x.Query...)
}
