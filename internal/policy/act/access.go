package act

import (
	"net/netip"

	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Extended errors (RFC 8914 §4).
const (
	edeStale         = 3
	edeProhibited    = 18
	edeStaleNXDomain = 19
	edeNotAuth       = 20
	edeNoReachable   = 22
	edeNetwork       = 23
	edeInvalidData   = 24
)

// Access decides who is asking: whether at all, for what, and with which view. It
// comes before everything else, so that no other rule can be reached around it.
type Access struct {
	Default   AccessList
	Listeners map[string]AccessList // by URL of the listener, in place of Default
	Views     []View                // the first that fits is taken
	Recursive bool                  // there is more to be had here than our own zones
}

// AccessList is who may ask: of the prefixes that a client is in, the longest
// decides. Who is in none may ask for our own zones.
type AccessList = *addrset.Map[Right]

// Right is what a client may ask for.
type Right uint8

// The rights.
const (
	OwnZones   Right = iota
	Everything       // what we get from others as well
	Nothing
)

// View is who sees the server in another way. Its number is its place in
// Access.Views, from one on.
type View struct {
	Clients  *addrset.Set // nil is all
	Listener map[string]bool
}

// Do is part of policy.Step.
func (a *Access) Do(r *serve.Request) policy.Next {
	l := a.Default
	if len(a.Listeners) > 0 {
		if own, ok := a.Listeners[r.Peer.Listener]; ok {
			l = own
		}
	}
	client := r.Client.Addr()
	switch right, _ := l.Find(client); {
	case right == Nothing:
		return refuse(r, edeProhibited)
	case right == Everything && a.Recursive:
		r.Who = serve.Guest
		r.Reply.Flags |= wire.FlagRA
	}
	for i := range a.Views {
		if a.Views[i].fits(client, r.Peer.Listener) {
			r.View = uint16(i + 1)
			break
		}
	}
	if r.Trace != nil {
		traceAccess(r, len(a.Views))
	}
	return policy.Go
}

func (v *View) fits(client netip.Addr, listener string) bool {
	return (v.Clients == nil || v.Clients.Contains(client)) && (v.Listener == nil || v.Listener[listener])
}

// refuse answers REFUSED and says why.
func refuse(r *serve.Request, why uint16) policy.Next {
	r.Note.Source = serve.SourceRefused
	r.Extend(why, "")
	r.Finish(wire.Refused)
	return policy.Stop
}

// Refuse answers REFUSED with an extended error.
type Refuse struct{ EDE uint16 }

// Do is part of policy.Step.
func (a Refuse) Do(r *serve.Request) policy.Next { return refuse(r, a.EDE) }
