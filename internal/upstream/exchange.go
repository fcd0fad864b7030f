package upstream

import (
	"net/netip"
	"time"
)

// Limits of one exchange.
const (
	maxTries    = 3 // by UDP at one server
	maxSilent   = 8 // the same while nobody has said anything: about one a second then
	maxTCPTries = 3
	maxAttempts = 32 // at all servers
	maxRounds   = 3  // at servers that cannot be reached
	firstPause  = 100 * time.Millisecond

	// failurePatience is how long a server that has not answered is waited for when
	// another has failed: it may be slow, and its answer is better than the failure.
	failurePatience = 1500 * time.Millisecond
	keepBest        = 4096 // capacity of job.best that outlives an exchange
)

// job is the state of an exchange in flight.
type job struct {
	deadline time.Duration
	patience time.Duration // until then a late answer is waited for, although a server has failed
	end      int           // of the question in Query
	asked    [MaxServers]asked

	tries   uint8
	by      [maxAttempts]uint8 // server of each try
	live    uint32             // tries that may still be answered, a bit for each
	waiting uint32             // those of them that have not timed out

	round    uint8 // of asking servers that cannot be reached
	guarded  bool  // exchangeDue is on the wheel
	timedOut bool  // some try did

	best     []byte // failing response, a copy
	bestRank uint8
	bestBy   uint8
	bestRTT  time.Duration
}

// asked is what an exchange knows of a server.
type asked struct {
	tries, waiting uint8
	tcp            uint8 // tries by TCP
	failed         bool  // it answered, with a failure: not to be asked again
	broken         bool  // it cannot be reached: not to be asked again in this round
}

// begin takes x into flight.
func (x *Exchange) begin(now, deadline time.Duration, servers int) (gen uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	gen = x.gen.Load() + 1
	if gen&1 == 0 {
		panic("upstream: Exchange started while in flight")
	}
	j := &x.job
	j.deadline, j.patience = deadline, now+failurePatience
	j.end = questionEnd(x.Query)
	clear(j.asked[:servers])
	j.tries, j.live, j.waiting = 0, 0, 0
	j.round, j.guarded, j.timedOut = 0, false, false
	if j.bestRank = 0; cap(j.best) > keepBest {
		j.best = nil
	}
	x.Response, x.Err, x.Upstream, x.Server, x.RTT, x.Tries = nil, nil, 0, netip.AddrPort{}, 0, 0
	x.gen.Store(gen)
	return gen
}

// enter locks x where it is still in the use gen.
func (x *Exchange) enter(gen uint32) bool {
	if x.gen.Load() != gen {
		return false
	}
	x.mu.Lock()
	if x.gen.Load() != gen {
		x.mu.Unlock()
		return false
	}
	return true
}

// open notes a new try at server i. x.mu is held.
func (j *job) open(i int, tcp bool) (try uint8) {
	try = j.tries
	j.tries++
	j.by[try] = uint8(i)
	j.live |= 1 << try
	j.waiting |= 1 << try
	a := &j.asked[i]
	a.waiting++
	if tcp {
		a.tcp++
	}
	a.tries++
	return try
}

// settle notes that a try is over: answered, or never to be. x.mu is held.
func (j *job) settle(try uint8) *asked {
	a := j.expire(try)
	j.live &^= 1 << try
	return a
}

// expire notes that a try has timed out. x.mu is held.
func (j *job) expire(try uint8) *asked {
	a := &j.asked[j.by[try]]
	if j.waiting&(1<<try) != 0 {
		j.waiting &^= 1 << try
		a.waiting--
	}
	return a
}

// step is how an exchange goes on that has nobody to ask.
type step uint8

const (
	stay  step = iota // another try or event moves it
	guard             // a late answer or the end of its time does
	pause             // servers that cannot be reached are asked again
	end
)

// rest decides how x goes on, and when that is due. x.mu is held.
func (j *job) rest(now time.Duration) (next step, due time.Duration) {
	switch {
	case j.waiting != 0:
		return stay, 0
	case j.bestRank > 0 && (j.live == 0 || now >= j.patience):
		return end, 0
	case j.bestRank > 0 && !j.guarded:
		j.guarded = true
		return guard, min(j.patience, j.deadline)
	case j.bestRank > 0:
		return stay, 0
	case j.round < maxRounds-1 && j.tries < maxAttempts && j.mayRetry():
		j.round++
		return pause, min(now+firstPause<<(j.round-1), j.deadline)
	case j.live == 0:
		return end, 0
	case j.guarded:
		return stay, 0
	}
	j.guarded = true
	return guard, j.deadline
}

