package policy

import (
	"context"
	"testing"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// pender waits for its Waker, which the test calls.
type pender struct {
	*trail
	waiting []*serve.Request
}

func (p *pender) Start(r *serve.Request) Next {
	if r.Pending == nil {
		p.note("begin")
		r.Pending = p
		p.waiting = append(p.waiting, r)
		return Pend
	}
	r.Pending = nil
	p.note("take up")
	r.Finish(wire.NXDomain)
	return Stop
}

// woken is a Waker that the test sees.
type woken struct{ n int }

func (w *woken) Wake() { w.n++ }

func TestPending(t *testing.T) {
	p := new(trail)
	pend := &pender{trail: p}
	s := &Set{Programs: []Program{{Rules: []Rule{
		{Do: part{trail: p, name: "a"}, After: part{trail: p, name: "a"}},
		{If: []Matcher{part{trail: p, name: "yes", yes: true}}, Start: pend},
	}}}}
	r := request(t)
	if got := s.Serve(r); got != serve.Wait {
		t.Fatalf("Serve says %d", got)
	}
	r = detach(r)
	r.Waker = &woken{}
	if got := s.Start(r); got != serve.Pending || r.Pending == nil {
		t.Fatalf("Start says %d", got)
	}
	if got := s.Start(r); got != serve.Done || r.Reply.Rcode() != wire.NXDomain || r.Pending != nil {
		t.Fatalf("Start says %d behind the waking", got)
	}
	want := []string{"do a", "match yes", "begin", "take up", "after a, frame of 0, 0 records"}
	if len(p.seen) != len(want) {
		t.Errorf("happened\n%q, want\n%q", p.seen, want)
	}
	for i := range want {
		if p.seen[i] != want[i] {
			t.Errorf("happened\n%q, want\n%q", p.seen, want)
			break
		}
	}
}

// What neither wakes nor is done at once needs a goroutine: Start says so, and
// Resume goes on.
func TestStartNeedsGoroutine(t *testing.T) {
	p := new(trail)
	s := &Set{Programs: []Program{{Rules: []Rule{{Wait: part{trail: p, name: "w", next: Stop}}}}}}
	r := detach(request(t))
	if got := s.Start(r); got != serve.Wait {
		t.Fatalf("Start says %d", got)
	}
	if got := s.Resume(context.Background(), r); got != serve.Done {
		t.Fatalf("Resume says %d", got)
	}
}

// taker is a wrapper that takes the response away.
type taker struct{}

func (taker) Do(*serve.Request) Next                 { return Go }
func (taker) After(r *serve.Request, _ *serve.Frame) { r.Policy.Silent = true }

func TestWrapperTakesResponse(t *testing.T) {
	s := &Set{Programs: []Program{{Rules: []Rule{
		{Do: taker{}, After: taker{}}, {Do: part{trail: new(trail), name: "a", next: Stop}},
	}}}}
	if got := s.Serve(request(t)); got != serve.Drop {
		t.Errorf("Serve says %d, want that nothing is sent", got)
	}
}

func TestForks(t *testing.T) {
	p := new(trail)
	pend := &pender{trail: p}
	run := &Runner{}
	s := &Set{Programs: []Program{{Rules: []Rule{
		{Do: part{trail: p, name: "wrap"}, After: part{trail: p, name: "wrap"}},
		{Do: runner{func(r *serve.Request) { run.Background(r); run.Background(r); run.Background(r) }}},
		{Start: pend},
	}}}}
	f := NewForks(t.Context(), 2)
	run.Forks, run.Set = f, s
	r := request(t)
	if got := s.Serve(r); got != serve.Done || r.Reply.Rcode() != wire.NoError {
		t.Fatalf("Serve says %d, code %v", got, r.Reply.Rcode())
	}
	if len(pend.waiting) != 2 || f.Len() != 2 {
		t.Fatalf("%d copies wait, %d are counted; want 2, the places there are", len(pend.waiting), f.Len())
	}
	seen := len(p.seen)
	for _, w := range pend.waiting {
		if &w.Msg[0] == &r.Msg[0] || w.Ask.Name.String() != "www.example." {
			t.Error("a copy is none")
		}
		w.Waker.Wake()
	}
	if f.Len() != 0 {
		t.Errorf("%d copies are left", f.Len())
	}
	if got := p.seen[seen:]; len(got) != 2 || got[0] != "take up" || got[1] != "take up" {
		t.Errorf("the copies did %q; no wrapper may see them", got)
	}
}

// runner answers, and does something with the request.
type runner struct{ do func(r *serve.Request) }

func (a runner) Do(r *serve.Request) Next {
	r.Finish(wire.NoError)
	a.do(r)
	return Stop
}
