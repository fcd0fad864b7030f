package upstream

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Life of a socket. The limits are drawn for each, so that nobody can tell when a
// port is given up.
const (
	minAge, maxAge   = 30, 60 // seconds
	minUses, maxUses = 2000, 6000
	maxSpoofs        = 16 // then the socket's port is known to somebody
	placesTried      = 4
	minLingerers     = 16 // retired sockets of one server that may wait for late answers, or as many as its pool has
)

// pool is the UDP sockets towards one server. Each try takes a random place, so
// that its port cannot be foretold (RFC 5452 §9.2); a socket that is used up is
// replaced by one on another port.
type pool struct {
	places []atomic.Pointer[socket]

	mu      sync.Mutex // guards what follows
	retired []*socket  // a ring
	next    int
}

// linger keeps a retired socket open for late answers, and gives back the one that
// has to go for it.
func (p *pool) linger(k *socket) (out *socket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out = p.retired[p.next]
	p.retired[p.next] = k
	p.next = (p.next + 1) % len(p.retired)
	return out
}

// socket is a connected UDP socket: the kernel lets nothing through that does not
// come from the server's address and port.
type socket struct {
	server *server

	mu      sync.Mutex // guards what follows; end is used by nobody once closed is set
	end     endpoint
	out     egress.Batch
	table   table
	expires time.Duration
	uses    int // that are left
	spoofs  int
	retired bool // takes no new tries
	closed  bool
}

// outcome is what became of a try that was given to a socket or connection.
type outcome uint8

const (
	sent  outcome = iota
	spent         // it takes no more, ever
	full          // not now
	broke
)

// sendUDP gives the socket that the try was sent from, nil where there is none.
func (s *server) sendUDP(msg []byte, sl *slot, t egress.Throw) line {
	place := int(t.Place % uint32(len(s.udp.places)))
	var used *socket // that is to be replaced
	broken := 0
	for range placesTried {
		k := s.udp.places[place].Load()
		if k == nil || k == used {
			if k = s.renew(place, k, sl.sent); k == nil {
				return nil
			}
		}
		switch k.send(msg, sl, t.IDs) {
		case sent:
			return k
		case spent:
			k.retire(sl.sent)
			used = k
		case full:
			place = (place + 1) % len(s.udp.places)
		case broke:
			s.broke(sl.sent)
			used = k
			if broken++; broken > 1 {
				return nil
			}
		}
	}
	return nil
}

// renew puts a new socket in the place of old and gives the one that stands there
// then, nil where none can be opened.
func (s *server) renew(place int, old *socket, now time.Duration) *socket {
	k := &socket{server: s, uses: s.group.dice.Between(minUses, maxUses)}
	k.expires = now + time.Duration(s.group.dice.Between(minAge*1000, maxAge*1000))*time.Millisecond
	if err := s.group.mux.open(k); err != nil {
		s.broke(now)
		return nil
	}
	s.count.sockets.Add(1)
	s.count.opened.Add(1)
	p := &s.udp.places[place]
	if !p.CompareAndSwap(old, k) { // somebody was faster
		k.shut()
		return p.Load()
	}
	return k
}

// send sends one query from k.
func (k *socket) send(msg []byte, sl *slot, ids uint64) outcome {
	k.mu.Lock()
	if k.closed || k.retired || k.uses <= 0 || sl.sent >= k.expires {
		k.mu.Unlock()
		return spent
	}
	if !k.table.put(sl, ids) {
		k.mu.Unlock()
		return full
	}
	binary.BigEndian.PutUint16(msg, sl.id)
	err := k.end.sock.Write(msg)
	if err == nil {
		k.uses--
		k.mu.Unlock()
		return sent
	}
	k.table.remove(k.table.find(sl.id))
	if errors.Is(err, egress.ErrFull) {
		k.mu.Unlock()
		return full
	}
	all := k.close()
	k.mu.Unlock()
	k.end.close()
	// Later, not here: each of them asks elsewhere, and may meet the same.
	k.giveUp(all, tryBroken, sl.sent)
	return broke
}

// close takes k out of use and gives what waited on it. k.mu is held; the caller
// then closes k.end without it.
func (k *socket) close() []slot {
	k.closed, k.retired = true, true
	k.server.count.sockets.Add(-1)
	return k.table.drain()
}

// shut closes k and gives what waited on it.
func (k *socket) shut() []slot {
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return nil
	}
	all := k.close()
	k.mu.Unlock()
	k.end.close()
	return all
}

// giveUp tells the exchanges of tries that are no more, in the next Tick.
func (k *socket) giveUp(all []slot, kind eventKind, now time.Duration) {
	for i := range all {
		if sl := &all[i]; sl.x != nil {
			k.server.group.add(&event{due: now, x: sl.x, gen: sl.gen, id: sl.id, try: sl.try, kind: kind})
		}
	}
}

