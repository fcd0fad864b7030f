package upstream

import (
	"sync"
	"sync/atomic"
	"time"
)

// Time-outs of one try.
const (
	unknownTimeout    = 150 * time.Millisecond // of a server that never answered
	minTimeout        = 50 * time.Millisecond
	maxTimeout        = time.Second
	unknownTCPTimeout = time.Second
	minTCPTimeout     = 500 * time.Millisecond // room for a handshake and a lost packet
	maxTCPTimeout     = 2 * time.Second
)

// A penalty is time added to a server's RTT. It halves by itself, and more so
// with each good answer.
const (
	timeoutPenalty  = 300 * time.Millisecond
	errorPenalty    = 600 * time.Millisecond // sockets and connections
	servfailPenalty = 100 * time.Millisecond // may be the zone's fault
	refusedPenalty  = 200 * time.Millisecond
	maxPenalty      = 3200 * time.Millisecond
	halfLife        = 2 * time.Second
	goodDivisor     = 4
	noPenalty       = time.Millisecond       // what is less is none
	unhealthyFrom   = 500 * time.Millisecond // then others are preferred, whatever their RTT
)

// How often a server that is not in use is measured.
const (
	probeEvery     = 5 * time.Second
	probeEveryBad  = 500 * time.Millisecond // while it has a penalty
	probeQueries   = 64
	probeLook      = probeEveryBad / 4     // how often that is looked at
	unknownRTT     = 50 * time.Millisecond // guessed, for the choice
	knownSamples   = 8                     // answers until p95 says something
	forgetEDNS     = 15 * time.Minute
	p95Share       = 32 // the estimate moves by a 32nd of itself
	minP95Step     = 50 * time.Microsecond
	hedgePrice     = 10 // of a credit that each query adds 1 to: one in ten
	maxHedgeCredit = 10 * hedgePrice
)

// health is what a server did lately. It is written under mu and read without:
// a choice made from numbers of two moments is as good as any.
type health struct {
	mu        sync.Mutex // guards the writing of what follows
	srtt      atomic.Int64
	rttvar    atomic.Int64
	p95       atomic.Int64
	samples   atomic.Uint32
	penalty   atomic.Int64 // as it was
	since     atomic.Int64 // at this time
	probeAt   atomic.Int64
	bareUntil atomic.Int64 // no OPT before then; 0 where it speaks EDNS
}

// sample learns from how long an answer took, a failure too.
func (h *health) sample(rtt, now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	srtt, v := time.Duration(h.srtt.Load()), time.Duration(h.rttvar.Load())
	p95 := time.Duration(h.p95.Load())
	n := h.samples.Load()
	if n == 0 { // RFC 6298 §2
		srtt, v, p95 = max(rtt, 1), rtt/2, 2*rtt
	} else {
		v += ((srtt - rtt).Abs() - v) / 4
		srtt = max(srtt+(rtt-srtt)/8, 1)
		p95 = nextP95(p95, rtt)
	}
	h.samples.Store(min(n+1, knownSamples))
	h.srtt.Store(int64(srtt))
	h.rttvar.Store(int64(v))
	h.p95.Store(int64(p95))
}

// alive notes an answer. ok is false where it was a failure.
func (h *health) alive(now time.Duration, ok bool) {
	if ok && h.penalty.Load() != 0 {
		h.mu.Lock()
		p := h.penaltyAt(now) / goodDivisor
		if p < noPenalty {
			p = 0
		}
		h.setPenalty(p, now)
		h.mu.Unlock()
	}
	every := probeEvery
	if h.penalty.Load() != 0 {
		every = probeEveryBad
	}
	h.probeAt.Store(int64(now + every))
}

// nextP95 moves the estimate up 19 times as far for an answer above it as down
// for one below, so that it rests where one answer in 20 is above.
func nextP95(p95, rtt time.Duration) time.Duration {
	step := max(p95/p95Share, minP95Step)
	if rtt > p95 {
		return min(p95+step*19/20, rtt)
	}
	return max(p95-step/20, rtt)
}

// punish adds to the penalty.
func (h *health) punish(by, now time.Duration) {
	h.mu.Lock()
	h.setPenalty(min(h.penaltyAt(now)+by, maxPenalty), now)
	h.mu.Unlock()
	h.probeAt.Store(int64(now + probeEveryBad))
}

// setPenalty stores a penalty. h.mu is held.
func (h *health) setPenalty(p, now time.Duration) {
	h.penalty.Store(int64(p))
	h.since.Store(int64(now))
}

