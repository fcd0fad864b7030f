package upstream

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
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
	case !k.out.Room(len(msg)) || !k.table.put(sl, ids):
		return full
	}
	binary.BigEndian.PutUint16(msg, sl.id)
	if k.out.Len() == 0 {
		k.server.group.env.Outbox.add(k)
	}
	k.out.Add(msg)
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
		k.out.Clear()
		k.mu.Unlock()
		return
	}
	k.out.Sort()
	err := k.end.sock.WriteBatch(&k.out)
	if err != nil && !errors.Is(err, egress.ErrFull) { // it may be of an earlier message, and is over then
		err = k.end.sock.WriteBatch(&k.out)
	}
	full := errors.Is(err, egress.ErrFull)
	var lost []slot
	switch {
	case full:
		lost = k.unsent()
	case err != nil:
		lost = k.close()
	}
	k.out.Clear()
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
	for i := k.out.Sent(); i < k.out.Len(); i++ {
		if at := k.table.find(binary.BigEndian.Uint16(k.out.At(i))); at >= 0 {
			lost = append(lost, k.table.slots[at])
			k.table.remove(at)
		}
	}
	return lost
}

// gatherUDP gives the socket that will send the try when the batch ends, nil where
// it has to be sent at once.
func (s *server) gatherUDP(msg []byte, sl *slot, t egress.Throw) line {
	k := s.filling.Load()
	for range placesTried {
		if k == nil {
			place := int(t.Place % uint32(len(s.udp.places)))
			if k = s.udp.places[place].Load(); k == nil || k.spentAt(sl.sent) {
				if k = s.replace(place, k, sl.sent); k == nil {
					return nil
				}
			}
			s.filling.Store(k)
		}
		switch k.gather(msg, sl, t.IDs) {
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
