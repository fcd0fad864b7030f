package act

import (
	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/limit"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Limits holds back clients that ask too much, and those whose address may be
// forged. A client with a good cookie (RFC 7873) has shown that its address is
// its own: it passes.
type Limits struct {
	Exempt  *addrset.Set // clients without limits
	Rate    *limit.Rate  // nil is off
	Streams *limit.Rate  // as Rate, for those who came back over a stream
	// Public tells, where it is not nil, on which listeners Rate holds, by URL; it
	// then holds for clients outside of Private only.
	Public   map[string]bool
	Private  *addrset.Set
	Truncate bool // over UDP, queries over the rate are told to come again over TCP
	RRL      *limit.RRL
	Cookies  *limit.Cookies
	Unix     func() uint32 // time of day in seconds, for cookies
}

// Do is part of policy.Step.
func (a *Limits) Do(r *serve.Request) policy.Next {
	option, sent := r.EDNS.Option(wire.OptCookie)
	if sent && a.Cookies != nil && !a.cookie(r, option) {
		r.Note.Source = serve.SourceError
		r.Finish(wire.FormErr) // RFC 7873 §5.2.2
		return policy.Stop
	}
	if r.Trace != nil { // whoever explains is not to use up what the client may ask
		r.Trace.Say("limits", "", "not counted")
		return policy.Go
	}
	if a.Rate == nil || r.Note.Trusted || !a.limited(r) {
		return policy.Go
	}
	client, stream := r.Client.Addr(), r.Peer.Proto.Stream()
	switch {
	case !stream && a.Rate.Take(client, r.At), stream && a.Streams.Take(client, r.At):
		return policy.Go
	case stream:
		r.Note.Limit = serve.OverRate
		return refuse(r, edeProhibited)
	}
	r.Note.Limit = serve.OverRate
	switch {
	case sent && a.Cookies != nil: // RFC 7873 §5.2.3: with the cookie that we just added it may pass
		r.Note.Source = serve.SourceRefused
		r.Finish(wire.BadCookie)
		return policy.Stop
	case !a.Truncate:
		return policy.Drop
	}
	a.slip(r, wire.NoError)
	return policy.Stop
}

// cookie checks the client's cookie and gives it a new one. It is false where the
// option is malformed.
func (a *Limits) cookie(r *serve.Request, option []byte) bool {
	client, now := r.Client.Addr(), a.Unix()
	state := a.Cookies.Check(option, client, now)
	if state == limit.Malformed {
		return false
	}
	r.Note.Trusted = state.Valid()
	var fresh [24]byte
	a.Cookies.Make(&fresh, option[:8], client, now)
	r.Reply.Option(wire.OptCookie, fresh[:])
	return true
}

// limited tells whether the rate holds for r.
func (a *Limits) limited(r *serve.Request) bool {
	client := r.Client.Addr()
	if a.Exempt.Contains(client) {
		return false
	}
	return a.Public == nil || a.Public[r.Peer.Listener] && !a.Private.Contains(client)
}

// slip makes the response one that says nothing but to come again over TCP. There
// is nothing that more room would help with, so the flag is set, and not that
// something did not fit: the policy would park the request and run the rule again.
func (a *Limits) slip(r *serve.Request, rcode wire.Rcode) {
	r.Empty()
	r.Reply.Flags |= wire.FlagTC
	r.Note.Source = serve.SourceRefused
	r.Finish(rcode)
}

// After is part of policy.Finisher: it holds back responses of one kind to one
// client, as forged queries would make them.
func (a *Limits) After(r *serve.Request, _ *serve.Frame) {
	if a.RRL == nil || r.Trace != nil || r.Peer.Proto.Stream() || r.Note.Trusted || r.Note.Limit != serve.Unlimited || a.Exempt.Contains(r.Client.Addr()) {
		return
	}
	kind, name := kindOf(r)
	switch a.RRL.Check(r.Client.Addr(), kind, name, r.At) {
	case limit.Slip:
		r.Note.Limit = serve.OverRRL
		a.slip(r, r.Reply.Rcode())
	case limit.Drop:
		r.Note.Limit = serve.OverRRL
		r.Policy.Silent = true
	}
}

// kindOf is what responses are counted as, and the hash of the name that they are
// counted for: names made up at random must not make a response its own kind.
func kindOf(r *serve.Request) (limit.Kind, uint64) {
	l := &r.Suffixes
	zone := l.Hash[max(0, l.N-2)]
	switch {
	case r.Reply.Rcode() == wire.NXDomain:
		return limit.NXDomain, zone
	case r.Reply.Rcode() != wire.NoError:
		return limit.Error, 0
	case r.Reply.Referral:
		return limit.Referral, zone
	}
	return limit.Answer, r.Hash ^ uint64(r.Type)
}
