package cache

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// flightShards divides the flights, so that workers seldom want the same lock.
const flightShards = 64

// Patience is how long a client waits for the upstream while an expired answer
// is at hand (the client response timer of RFC 8767 §5).
const Patience = 1800 * time.Millisecond

// Flight is the work on one question that the cache cannot answer. It outlives
// the requests that wait for it: they join it, and may leave it with an expired
// answer. Whoever made it embeds it in what does the work.
type Flight struct {
	Key  Key // its name is the flight's own memory
	Born time.Duration

	owner any
	name  [wire.MaxName]byte
	id    uint64
	subs  []*serve.Request
	stale bool // someone waits who could have an expired answer

	// In the list of the shard, while somebody may be told that Patience is over.
	older, newer *Flight
	listed       bool
}

// Flights is the flights that are under way, by question.
type Flights struct {
	n      atomic.Int64
	shards [flightShards]flightShard
}

type flightShard struct {
	mu             sync.Mutex // guards what follows, and what is in the flights
	byID           map[uint64]*Flight
	oldest, newest *Flight
	_              [64]byte // no two shards on one cache line
}

// NewFlights makes an empty set.
func NewFlights() *Flights {
	f := &Flights{}
	for i := range f.shards {
		f.shards[i].byID = map[uint64]*Flight{}
	}
	return f
}

// Overdue is what Pending of a request is when Patience is over: it is to be
// answered with what has expired.
type Overdue struct{}

// Joined is what became of a request that wanted an answer.
type Joined uint8

// What Join says.
const (
	Leads   Joined = iota // the flight is new: whoever asked has to begin the work
	Waits                 // the flight was under way
	TooLate               // it has been under way for too long: r has something expired, and did not join
)

// Maker makes flights: owner is what the flight is embedded in.
type Maker interface {
	Make() (fl *Flight, owner any)
}

// Join makes r wait for the flight of k, where there is none for one that m
// makes; r.Pending is then the owner of the flight. When the work is done, End
// has r.
func (f *Flights) Join(k *Key, r *serve.Request, now time.Duration, m Maker) (owner any, j Joined) {
	id := k.id()
	s := &f.shards[id%flightShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if fl := s.byID[id]; fl != nil && fl.Key.same(k) {
		// One out of the list was looked at: nobody would come for r.
		if r.Expired && (now-fl.Born >= Patience || !fl.listed) {
			return fl.owner, TooLate
		}
		fl.add(r)
		return fl.owner, Waits
	}
	fl, owner := m.Make()
	fl.begin(k, id, owner, now)
	fl.add(r)
	if s.byID[id] == nil { // else another question has the number: it goes without being found
		s.byID[id] = fl
	}
	s.list(fl)
	f.n.Add(1)
	return owner, Leads
}

func (fl *Flight) begin(k *Key, id uint64, owner any, now time.Duration) {
	n := copy(fl.name[:], k.Name)
	fl.Key = *k
	fl.Key.Name = fl.name[:n]
	fl.id, fl.owner, fl.Born, fl.stale = id, owner, now, false
}

func (fl *Flight) add(r *serve.Request) {
	r.Pending = fl.owner
	fl.stale = fl.stale || r.Expired
	fl.subs = append(fl.subs, r)
}

// End ends a flight: nobody joins it any more. It appends the requests that wait
// to subs; the caller wakes them.
func (f *Flights) End(fl *Flight, subs []*serve.Request) []*serve.Request {
	s := &f.shards[fl.id%flightShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[fl.id] == fl {
		delete(s.byID, fl.id)
	}
	s.unlist(fl)
	f.n.Add(-1)
	subs = append(subs, fl.subs...)
	clear(fl.subs)
	fl.subs = fl.subs[:0]
	return subs
}

// Len is how many flights are under way.
func (f *Flights) Len() int { return int(f.n.Load()) }

// Tick wakes those who have waited for Patience and could have an expired answer.
// Their flights go on.
func (f *Flights) Tick(now time.Duration) {
	var subs []*serve.Request
	for i := range f.shards {
		subs = f.shards[i].overdue(now, subs)
	}
	for _, r := range subs {
		r.Waker.Wake()
	}
}

// overdue takes the requests out that Patience is over for. What is left waits
// for the end of its flight.
func (s *flightShard) overdue(now time.Duration, subs []*serve.Request) []*serve.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	for fl := s.oldest; fl != nil && now-fl.Born >= Patience; fl = s.oldest {
		s.unlist(fl)
		if !fl.stale {
			continue
		}
		kept := fl.subs[:0]
		for _, r := range fl.subs {
			if !r.Expired {
				kept = append(kept, r)
				continue
			}
			r.Pending = Overdue{}
			subs = append(subs, r)
		}
		clear(fl.subs[len(kept):])
		fl.subs = kept
	}
	return subs
}

// list puts fl, the newest, into the list.
func (s *flightShard) list(fl *Flight) {
	fl.older, fl.newer, fl.listed = s.newest, nil, true
	if s.newest != nil {
		s.newest.newer = fl
	} else {
		s.oldest = fl
	}
	s.newest = fl
}

func (s *flightShard) unlist(fl *Flight) {
	if !fl.listed {
		return
	}
	if fl.older != nil {
		fl.older.newer = fl.newer
	} else {
		s.oldest = fl.newer
	}
	if fl.newer != nil {
		fl.newer.older = fl.older
	} else {
		s.newest = fl.older
	}
	fl.older, fl.newer, fl.listed = nil, nil, false
}

// id is a number that tells keys apart, except for very few.
func (k *Key) id() uint64 {
	h := k.Hash
	h = mixed(h, uint64(k.Type)|uint64(k.Class)<<16|uint64(k.View)<<32)
	if k.CD {
		h = mixed(h, 1)
	}
	if k.Scope.IsValid() {
		a := k.Scope.Addr().As16()
		for i, b := range a {
			h = mixed(h, uint64(b)<<8|uint64(i))
		}
		h = mixed(h, uint64(k.Scope.Bits()))
	}
	return h
}

func mixed(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// same tells whether both name one question.
func (k *Key) same(o *Key) bool {
	return k.Hash == o.Hash && k.Type == o.Type && k.Class == o.Class && k.View == o.View && k.CD == o.CD &&
		k.Scope == o.Scope && wire.EqualFold(k.Name, o.Name)
}
