package listen

import (
	"context"
	"sync/atomic"

	"github.com/waymark-dns/waymark/internal/limit"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/stats"
)

// knownClients is how many clients are remembered as known, for the day when
// places are short.
const knownClients = 1 << 15

// Parked bounds the requests that wait at once, over all listeners, and counts
// those of one listener or of all. Clients that were answered lately have places
// of their own.
type Parked struct {
	of    *Parked // all listeners together; nil for that one itself
	shed  *limit.Shed
	known *limit.Known
	n     atomic.Int64
	ctx   context.Context
	stop  context.CancelFunc
	idle  chan struct{} // gets a token whenever the last one has ended
}

// NewParked makes room for places requests.
func NewParked(places int) *Parked {
	p := &Parked{shed: limit.NewShed(places), known: limit.NewKnown(knownClients), idle: make(chan struct{}, 1)}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Of counts the requests of one listener; they have their places in p.
func (p *Parked) Of() *Parked {
	o := &Parked{of: p, shed: p.shed, known: p.known, idle: make(chan struct{}, 1)}
	o.ctx, o.stop = context.WithCancel(p.ctx)
	return o
}

// enter takes a place for r; false where all are taken that its client may have.
func (p *Parked) enter(r *serve.Request, b *stats.Batch) bool {
	known := r.Note.Trusted || r.Peer.Proto.Stream() || p.known.Has(r.Client.Addr(), r.At)
	if !p.shed.Enter(known) {
		b[stats.Shed]++
		if !known {
			b[stats.ShedUnknown]++
		}
		return false
	}
	b[stats.Parked]++
	for ; p != nil; p = p.of {
		p.n.Add(1)
	}
	return true
}

func (p *Parked) leave() {
	p.shed.Leave()
	for ; p != nil; p = p.of {
		if p.n.Add(-1) == 0 {
			select {
			case p.idle <- struct{}{}:
			default:
			}
		}
	}
}

// Len is how many requests wait.
func (p *Parked) Len() int { return int(p.n.Load()) }

// Wait returns when no request waits any more, or when ctx ends; then those that
// still wait are told to give up.
func (p *Parked) Wait(ctx context.Context) {
	for p.n.Load() > 0 {
		select {
		case <-p.idle:
		case <-ctx.Done():
			p.stop()
			return
		}
	}
}

// Room that a waiting request has from the start: most queries and responses fit.
const (
	parkedQuery = 512
	parkedReply = 4096
)

// parking is a request that waits, and its memory. It is used again for another
// request when it has ended.
type parking struct {
	req   serve.Request
	h     serve.Handler
	p     *Parked
	end   func(done bool) // sends the response, or counts that there is none; gives the memory back
	query [parkedQuery]byte
	reply [parkedReply + lengthSize]byte // room for the length in front
}

// park takes r over and begins. Its place has been taken.
func (k *parking) park(p *Parked, h serve.Handler, r *serve.Request) {
	k.p, k.h = p, h
	msg := k.query[:]
	if len(r.Msg) > len(msg) {
		msg = make([]byte, len(r.Msg))
	}
	r.Detach(&k.req, msg, k.reply[lengthSize:])
	k.req.Waker = k
	k.start()
}

// Wake is part of serve.Waker.
func (k *parking) Wake() {
	k.req.Gather = false // the batch may be over
	k.start()
}

func (k *parking) start() {
	switch k.h.Start(&k.req) {
	case serve.Done:
		k.end(true)
	case serve.Drop:
		k.end(false)
	case serve.Wait:
		go k.resumeLoop()
	}
}

// resumeLoop waits in a goroutine of its own. It ends by itself, within the time
// that its handler's steps take; Parked waits for it.
func (k *parking) resumeLoop() {
	switch k.h.Resume(k.p.ctx, &k.req) {
	case serve.Done:
		k.end(true)
	case serve.Drop:
		k.end(false)
	}
}

// ended forgets what the request held, so that it can be collected.
func (k *parking) ended() {
	p := k.p
	k.req.Pending, k.req.Waker, k.h, k.p = nil, nil, nil, nil
	p.leave()
}
