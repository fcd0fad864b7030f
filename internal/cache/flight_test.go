package cache

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// passenger is a request that counts how often it is woken.
type passenger struct {
	serve.Request
	wakes atomic.Int32
	on    func(p *passenger)
}

func (p *passenger) Wake() {
	p.wakes.Add(1)
	if p.on != nil {
		p.on(p)
	}
}

func newPassenger(expired bool) *passenger {
	p := &passenger{}
	p.Waker, p.Expired = p, expired
	return p
}

// plane is what a flight is embedded in.
type plane struct {
	Flight
	number int
}

// hangar makes planes.
type hangar struct{ made int }

func (h *hangar) Make() (*Flight, any) {
	h.made++
	p := &plane{number: h.made}
	return &p.Flight, p
}

func key(t testing.TB, name string, with ...func(*Key)) *Key {
	t.Helper()
	n, err := wire.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	k := &Key{Name: n, Hash: wire.HashName(n), Type: wire.TypeA, Class: wire.ClassIN}
	for _, f := range with {
		f(k)
	}
	return k
}

// woken checks that a request was woken so often.
func (p *passenger) woken(t testing.TB, want int32) {
	t.Helper()
	if got := p.wakes.Load(); got != want {
		t.Errorf("woken %d times, want %d", got, want)
	}
}

func TestFlight(t *testing.T) {
	f, h := NewFlights(), &hangar{}
	k := key(t, "www.example.")
	lead, follow, late := newPassenger(false), newPassenger(false), newPassenger(false)
	owner, j := f.Join(k, &lead.Request, 0, h)
	if j != Leads || f.Len() != 1 || lead.Pending != owner || owner.(*plane).number != 1 {
		t.Fatalf("the first joins as %d, waits for %v, %d flights", j, lead.Pending, f.Len())
	}
	k.Name[1] = 'x' // the caller's memory is used for something else
	again, j := f.Join(key(t, "www.example."), &follow.Request, time.Hour, h)
	if j != Waits || again != owner || follow.Pending != owner || h.made != 1 || f.Len() != 1 {
		t.Fatalf("the second joins as %d, waits for %v, %d flights", j, follow.Pending, f.Len())
	}
	fl := &owner.(*plane).Flight
	if fl.Key.Name.String() != "www.example." || fl.Born != 0 {
		t.Errorf("flight of %s, born at %v", fl.Key.Name, fl.Born)
	}
	first := newPassenger(false)
	subs := f.End(fl, []*serve.Request{&first.Request})
	if !slices.Equal(subs, []*serve.Request{&first.Request, &lead.Request, &follow.Request}) || f.Len() != 0 {
		t.Errorf("End gives %d requests, and %d flights are left", len(subs), f.Len())
	}
	lead.woken(t, 0) // that is the caller's task
	if owner, j = f.Join(key(t, "www.example."), &late.Request, time.Hour, h); j != Leads || h.made != 2 || late.Pending != owner {
		t.Errorf("the next joins as %d: what has ended goes on", j)
	}
	if again := f.End(&owner.(*plane).Flight, nil); len(again) != 1 {
		t.Errorf("End gives %d requests, want 1", len(again))
	}
}

// Questions that differ in anything but letters have flights of their own.
func TestFlightKeys(t *testing.T) {
	net := netip.MustParsePrefix
	for _, c := range []struct {
		name  string
		other *Key
		merge bool
	}{
		{"the same", key(t, "www.example."), true},
		{"letters", key(t, "WwW.EXAMPLE."), true},
		{"name", key(t, "ww.example."), false},
		{"type", key(t, "www.example.", func(k *Key) { k.Type = wire.TypeAAAA }), false},
		{"class", key(t, "www.example.", func(k *Key) { k.Class = wire.ClassCH }), false},
		{"view", key(t, "www.example.", func(k *Key) { k.View = 1 << 16 }), false},
		{"CD", key(t, "www.example.", func(k *Key) { k.CD = true }), false},
		{"scope", key(t, "www.example.", func(k *Key) { k.Scope = net("192.0.2.0/24") }), false},
		{"a scope of everyone is an option that is sent", key(t, "www.example.", func(k *Key) { k.Scope = net("0.0.0.0/0") }), false},
	} {
		f, h := NewFlights(), &hangar{}
		p, q := newPassenger(false), newPassenger(false)
		f.Join(key(t, "www.example."), &p.Request, 0, h)
		if _, j := f.Join(c.other, &q.Request, 0, h); (j == Waits) != c.merge {
			t.Errorf("%s: joins as %d", c.name, j)
		}
		if c.other.Hash = key(t, "www.example.").Hash; key(t, "www.example.").same(c.other) != c.merge { // whatever the number
			t.Errorf("%s: taken for the same: %v", c.name, !c.merge)
		}
	}
	scopes := []string{"192.0.2.0/24", "192.0.2.0/25", "192.0.3.0/24", "0.0.0.0/0", "::/0", "2001:db8::/48", "::ffff:192.0.2.0/120"}
	f, h := NewFlights(), &hangar{}
	for _, s := range scopes {
		for range 2 {
			p := newPassenger(false)
			f.Join(key(t, "www.example.", func(k *Key) { k.Scope = net(s) }), &p.Request, 0, h)
		}
	}
	if h.made != len(scopes) {
		t.Errorf("%d flights for %d scopes", h.made, len(scopes))
	}
}

