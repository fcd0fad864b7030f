package policy

import (
	"context"
	"sync"

	"github.com/waymark-dns/waymark/internal/limit"
	"github.com/waymark-dns/waymark/internal/serve"
)

// Forks is the places for branches: copies of requests that run part of the
// policy for themselves. Their number is bounded.
type Forks struct {
	places *limit.Shed
	ctx    context.Context // ends when the work is to be given up
	pool   sync.Pool       // of *Branch
}

// NewForks makes places for so many. Work that has to wait ends with ctx.
func NewForks(ctx context.Context, places int) *Forks {
	return &Forks{places: limit.NewShed(places), ctx: ctx}
}

// Len is how many branches there are.
func (f *Forks) Len() int { return f.places.Len() }

// Runner makes branches that run the programs of one configuration.
type Runner struct {
	Forks *Forks
	Set   *Set // set before the first branch is made
}

// Joiner is told when a branch has ended.
type Joiner interface {
	// Joined is called once, from any goroutine, perhaps within Start. b.Req has the
	// response, or none (Out is nil); b.Req.Policy.Failed tells whether a rule could
	// not do its work. Whoever is told gives b back with Release when it has seen
	// enough. It must not wait.
	Joined(b *Branch)
}

// Branch is one copy of a request, and its memory.
type Branch struct {
	Req    serve.Request
	run    *Runner
	joiner Joiner // nil: nobody wants to know
	query  [512]byte
	reply  [4096]byte
}

// Rest is a branch that runs what comes behind the rule that r is at: the rest of
// its program, and where jumps go back to. The wrappers that r has passed do not
// see its response. It is nil where there is no place.
func (n *Runner) Rest(r *serve.Request, j Joiner) *Branch {
	b := n.branch(r, j)
	if b == nil {
		return nil
	}
	c, from := &b.Req.Policy, &r.Policy
	c.Rule++
	c.Jumps = from.Jumps - from.Base
	copy(c.Returns[:c.Jumps], from.Returns[from.Base:from.Jumps])
	return b
}

// At is a branch that runs a program from its beginning, with nothing behind it. It
// is nil where there is no place.
func (n *Runner) At(r *serve.Request, program uint16, j Joiner) *Branch {
	b := n.branch(r, j)
	if b != nil {
		b.Req.Policy.Place = serve.Place{Program: program}
		b.Req.Policy.Jumps = 0
	}
	return b
}

func (n *Runner) branch(r *serve.Request, j Joiner) *Branch {
	f := n.Forks
	if len(r.Msg) > len(Branch{}.query) || !f.places.Enter(true) {
		return nil
	}
	b, ok := f.pool.Get().(*Branch)
	if !ok {
		b = &Branch{}
	}
	b.run, b.joiner = n, j
	r.Detach(&b.Req, b.query[:], b.reply[:])
	c := &b.Req.Policy
	c.Depth, c.Base, c.Branch, c.Matched = 0, 0, true, false
	b.Req.Waker = b
	b.Req.Trace = r.Trace.Fork()
	return b
}

// Start begins; it does not wait.
func (b *Branch) Start() { b.start() }

// Background runs the rest of the program for a copy of r that nobody waits for.
// Where there is no place it is left undone: the next request will want it again.
func (n *Runner) Background(r *serve.Request) {
	if b := n.Rest(r, nil); b != nil {
		b.Req.Empty()
		b.Req.Trace = nil
		b.Start()
	}
}

// Wake is part of serve.Waker.
func (b *Branch) Wake() {
	b.Req.Gather = false // the batch may be over
	b.start()
}

func (b *Branch) start() {
	switch b.run.Set.Start(&b.Req) {
	case serve.Wait:
		go b.resumeLoop()
	case serve.Pending:
	default:
		b.done()
	}
}

// resumeLoop ends with the work, or with the context.
func (b *Branch) resumeLoop() {
	if b.run.Set.Resume(b.run.Forks.ctx, &b.Req) != serve.Pending {
		b.done()
	}
}

func (b *Branch) done() {
	if b.joiner == nil {
		b.Release()
		return
	}
	b.joiner.Joined(b)
}

// Release gives the branch's memory back; nobody may touch it from then on.
func (b *Branch) Release() {
	f := b.run.Forks
	b.Req.Pending, b.Req.Waker, b.Req.Trace, b.run, b.joiner = nil, nil, nil, nil, nil
	f.places.Leave()
	f.pool.Put(b)
}
