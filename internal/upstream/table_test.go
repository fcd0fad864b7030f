package upstream

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// The table against a map, over random work.
func TestTable(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var tab table
		want := map[uint16]uint32{} // serials by ID
		var ids []uint16
		for range 5000 {
			if rng.IntN(100) < 55 {
				id := uint16(rng.IntN(1 << 11)) // collisions
				if rng.IntN(4) == 0 {
					id = id&0xf000 | 15 // and wrapping at the end of the smallest table
				}
				s := slot{sent: time.Duration(id)}
				_, taken := want[id]
				ok := tab.put(&s, uint64(id)*0x0001_0001_0001_0001)
				if ok != (!taken && len(want) < maxPending) {
					t.Fatalf("put %d: %v, taken %v, %d in it", id, ok, taken, len(want))
				}
				if ok {
					want[id] = s.serial
					ids = append(ids, id)
				}
			} else if len(ids) > 0 {
				k := rng.IntN(len(ids))
				id := ids[k]
				ids[k] = ids[len(ids)-1]
				ids = ids[:len(ids)-1]
				s := tab.answered(tab.find(id))
				if s.id != id || s.serial != want[id] || s.sent != time.Duration(id) {
					t.Fatalf("found %+v for %d", s, id)
				}
				delete(want, id)
				if !tab.wasAnswered(id) {
					t.Fatalf("the answer to %d is forgotten", id)
				}
			}
		}
		for id := range uint16(1 << 12) {
			serial, in := want[id]
			if in != (tab.find(id) >= 0) || in != tab.waits(id, serial) || tab.waits(id, serial+1) {
				t.Fatalf("%d: in it: %v", id, in)
			}
		}
		if n := len(tab.drain()); n != len(want) || tab.n != 0 || tab.find(ids[0]) >= 0 {
			t.Fatalf("%d came out, want %d", n, len(want))
		}
	}
}

func TestHealth(t *testing.T) {
	const ms = time.Millisecond
	var h health
	now := time.Hour
	if got := h.timeout(0, false); got != 150*ms {
		t.Errorf("unknown: waits %v", got)
	}
	for range 100 {
		h.sample(100*ms, now)
	}
	if got := h.timeout(0, false); got < 100*ms || got > 105*ms {
		t.Errorf("steady 100 ms: waits %v", got)
	}
	if got := h.timeout(2, false); got < 400*ms || got > 420*ms {
		t.Errorf("steady 100 ms: waits %v the third time", got)
	}
	for range 100 {
		h.sample(ms, now)
	}
	if got := h.timeout(0, false); got != 50*ms {
		t.Errorf("steady 1 ms: waits %v", got)
	}
	for range 100 {
		h.sample(3*time.Second, now)
	}
	if got := h.timeout(0, false); got != time.Second {
		t.Errorf("steady 3 s: waits %v", got)
	}
	h.punish(800*ms, now)
	for _, c := range []struct{ after, want time.Duration }{{0, 800 * ms}, {time.Second, 600 * ms}, {2 * time.Second, 400 * ms}, {4 * time.Second, 200 * ms}, {time.Minute, 0}} {
		if got := h.penaltyAt(now + c.after); got != c.want {
			t.Errorf("penalty after %v: %v, want %v", c.after, got, c.want)
		}
	}
	if h.healthy(now) || !h.healthy(now+2*time.Second) {
		t.Error("healthy at the wrong time")
	}
	for range 100 {
		h.punish(800*ms, now)
	}
	if got := h.penaltyAt(now); got != maxPenalty {
		t.Errorf("penalty %v, want %v", got, maxPenalty)
	}
}

// p95 is above 19 of 20 answers.
func TestP95(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var h health
	above := 0
	for i := range 40_000 {
		rtt := time.Duration(rng.ExpFloat64()*float64(10*time.Millisecond)) + 5*time.Millisecond
		if i >= 20_000 && rtt > time.Duration(h.p95.Load()) {
			above++
		}
		h.sample(rtt, 0)
	}
	if above < 700 || above > 1300 {
		t.Errorf("%d of 20,000 answers took longer, want about 1,000", above)
	}
}

// FuzzResponse gives arbitrary messages to a socket on which one try waits.
func FuzzResponse(f *testing.F) {
	q, bare := ask("www.example.")
	q[0], q[1] = 0x12, 0x34
	for _, m := range [][]byte{
		nil, q, reply(q, wire.NoError), reply(q, wire.ServFail), reply(q, wire.NXDomain), truncate(q),
		{0x12, 0x34, 0x80, 1, 11: 0}, {0x12, 0x34, 0x82, 4, 11: 0}, reply(q[:bare], wire.FormErr), reply(q, wire.NoError)[:40],
	} {
		f.Add(m, uint8(0))
		f.Add(m, uint8(withOPT))
	}
	f.Fuzz(func(t *testing.T, msg []byte, flags uint8) {
		r := newRig(t, func(c *Config) { c.Servers = []Server{{Addr: closedAddr, TCP: true}} })
		w := newWaiter("www.example.")
		gen := w.begin(0, r.now(), 1)
		r.inFlight.Add(1)
		sl := slot{x: &w.Exchange, gen: gen, end: uint16(w.job.end), flags: tryFlags(flags) & withOPT, try: w.job.open(0, false)}
		sl.hash = r.questions.hash(w.Query, w.job.end)
		k := &socket{server: r.servers[0]}
		if !k.table.put(&sl, 0x1234) {
			t.Fatal("no room")
		}
		before := append([]byte(nil), msg...)
		k.mu.Lock()
		c := k.catch(msg)
		k.mu.Unlock()
		k.handle(&c, msg, r.now())
		if string(before) != string(msg) {
			t.Error("the message was changed")
		}
		if len(w.ended) == 0 || w.Err != nil {
			return
		}
		end := questionEnd(w.Query)
		if len(w.copy) < end || idOf(w.copy) != 0x1234 || !wire.EqualFold(w.copy[12:end-4], w.Query[12:end-4]) || string(w.copy[end-4:end]) != string(w.Query[end-4:end]) {
			t.Errorf("ended with %x", w.copy)
		}
		if w.copy[2]&0xfa != 0x80 || rankOf(rcode(w.copy)) == 0 && !whole(w.copy) {
			t.Errorf("ended with a response that is none, or not whole: %x", w.copy)
		}
	})
}