// retire takes k out of use. It stays open as long as tries wait on it, until no
// exchange can be theirs any more or too many other sockets do so.
func (k *socket) retire(now time.Duration) {
	k.mu.Lock()
	if k.retired {
		k.mu.Unlock()
		return
	}
	k.retired = true
	idle := k.table.n == 0
	if idle {
		k.close()
	}
	k.mu.Unlock()
	if idle {
		k.end.close()
		return
	}
	g := k.server.group
	g.add(&event{due: now + g.cfg.Timeout, line: k, kind: lineDue})
	if old := k.server.udp.linger(k); old != nil {
		old.giveUp(old.shut(), tryLost, now)
	}
}

// suspect retires k: a time-out may mean that its address is no longer ours, or
// that a router on the way has forgotten it.
func (k *socket) suspect(now time.Duration) { k.retire(now) }

// tend closes k, which was retired long enough ago.
func (k *socket) tend(now time.Duration) { k.giveUp(k.shut(), tryLost, now) }

func (k *socket) owner() *server { return k.server }

func (k *socket) waits(id uint16, serial uint32) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.table.waits(id, serial)
}

// verdict is what a message is to the table it came to.
type verdict uint8

const (
	anAnswer verdict = iota
	wrongID
	wrongQuestion
	unexpected
	duplicate
)

// match finds the try that msg answers and takes it out of the table. A response
// without a question is taken where it can only mean that the server does not know
// OPT; all it brings about is the query without.
func (t *table) match(msg []byte, q *questions) (sl slot, v verdict) {
	if len(msg) < wire.HeaderSize || msg[2]&0xf8 != 0x80 { // QR and opcode
		return sl, unexpected
	}
	id := binary.BigEndian.Uint16(msg)
	i := t.find(id)
	if i < 0 {
		if t.wasAnswered(id) {
			return sl, duplicate
		}
		return sl, wrongID
	}
	s := &t.slots[i]
	switch binary.BigEndian.Uint16(msg[4:]) {
	case 0:
		if s.flags&withOPT != 0 && unfit(msg) {
			return t.answered(i), anAnswer
		}
	case 1:
		if len(msg) >= int(s.end) && q.hash(msg, int(s.end)) == s.hash {
			return t.answered(i), anAnswer
		}
	}
	return sl, wrongQuestion
}

// catch is what a datagram brought about.
type catch struct {
	slot    slot
	verdict verdict
	moved   []slot // tries that go on by TCP
	shut    bool   // the socket's end is to be closed
}

// catch finds what msg is. k.mu is held.
func (k *socket) catch(msg []byte) (c catch) {
	c.slot, c.verdict = k.table.match(msg, &k.server.group.questions)
	switch c.verdict {
	case anAnswer:
		if k.retired && k.table.n == 0 {
			k.close()
			c.shut = true
		}
	case duplicate:
	default:
		if k.table.n == 0 {
			break
		}
		if k.spoofs++; k.spoofs > maxSpoofs {
			c.moved = k.close()
			c.shut = true
		}
	}
	return c
}

// handle does what a datagram asks for. No lock is held.
func (k *socket) handle(c *catch, msg []byte, now time.Duration) {
	if c.shut {
		k.end.close()
	}
	k.server.count.note(c.verdict)
	if c.verdict == anAnswer {
		k.server.answered(&c.slot, msg, now)
	}
	for i := range c.moved {
		if sl := &c.moved[i]; sl.x != nil {
			w := want{server: int8(k.server.index + 1), tcp: true, bare: sl.flags&bareTry != 0}
			k.server.group.broken(sl.x, sl.gen, sl.try, now, w)
		}
	}
}

// note counts what was no answer.
func (c *counters) note(v verdict) {
	switch v {
	case wrongID:
		c.wrongID.Add(1)
	case wrongQuestion:
		c.wrongQuestion.Add(1)
	case unexpected:
		c.unexpected.Add(1)
	case duplicate:
		c.duplicate.Add(1)
	}
}

// failed closes k after an error of its endpoint: what waited on it goes on
// elsewhere at once. No lock is held.
func (k *socket) failed(all []slot, now time.Duration) {
	k.end.close()
	s := k.server
	s.broke(now)
	for i := range all {
		if sl := &all[i]; sl.x != nil {
			s.group.broken(sl.x, sl.gen, sl.try, now, want{})
		}
	}
}

// abandon closes k with its group.
func (k *socket) abandon() {
	all := k.shut()
	for i := range all {
		if sl := &all[i]; sl.x != nil {
			k.server.group.fail(sl.x, sl.gen, ErrClosed)
		}
	}
}
