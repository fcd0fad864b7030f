package upstream

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Outbox keeps the UDP queries of Exchanges with Gather until Flush, so that those
// of a batch that go to one server leave from one socket, and as few messages to
// the kernel. The socket of each batch is a random one. All groups of a server may
// share an Outbox; its methods may be called by any goroutine.
type Outbox struct {
	some atomic.Bool // there is something to flush

	mu   sync.Mutex // guards list
	list []*socket
	free []*socket // list before the last Flush, empty
}

// Limits of what one socket gathers: the kernel cuts one message into 64 at the
// most, and takes less than 64 KiB.
const (
	maxGathered      = 64
	maxGatheredBytes = 32 << 10
)

// gathered is the queries that a socket is to send, one behind the other.
type gathered struct {
	octets []byte
	ends   []uint16 // of each query in octets
	order  [maxGathered]uint8
	done   int // how many have been sent, in that order
}

func (g *gathered) add(msg []byte) {
	g.order[len(g.ends)] = uint8(len(g.ends))
	g.octets = append(g.octets, msg...)
	g.ends = append(g.ends, uint16(len(g.octets)))
}

// room tells whether another query of so many octets may be added.
func (g *gathered) room(octets int) bool {
	return len(g.ends) < maxGathered && len(g.octets)+octets <= maxGatheredBytes
}

// at is the query with that place in the order.
func (g *gathered) at(i int) []byte {
	n, start := g.order[i], uint16(0)
	if n > 0 {
		start = g.ends[n-1]
	}
	return g.octets[start:g.ends[n]]
}

func (g *gathered) clear() { g.octets, g.ends, g.done = g.octets[:0], g.ends[:0], 0 }

// sort orders the queries, the longest first: which goes first is the same to
// everybody, and those of one length can be one message.
func (g *gathered) sort() {
	size := func(n uint8) int {
		if n == 0 {
			return int(g.ends[0])
		}
		return int(g.ends[n] - g.ends[n-1])
	}
	slices.SortFunc(g.order[:len(g.ends)], func(a, b uint8) int { return size(b) - size(a) })
}

// add notes that k has something to send.
func (o *Outbox) add(k *socket) {
	o.mu.Lock()
	o.list = append(o.list, k)
	o.mu.Unlock()
	o.some.Store(true)
}

// Flush sends what was gathered. It does not wait.
func (o *Outbox) Flush() {
	if !o.some.Load() {
		return
	}
	o.mu.Lock()
	o.some.Store(false)
	list := o.list
	o.list, o.free = o.free, nil
	o.mu.Unlock()
	for i, k := range list {
		list[i] = nil
		k.flush()
	}
	o.mu.Lock()
	o.free = list[:0]
	o.mu.Unlock()
}

// gather is send for a query that may wait for the batch to end.
func (k *socket) gather(msg []byte, sl *slot, ids uint64) outcome {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed || k.retired || k.uses <= 0 || sl.sent >= k.expires:
		return spent
	case !k.out.room(len(msg)) || !k.table.put(sl, ids):
		return full
	}
	binary.BigEndian.PutUint16(msg, sl.id)
	if len(k.out.ends) == 0 {
		k.server.group.env.Outbox.add(k)
	}
	k.out.add(msg)
	k.uses--
	return sent
}

// flush sends what k has gathered. What the kernel has no room for is as lost as
// what the network drops; after an error all that waits on k goes on elsewhere.
func (k *socket) flush() {
	s := k.server
	s.filling.CompareAndSwap(k, nil)
	k.mu.Lock()
	if k.closed { // and has given up what waited on it
		k.out.clear()
		k.mu.Unlock()
		return
	}
	k.out.sort()
	err := k.end.writeAll(&k.out)
	if err != nil && !errors.Is(err, errFull) { // it may be of an earlier message, and is over then
		err = k.end.writeAll(&k.out)
	}
	full := errors.Is(err, errFull)
	var lost []slot
	switch {
	case full:
		lost = k.unsent()
	case err != nil:
		lost = k.close()
	}
	k.out.clear()
	k.mu.Unlock()
	if err == nil {
		return
	}
	now := s.group.env.Now()
	if full {
		k.giveUp(lost, tryLost, now)
	} else {
		k.failed(lost, now)
	}
}

// unsent takes the tries that have been gathered and not sent out of the table. k.mu
// is held.
func (k *socket) unsent() (lost []slot) {
	for i := k.out.done; i < len(k.out.ends); i++ {
		if at := k.table.find(binary.BigEndian.Uint16(k.out.at(i))); at >= 0 {
			lost = append(lost, k.table.slots[at])
			k.table.remove(at)
		}
	}
	return lost
}

// gatherUDP gives the socket that will send the try when the batch ends, nil where
// it has to be sent at once.
func (s *server) gatherUDP(msg []byte, sl *slot, t throw) line {
	k := s.filling.Load()
	for range placesTried {
		if k == nil {
			place := int(t.place % uint32(len(s.udp.places)))
			if k = s.udp.places[place].Load(); k == nil || k.spentAt(sl.sent) {
				if k = s.replace(place, k, sl.sent); k == nil {
					return nil
				}
			}
			s.filling.Store(k)
		}
		switch k.gather(msg, sl, t.ids) {
		case sent:
			return k
		case spent:
			s.filling.CompareAndSwap(k, nil)
			k = nil
		case full:
			s.filling.CompareAndSwap(k, nil)
			return nil
		}
	}
	return nil
}

// spentAt tells whether k takes no more tries.
func (k *socket) spentAt(now time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed || k.retired || k.uses <= 0 || now >= k.expires
}

// replace retires k, where there is one, and puts a new socket in its place.
func (s *server) replace(place int, k *socket, now time.Duration) *socket {
	if k != nil {
		k.retire(now)
	}
	return s.renew(place, k, now)
}
