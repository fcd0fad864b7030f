package policy

import (
	"context"
	"sync"

	"github.com/waymark-dns/waymark/internal/limit"
	"github.com/waymark-dns/waymark/internal/serve"
)

// Forks is work that no client waits for: copies of requests that go on behind
// the rule that made them. Their number is bounded; what finds no place is left
// undone, since the next request will want it again.
type Forks struct {
	places *limit.Shed
	ctx    context.Context // ends when the work is to be given up
	pool   sync.Pool       // of *fork
}

// NewForks makes places for so many. Work that has to wait ends with ctx.
func NewForks(ctx context.Context, places int) *Forks {
	return &Forks{places: limit.NewShed(places), ctx: ctx}
}

// fork is one copy, and its memory.
type fork struct {
	req   serve.Request
	set   *Set
	of    *Forks
	query [512]byte
	reply [4096]byte
}

// Run runs the rest of the program, behind the rule that r is at, for a copy of r.
// It does not wait. The wrappers that r has passed do not see the response.
func (f *Forks) Run(s *Set, r *serve.Request) {
	if len(r.Msg) > len(fork{}.query) || !f.places.Enter(true) {
		return
	}
	k, ok := f.pool.Get().(*fork)
	if !ok {
		k = &fork{of: f}
	}
	k.set = s
	r.Detach(&k.req, k.query[:], k.reply[:])
	k.req.Policy.Rule++
	k.req.Policy.Depth = 0
	k.req.Waker = k
	k.Wake()
}

// Len is how many copies are at work.
func (f *Forks) Len() int { return f.places.Len() }

// Wake is part of serve.Waker.
func (k *fork) Wake() {
	switch k.set.Start(&k.req) {
	case serve.Wait:
		go k.resumeLoop()
	case serve.Pending:
	default:
		k.done()
	}
}

// resumeLoop ends with the work, or with the context.
func (k *fork) resumeLoop() {
	if k.set.Resume(k.of.ctx, &k.req) != serve.Pending {
		k.done()
	}
}

func (k *fork) done() {
	k.req.Pending, k.req.Waker, k.set = nil, nil, nil
	f := k.of
	f.places.Leave()
	f.pool.Put(k)
}
