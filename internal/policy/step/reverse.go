package step

import (
	"net/netip"
	"sync"
	"time"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/match"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// ReverseArgs says how many addresses are remembered, and for how many seconds.
type ReverseArgs struct {
	Size      int  `key:"size"`
	HandlePTR bool `key:"handle_ptr"` // answer PTR questions
	TTL       int  `key:"ttl"`
}

// Reverse remembers for which name an address was last an answer, and answers PTR
// questions for the address with that name.
type Reverse struct {
	ptr bool
	ttl uint32

	mu    sync.Mutex // guards what follows
	slots []reverseSlot
	place map[[16]byte]uint32 // into slots
	next  uint32              // the slot to be used next, full or not: the oldest
	size  int
}

type reverseSlot struct {
	addr [16]byte
	name []byte
	ends time.Duration
}

const ptrTTL = 5

// NewReverse makes a step that remembers nothing yet.
func NewReverse(args *ReverseArgs) (any, error) {
	return &Reverse{
		ptr: args.HandlePTR, ttl: uint32(positive(args.TTL, 7200)), size: positive(args.Size, 65536),
		place: map[[16]byte]uint32{},
	}, nil
}

// positive is n, or def where n is not above 0.
func positive[N int | float64](n, def N) N {
	if n > 0 {
		return n
	}
	return def
}

// Do is part of policy.Step.
func (a *Reverse) Do(r *serve.Request) policy.Next {
	if !a.ptr || r.Ask.Type != wire.TypePTR {
		return policy.Go
	}
	addr, ok := match.ReverseAddr(r.Ask.Name)
	if !ok {
		return policy.Go
	}
	var buf [2 + wire.MaxName]byte
	name, ok := a.Name(buf[2:2], addr, r.At)
	if !ok {
		return policy.Go
	}
	buf[1] = byte(len(name))
	r.Empty()
	r.Reply.Add(wire.Answer, r.Ask.Name, &wire.RRset{
		Type: wire.TypePTR, Class: r.Ask.Class, TTL: ptrTTL, Count: 1, RDATA: buf[:2+len(name)],
	}, nil)
	answered(r)
	return policy.Stop
}

// Name appends to dst the name that addr was last an answer for, as far as that is
// remembered at now.
func (a *Reverse) Name(dst wire.Name, addr netip.Addr, now time.Duration) (name wire.Name, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, ok := a.place[addr.As16()]
	if !ok || a.slots[n].ends <= now {
		return dst, false
	}
	return append(dst, a.slots[n].name...), true
}

// After is part of policy.Finisher. An address is not remembered for longer than
// its record may be kept.
func (a *Reverse) After(r *serve.Request, _ *serve.Frame) {
	var resp wire.Response
	if r.Out == nil || !resp.Read(r.Out) {
		return
	}
	var rec wire.Record
	for resp.Next(&rec) && rec.Section == wire.Answer {
		addr, ok := match.Address(r.Out, &rec)
		if !ok {
			continue
		}
		setTTL(r.Out, &rec, min(rec.TTL, a.ttl))
		a.Keep(addr, r.Ask.Name, r.At+time.Duration(a.ttl)*time.Second)
	}
}

// Len is how many addresses are remembered.
func (a *Reverse) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.place)
}

// Keep remembers the name of an address until ends. Where there is no room, the
// address that was new the longest ago goes. name is copied.
func (a *Reverse) Keep(address netip.Addr, name wire.Name, ends time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	addr := address.As16()
	n, ok := a.place[addr]
	if !ok {
		n = a.next
		a.next = (n + 1) % uint32(a.size)
		if int(n) == len(a.slots) {
			a.slots = append(a.slots, reverseSlot{})
		} else {
			delete(a.place, a.slots[n].addr)
		}
		a.place[addr] = n
	}
	s := &a.slots[n]
	s.addr, s.ends = addr, ends
	s.name = append(s.name[:0], name...)
}
