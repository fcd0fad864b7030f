package upstream

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
	"github.com/waymark-dns/waymark/internal/wire"
)

// server is one server of a group with all that is open towards it.
type server struct {
	group *Group
	index int
	cfg   Server
	health
	count counters
	udp   pool
	tcp   connPool

	drained atomic.Bool            // asked only where no other is left
	filling atomic.Pointer[socket] // that gathers the queries of the batch at hand
}

// counters are of one server, since the group was made.
type counters struct {
	queries, answers, timeouts atomic.Uint64
	failures, errors           atomic.Uint64
	truncated, tcpQueries      atomic.Uint64
	wrongID, wrongQuestion     atomic.Uint64
	unexpected, duplicate      atomic.Uint64
	sockets, conns             atomic.Int64
	opened                     atomic.Uint64
	latency                    latency
}

func newServer(g *Group, i int) *server {
	s := &server{group: g, index: i, cfg: g.cfg.Servers[i]}
	s.udp.places = make([]atomic.Pointer[socket], g.cfg.Sockets)
	s.udp.retired = make([]*socket, max(g.cfg.Sockets, minLingerers))
	return s
}

// line is what tries wait on: a socket or a connection.
type line interface {
	waits(id uint16, serial uint32) bool
	suspect(now time.Duration) // a try timed out on it
	tend(now time.Duration)    // its lineDue has come
	owner() *server
}

// send sends msg, which is s's question, and completes sl and e. It is false where
// the server cannot be reached.
func (s *server) send(msg []byte, sl *slot, t egress.Throw, e *event) bool {
	if s.group.cfg.MixCase {
		mixCase(msg[wire.HeaderSize:sl.end-4], s.group.dice)
	}
	sl.hash = s.group.questions.hash(msg, int(sl.end))
	s.count.queries.Add(1)
	var l line
	if sl.flags&byTCP != 0 {
		s.count.tcpQueries.Add(1)
		l = s.sendTCP(msg, sl, t)
	} else {
		if sl.flags&gatherTry != 0 {
			l = s.gatherUDP(msg, sl, t)
		}
		if l == nil {
			l = s.sendUDP(msg, sl, t)
		}
	}
	e.line, e.id, e.serial = l, sl.id, sl.serial
	return l != nil
}

// broke notes an error of a socket or connection.
func (s *server) broke(now time.Duration) {
	s.count.errors.Add(1)
	s.punish(errorPenalty, now)
}

// answered goes on with a try whose response has come: msg, with the ID and, but
// for one kind, the question of the try. No lock is held.
func (s *server) answered(sl *slot, msg []byte, now time.Duration) {
	rtt := max(now-sl.sent, 0)
	s.count.answers.Add(1)
	s.count.latency.add(rtt)
	if s.lacksEDNS(sl, msg) {
		s.learn(sl, rtt, now, true)
		if sl.x != nil {
			s.group.broken(sl.x, sl.gen, sl.try, now, want{server: int8(s.index + 1), tcp: sl.flags&byTCP != 0, bare: true})
		}
		return
	}
	c := classify(msg, sl.flags&byTCP != 0)
	s.learn(sl, rtt, now, c <= truncated)
	switch c {
	case good:
		s.noteEDNS(sl, now)
		if sl.x != nil {
			s.group.succeed(sl.x, sl.gen, s.index, msg, rtt)
		}
	case truncated:
		s.count.truncated.Add(1)
		if sl.x != nil {
			s.group.broken(sl.x, sl.gen, sl.try, now, want{server: int8(s.index + 1), tcp: true, bare: sl.flags&bareTry != 0})
		}
	default:
		s.refused(sl, c, msg, rtt, now)
	}
}

// learn notes an answer. How long it took by TCP says little of UDP.
func (s *server) learn(sl *slot, rtt, now time.Duration, ok bool) {
	if s.cfg.TCP || sl.flags&byTCP == 0 {
		s.sample(rtt, now)
	}
	s.alive(now, ok)
}

// refused goes on with a failing response.
func (s *server) refused(sl *slot, c class, msg []byte, rtt, now time.Duration) {
	s.count.failures.Add(1)
	by := refusedPenalty
	if c == failing && rcode(msg) != wire.Refused {
		by = servfailPenalty
	}
	s.punish(by, now)
	if sl.x == nil {
		return
	}
	if c == malformed {
		msg = nil
	}
	s.group.failed(sl, msg, rtt, now)
}

// lacksEDNS tells whether msg is how a server answers that does not know OPT. One
// that sends OPT itself does; without a question the response says nothing else.
func (s *server) lacksEDNS(sl *slot, msg []byte) bool {
	return sl.flags&withOPT != 0 && unfit(msg) && (binary.BigEndian.Uint16(msg[4:]) == 0 || !hasOPT(msg))
}

// noteEDNS remembers that only the query without OPT was answered, and forgets it
// when one with OPT is.
func (s *server) noteEDNS(sl *slot, now time.Duration) {
	switch {
	case sl.flags&bareTry != 0:
		s.bareUntil.Store(int64(now + forgetEDNS))
	case sl.flags&withOPT != 0 && s.bareUntil.Load() != 0:
		s.bareUntil.Store(0)
	}
}

// Drain makes the server of that name one that is asked only where no other is left,
// or, where on is false, one like the others. It is false where there is none.
func (g *Group) Drain(name string, on bool) (found bool) {
	for _, s := range g.servers {
		if s.cfg.Name == name {
			s.drained.Store(on)
			found = true
		}
	}
	return found
}

// Status tells what is known of each server, in the order of Config.Servers.
func (g *Group) Status(now time.Duration) []ServerStatus {
	all := make([]ServerStatus, 0, len(g.servers))
	for _, s := range g.servers {
		c := &s.count
		all = append(all, ServerStatus{
			Name: s.cfg.Name, Addr: s.cfg.Addr,
			RTT: time.Duration(s.srtt.Load()), P95: time.Duration(s.p95.Load()),
			Penalty: s.penaltyAt(now), Healthy: s.healthy(now), Drained: s.drained.Load(), NoEDNS: !s.speaksEDNS(now),
			Queries: c.queries.Load(), Answers: c.answers.Load(), Timeouts: c.timeouts.Load(),
			Failures: c.failures.Load(), Errors: c.errors.Load(),
			Truncated: c.truncated.Load(), TCPQueries: c.tcpQueries.Load(),
			Spoofs: Spoofs{
				WrongID: c.wrongID.Load(), WrongQuestion: c.wrongQuestion.Load(),
				Unexpected: c.unexpected.Load(), Duplicate: c.duplicate.Load(),
			},
			Sockets: int(c.sockets.Load()), Conns: int(c.conns.Load()), Opened: c.opened.Load(),
			Latency: c.latency.load(),
		})
	}
	return all
}