// Two questions with one number: the second goes without being found.
func TestFlightSameNumber(t *testing.T) {
	f, h := NewFlights(), &hangar{}
	a, b := key(t, "a.example."), key(t, "b.example.")
	b.Hash = a.Hash
	var p [4]*passenger
	var owners [4]any
	for i, k := range []*Key{a, b, a, b} {
		p[i] = newPassenger(false)
		owners[i], _ = f.Join(k, &p[i].Request, 0, h)
	}
	if owners[0] != owners[2] || owners[1] == owners[0] || owners[3] == owners[1] || f.Len() != 3 {
		t.Errorf("flights %v", owners)
	}
	if got := f.End(&owners[1].(*plane).Flight, nil); len(got) != 1 || got[0] != &p[1].Request {
		t.Errorf("End gives %d requests", len(got))
	}
	if owner, j := f.Join(a, &newPassenger(false).Request, 0, h); j != Waits || owner != owners[0] {
		t.Errorf("the end of the other has ended the first")
	}
	if got := f.End(&owners[0].(*plane).Flight, nil); len(got) != 3 {
		t.Errorf("End gives %d requests, want 3", len(got))
	}
}

func TestFlightTick(t *testing.T) {
	f, h := NewFlights(), &hangar{}
	var order []*passenger
	join := func(name string, at time.Duration, expired bool) (*passenger, *Flight) {
		p := newPassenger(expired)
		p.on = func(p *passenger) { order = append(order, p) }
		owner, _ := f.Join(key(t, name), &p.Request, at, h)
		return p, &owner.(*plane).Flight
	}
	fresh, first := join("a.example.", 0, false)
	stale, _ := join("a.example.", second, true)
	alsoFresh, _ := join("a.example.", second, false)
	alsoStale, _ := join("a.example.", second, true)
	lone, second2 := join("b.example.", second, true)
	never, third := join("c.example.", second, false)

	f.Tick(Patience - 1)
	if len(order) != 0 {
		t.Fatalf("%d woken before their time", len(order))
	}
	f.Tick(Patience)
	if !slices.Equal(order, []*passenger{stale, alsoStale}) {
		t.Errorf("%d woken, want those with something expired, in order", len(order))
	}
	if stale.Pending != (Overdue{}) || fresh.Pending == (Overdue{}) || f.Len() != 3 {
		t.Errorf("waits for %v, the other for %v, %d flights", stale.Pending, fresh.Pending, f.Len())
	}
	f.Tick(Patience + second)
	if !slices.Equal(order, []*passenger{stale, alsoStale, lone}) {
		t.Errorf("%d woken", len(order))
	}
	f.Tick(time.Hour)
	if len(order) != 3 {
		t.Errorf("%d woken, the last of them twice", len(order))
	}
	for fl, want := range map[*Flight][]*serve.Request{first: {&fresh.Request, &alsoFresh.Request}, second2: nil, third: {&never.Request}} {
		if got := f.End(fl, nil); !slices.Equal(got, want) {
			t.Errorf("End gives %d requests, want %d", len(got), len(want))
		}
	}
	if f.Len() != 0 {
		t.Errorf("%d flights are left", f.Len())
	}
}

// The oldest flight may end first, last or between, and be used again.
func TestFlightList(t *testing.T) {
	for _, ended := range []int{0, 1, 2} {
		f, h := NewFlights(), &hangar{}
		var p [3]*passenger
		var owners [3]any
		for i := range p {
			// One shard, so that they are in one list.
			k := key(t, fmt.Sprintf("%d.example.", i))
			for n := 0; k.id()%flightShards != 0; n++ {
				k = key(t, fmt.Sprintf("%d-%d.example.", i, n))
			}
			p[i] = newPassenger(true)
			owners[i], _ = f.Join(k, &p[i].Request, time.Duration(i), h)
		}
		f.End(&owners[ended].(*plane).Flight, nil)
		s := &f.shards[0]
		n := 0
		for fl, back := s.oldest, (*Flight)(nil); fl != nil; fl, back, n = fl.newer, fl, n+1 {
			if fl.older != back || !fl.listed || fl.newer == nil && s.newest != fl {
				t.Errorf("without %d: the list is broken", ended)
			}
		}
		f.Tick(time.Hour)
		for i := range p {
			want := int32(1)
			if i == ended {
				want = 0
			}
			p[i].woken(t, want)
		}
		if n != 2 || s.oldest != nil || s.newest != nil {
			t.Errorf("without %d: %d in the list, then %v", ended, n, s.oldest)
		}
	}
}