// penaltyAt is what is left of the penalty.
func (h *health) penaltyAt(now time.Duration) time.Duration {
	p := time.Duration(h.penalty.Load())
	if p == 0 {
		return 0
	}
	age := max(now-time.Duration(h.since.Load()), 0)
	if age >= 16*halfLife {
		return 0
	}
	p >>= age / halfLife
	p -= p * (age % halfLife) / (2 * halfLife) // a straight line between the halves
	if p < noPenalty {
		return 0
	}
	return p
}

func (h *health) healthy(now time.Duration) bool { return h.penaltyAt(now) < unhealthyFrom }

// score is what the choice compares.
func (h *health) score(now time.Duration) time.Duration {
	rtt := time.Duration(h.srtt.Load())
	if rtt == 0 {
		rtt = unknownRTT
	}
	return rtt + h.penaltyAt(now)
}

// timeout is how long the n-th try at this server waits, counted from 0.
func (h *health) timeout(n uint8, tcp bool) time.Duration {
	srtt := time.Duration(h.srtt.Load())
	d := srtt + 4*time.Duration(h.rttvar.Load())
	switch {
	case tcp && srtt == 0:
		return unknownTCPTimeout
	case tcp:
		return min(max(4*d, minTCPTimeout), maxTCPTimeout)
	case srtt == 0:
		d = unknownTimeout
	default:
		d = min(max(d, minTimeout), maxTimeout)
	}
	d <<= min(n, maxTries)
	if n >= maxTries { // it was quick once: now it may be gone, or have too much to do
		d = max(d, maxTimeout)
	}
	return d
}

// speaksEDNS tells whether OPT may be sent.
func (h *health) speaksEDNS(now time.Duration) bool {
	until := h.bareUntil.Load()
	return until == 0 || now >= time.Duration(until)
}

// candidate is a server that may be asked, with what the choice goes by.
type candidate struct {
	burden uint8 // tries already, and one more where it is unhealthy
	sick   bool
	weight uint64
}

func (c candidate) before(d candidate) bool {
	switch {
	case c.burden != d.burden:
		return c.burden < d.burden
	case c.sick != d.sick:
		return d.sick
	default:
		return c.weight < d.weight
	}
}

// choose is the server that x asks next, or -1. A hedge goes to healthy servers
// only. x.mu is held.
func (g *Group) choose(x *Exchange, now time.Duration, tie uint32, hedge bool) int {
	j := &x.job
	if int(j.tries) >= len(j.by) {
		return -1
	}
	best, found := candidate{}, -1
	for i := range g.servers {
		a := &j.asked[i]
		if a.tries >= j.most(a) || a.waiting > 0 || a.failed || a.broken {
			continue
		}
		c := g.candidate(i, now, tie)
		if hedge && c.sick {
			continue
		}
		c.burden += a.tries
		if found < 0 || c.before(best) {
			best, found = c, i
		}
	}
	return found
}

func (g *Group) candidate(i int, now time.Duration, tie uint32) candidate {
	h := &g.servers[i].health
	c := candidate{weight: uint64(h.score(now))}
	if g.servers[i].drained.Load() {
		c.sick, c.burden = true, maxTries
		return c
	}
	if c.sick = !h.healthy(now); c.sick {
		c.burden = 1
		return c
	}
	switch g.cfg.Select {
	case Order:
		c.weight = uint64(i)
	case Random:
		v := (uint64(tie)<<8 | uint64(i)) * 0x9e3779b97f4a7c15
		c.weight = (v ^ v>>32) * 0xd6e8feb86659fd93 >> 32
	}
	return c
}

// mayProbe tells whether some server may be due to be measured.
func (g *Group) mayProbe(now time.Duration, count uint64) bool {
	return len(g.servers) > 1 && (count%probeQueries == 0 || now >= time.Duration(g.probeAt.Load()))
}

// probed is the server that is measured with a duplicate of a query that went to
// server asked, nil where none is due.
func (g *Group) probed(now time.Duration, asked int, count uint64) *server {
	turn := -1
	if count%probeQueries == 0 {
		turn = int(count/probeQueries) % len(g.servers)
	} else if look := g.probeAt.Load(); !g.probeAt.CompareAndSwap(look, int64(now+probeLook)) {
		return nil // somebody else does
	}
	for i, s := range g.servers {
		if i == asked || s.drained.Load() || g.cfg.Select != Fastest && s.penaltyAt(now) == 0 {
			continue
		}
		at := s.probeAt.Load()
		if (i == turn || now >= time.Duration(at)) && s.probeAt.CompareAndSwap(at, int64(now+probeEveryBad)) {
			return s
		}
	}
	return nil
}
