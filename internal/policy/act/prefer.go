package act

import (
	"sync"
	"time"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Prefer answers questions for addresses of one family with nothing, where the name
// has addresses of the other.
type Prefer struct {
	Type, Other uint16 // A and AAAA, or the other way round
	run         *policy.Runner
	now         func() time.Duration
	known       *recent
	nodata      wire.RRset
}

const (
	preferNames = 65536                  // names that are remembered
	preferLife  = time.Hour              // how long they are
	preferWait  = 500 * time.Millisecond // for the probe, once the answer is there
)

func makePrefer(typ, other uint16) func(*Env, string) (any, error) {
	return func(e *Env, _ string) (any, error) {
		return &Prefer{Type: typ, Other: other, run: e.Run, now: e.Now, known: newRecent(preferNames, preferLife), nodata: step.NodataSOA()}, nil
	}
}

// Start is part of policy.Starter. What is no question for addresses goes on, and
// so does one for the family that is preferred: After learns from it.
func (a *Prefer) Start(r *serve.Request) policy.Next {
	if d, ok := r.Pending.(*duel); ok {
		r.Pending = nil
		return d.finish(r)
	}
	f := policy.NewFrame(r)
	if f == nil {
		return policy.Fail
	}
	f.A = 0
	switch {
	case r.Ask.Class != wire.ClassIN:
		return policy.Go
	case r.Ask.Type == a.Type:
		f.A = 1
		return policy.Go
	case r.Ask.Type != a.Other:
		return policy.Go
	case a.known.has(r.Ask.Labels.Hash[0], a.now()):
		return a.nothing(r)
	}
	d := &duel{of: a, parent: r}
	d.begin(r)
	if !d.wait(r) {
		return d.finish(r)
	}
	return policy.Pend
}

// After is part of policy.Finisher.
func (a *Prefer) After(r *serve.Request, f *serve.Frame) {
	if f.A == 1 && hasType(r.Out, a.Type) {
		a.known.add(r.Ask.Labels.Hash[0], a.now())
	}
}

// nothing answers that there are no addresses of this family, and ends the way of
// the request: the rules behind have nothing to say to it.
func (a *Prefer) nothing(r *serve.Request) policy.Next {
	r.Empty()
	r.Note.Source = serve.SourceLocal
	r.Reply.Add(wire.Authority, r.Ask.Name, &a.nodata, nil)
	r.Finish(wire.NoError)
	return policy.Stop
}

// hasType tells whether a response has a record of that type in its answer.
func hasType(msg []byte, typ uint16) bool {
	var resp wire.Response
	if msg == nil || !resp.Read(msg) {
		return false
	}
	var rec wire.Record
	for resp.Next(&rec) && rec.Section == wire.Answer {
		if rec.Type == typ {
			return true
		}
	}
	return false
}

// duel runs the rules behind for the question and, beside it, for the type that is
// preferred.
type duel struct {
	of     *Prefer
	parent *serve.Request
	timer  *time.Timer

	mu              sync.Mutex // guards what follows
	branches        [2]*policy.Branch
	over            [2]bool
	block           bool // the name has what is preferred
	done, timed     bool
	waiting, closed bool
}

// The branches of a duel.
const (
	original = iota
	probe
)

func (d *duel) begin(r *serve.Request) {
	for i := range d.branches {
		b := d.of.run.Rest(r, dueller{d, i})
		if b == nil {
			d.ended(i, nil)
			continue
		}
		if i == probe {
			b.Req.Ask.Type = d.of.Type
		}
		d.mu.Lock()
		d.branches[i] = b
		d.mu.Unlock()
	}
	for _, b := range d.branches { // the array as it is now: they may end at once
		if b != nil {
			b.Start()
		}
	}
}

type dueller struct {
	d *duel
	i int
}

// Joined is part of policy.Joiner.
func (j dueller) Joined(b *policy.Branch) { j.d.ended(j.i, b) }

// ended notes the end of a branch.
func (d *duel) ended(i int, b *policy.Branch) {
	d.mu.Lock()
	d.over[i] = true
	if i == probe && b != nil && !b.Req.Policy.Failed && hasType(b.Req.Out, d.of.Type) {
		d.block = true
		d.of.known.add(d.parentHash(b), d.of.now())
	}
	if d.closed {
		d.branches[i] = nil
		d.mu.Unlock()
		if b != nil {
			b.Release()
		}
		return
	}
	if i == original && !d.over[probe] && !d.block {
		d.timer = time.AfterFunc(preferWait, d.passed)
	}
	wake := d.settle()
	d.mu.Unlock()
	if wake {
		d.parent.Waker.Wake()
	}
}

// parentHash is that of the name, which the branch has as well: the parent may be
// gone.
func (d *duel) parentHash(b *policy.Branch) uint64 { return b.Req.Ask.Labels.Hash[0] }

func (d *duel) passed() {
	d.mu.Lock()
	d.timed = true
	wake := d.settle()
	d.mu.Unlock()
	if wake {
		d.parent.Waker.Wake()
	}
}

// settle tells whether the parent is to be woken. d.mu is held.
func (d *duel) settle() bool {
	if d.done || !d.block && !(d.over[original] && (d.over[probe] || d.timed)) {
		return false
	}
	d.done = true
	if d.timer != nil {
		d.timer.Stop()
	}
	wake := d.waiting
	d.waiting = false
	return wake
}

func (d *duel) wait(r *serve.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done {
		return false
	}
	r.Pending, d.waiting = d, true
	return true
}

// finish answers with nothing, or with the original answer.
func (d *duel) finish(r *serve.Request) policy.Next {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	next := policy.Stop // the branch has run all that comes behind
	b := d.branches[original]
	switch {
	case d.block:
		next = d.of.nothing(r)
	case b == nil || b.Req.Policy.Failed:
		next = policy.Fail
	case b.Req.Out == nil:
		r.Out = nil
		r.Reply.Restart()
	default:
		adopt(r, &b.Req)
	}
	for i, b := range d.branches {
		if b != nil && d.over[i] {
			d.branches[i] = nil
			b.Release()
		}
	}
	return next
}

// recent is numbers that were added lately: a bounded table that forgets the
// oldest.
type recent struct {
	mu   sync.Mutex // guards what follows
	life time.Duration
	at   map[uint64]time.Duration
	ring []uint64
	next int
}

func newRecent(places int, life time.Duration) *recent {
	return &recent{life: life, at: make(map[uint64]time.Duration), ring: make([]uint64, places)}
}

func (t *recent) add(n uint64, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.at[n]; !ok {
		delete(t.at, t.ring[t.next])
		t.ring[t.next] = n
		t.next = (t.next + 1) % len(t.ring)
	}
	t.at[n] = now
}

func (t *recent) has(n uint64, now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.at[n]
	return ok && now-at < t.life
}