// Who comes when Patience is over and has something expired does not wait.
func TestFlightLate(t *testing.T) {
	f, h := NewFlights(), &hangar{}
	lead := newPassenger(true)
	owner, _ := f.Join(key(t, "www.example."), &lead.Request, 0, h)
	for _, c := range []struct {
		name    string
		at      time.Duration
		expired bool
		want    Joined
	}{
		{"in time", Patience - 1, true, Waits},
		{"too late", Patience, true, TooLate},
		{"too late, with nothing expired", Patience, false, Waits},
	} {
		p := newPassenger(c.expired)
		got, j := f.Join(key(t, "www.example."), &p.Request, c.at, h)
		if got != owner || j != c.want || (p.Pending == nil) != (j == TooLate) {
			t.Errorf("%s: joins as %d and waits for %v", c.name, j, p.Pending)
		}
	}
	f.Tick(Patience)
	// Its clock was read before the tick.
	p := newPassenger(true)
	if _, j := f.Join(key(t, "www.example."), &p.Request, Patience-1, h); j != TooLate {
		t.Errorf("joins as %d: nobody would wake it", j)
	}
	if got := f.End(&owner.(*plane).Flight, nil); len(got) != 1 {
		t.Errorf("End gives %d requests, want the one with nothing expired", len(got))
	}
}

// A flight that is used again begins anew.
func TestFlightReused(t *testing.T) {
	f := NewFlights()
	pl := &plane{}
	again := maker(func() (*Flight, any) { return &pl.Flight, pl })
	p := newPassenger(true)
	f.Join(key(t, "a.long.name.example.", func(k *Key) { k.CD = true }), &p.Request, 0, again)
	f.End(&pl.Flight, nil)
	q := newPassenger(false)
	f.Join(key(t, "b.example."), &q.Request, second, again)
	if pl.Key.Name.String() != "b.example." || pl.Key.CD || pl.stale || pl.Born != second || len(pl.subs) != 1 {
		t.Errorf("%+v", pl.Key)
	}
	f.Tick(time.Hour)
	q.woken(t, 0)
	p.woken(t, 0)
}

type maker func() (*Flight, any)

func (m maker) Make() (*Flight, any) { return m() }

// pooled makes planes that are used again at once, as a policy does.
type pooled struct {
	pool  sync.Pool
	begun chan *plane
}

func (h *pooled) Make() (*Flight, any) {
	p, ok := h.pool.Get().(*plane)
	if !ok {
		p = &plane{}
	}
	return &p.Flight, p
}

// Many join, many end, and time passes: every request is woken once.
func TestFlightConcurrent(t *testing.T) {
	const joiners, each = 8, 2000
	f, h := NewFlights(), &pooled{begun: make(chan *plane, joiners*each)}
	var now atomic.Int64
	var late atomic.Int64
	all := make([][]*passenger, joiners)
	var work, ends sync.WaitGroup
	for i := range joiners {
		all[i] = make([]*passenger, each)
		work.Go(func() {
			for n := range each {
				p := newPassenger(n%3 == 0)
				all[i][n] = p
				k := key(t, fmt.Sprintf("%d.example.", (n+i)%7))
				switch owner, j := f.Join(k, &p.Request, time.Duration(now.Load()), h); j {
				case Leads:
					h.begun <- owner.(*plane)
				case TooLate:
					late.Add(1)
					p.Wake()
				}
				if n%5 == 0 {
					f.Tick(time.Duration(now.Add(int64(Patience / 3))))
				}
				runtime.Gosched()
			}
		})
	}
	for range 3 {
		ends.Go(func() {
			for p := range h.begun {
				p.number++ // the flight's alone
				for _, r := range f.End(&p.Flight, nil) {
					r.Waker.Wake()
				}
				h.pool.Put(p)
			}
		})
	}
	work.Wait()
	close(h.begun)
	ends.Wait()
	for i := range all {
		for n, p := range all[i] {
			if got := p.wakes.Load(); got != 1 {
				t.Fatalf("request %d of %d woken %d times", n, i, got)
			}
		}
	}
	if f.Len() != 0 {
		t.Errorf("%d flights are left", f.Len())
	}
	t.Logf("%d were too late", late.Load())
}