// most is how often a server may be tried. A server that is silent may be one that
// has just been told of too much: as long as nobody has answered, it is asked now
// and then.
func (j *job) most(a *asked) uint8 {
	if j.bestRank == 0 && a.tcp == 0 {
		return maxSilent
	}
	return maxTries
}

func (j *job) mayRetry() bool {
	for i := range j.asked {
		if a := &j.asked[i]; a.broken && !a.failed && a.tries < maxTries {
			return true
		}
	}
	return false
}

func (g *Group) carryOn(x *Exchange, gen uint32, next step, due time.Duration) {
	switch next {
	case guard:
		g.add(&event{due: due, x: x, gen: gen, kind: exchangeDue})
	case pause:
		g.add(&event{due: due, x: x, gen: gen, kind: retryDue})
	case end:
		g.end(x, gen)
	}
}

// retry asks again those that could not be reached.
func (g *Group) retry(x *Exchange, gen uint32, now time.Duration) {
	if !x.enter(gen) {
		return
	}
	for i := range g.servers {
		x.job.asked[i].broken = false
	}
	late := now >= x.job.deadline
	x.mu.Unlock()
	if late {
		g.end(x, gen)
		return
	}
	g.ask(x, gen, now, want{})
}

// expired goes on with x after a time-out of a try.
func (g *Group) expired(x *Exchange, gen uint32, try uint8, now time.Duration) {
	if !x.enter(gen) {
		return
	}
	j := &x.job
	if j.waiting&(1<<try) == 0 {
		x.mu.Unlock()
		return
	}
	j.expire(try)
	j.timedOut = true
	late := now >= j.deadline
	x.mu.Unlock()
	if late {
		g.end(x, gen)
		return
	}
	g.ask(x, gen, now, want{})
}

// broken goes on with x after a try that cannot be answered any more, with
// the one that is wanted instead.
func (g *Group) broken(x *Exchange, gen uint32, try uint8, now time.Duration, w want) {
	if !x.enter(gen) {
		return
	}
	j := &x.job
	if j.live&(1<<try) == 0 {
		x.mu.Unlock()
		return
	}
	a := j.settle(try)
	if w.server == 0 {
		a.broken = true
	}
	x.mu.Unlock()
	g.ask(x, gen, now, w)
}

// failed goes on with x after a failing response; msg is nil where it is of no use
// to anybody.
func (g *Group) failed(sl *slot, msg []byte, rtt, now time.Duration) {
	x := sl.x
	if !x.enter(sl.gen) {
		return
	}
	j := &x.job
	j.settle(sl.try).failed = true
	if msg != nil && rankOf(rcode(msg)) > j.bestRank {
		j.best = append(j.best[:0], msg...)
		j.bestRank, j.bestBy, j.bestRTT = rankOf(rcode(msg)), j.by[sl.try], rtt
	}
	x.mu.Unlock()
	g.ask(x, sl.gen, now, want{})
}

// end ends x with the best failing response or without any.
func (g *Group) end(x *Exchange, gen uint32) {
	if !x.enter(gen) {
		return
	}
	j := &x.job
	switch {
	case j.bestRank > 0:
		x.Response, x.RTT = j.best, j.bestRTT
		g.from(x, int(j.bestBy))
	case j.timedOut:
		x.Err = ErrTimeout
	default:
		x.Err = ErrUnreachable
	}
	g.leave(x)
}

// fail ends x without a response.
func (g *Group) fail(x *Exchange, gen uint32, err error) {
	if x.enter(gen) {
		x.Err = err
		g.leave(x)
	}
}

// succeed ends x with a response.
func (g *Group) succeed(x *Exchange, gen uint32, i int, msg []byte, rtt time.Duration) {
	if x.enter(gen) {
		x.Response, x.RTT = msg, rtt
		g.from(x, i)
		g.leave(x)
	}
}

func (g *Group) from(x *Exchange, i int) {
	x.Upstream, x.Server = uint16(i), g.servers[i].cfg.Addr
}

// leave takes x out of flight and tells its owner. x.mu is held, and released.
func (g *Group) leave(x *Exchange) {
	x.Tries = x.job.tries
	owner := x.Owner
	x.gen.Add(1)
	x.mu.Unlock()
	g.inFlight.Add(-1)
	owner.Exchanged(x)
}
