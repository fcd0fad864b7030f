package app

import (
	"context"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// root is the Handler of one configuration: what is no ordinary query is sent
// off here, the rest runs through the policy.
type root struct {
	policy   *policy.Set
	identity []byte // NSID (RFC 5001); nil is off
	// entries is the program that queries of a listener enter, by its index; nil is
	// the first program for all.
	entries []uint16
}

// Serve is part of serve.Handler.
func (h *root) Serve(r *serve.Request) serve.Status {
	switch {
	case r.Opcode() != wire.OpQuery:
		return reject(r, wire.NotImp)
	case r.EDNS.Version != 0: // RFC 6891 §6.1.3
		return reject(r, wire.BadVers)
	case r.TSIG != 0: // no keys: each is unknown (RFC 8945 §5.2.1)
		return reject(r, wire.NotAuth)
	}
	if h.identity != nil && r.EDNS.Present {
		if _, ok := r.EDNS.Option(wire.OptNSID); ok {
			r.Reply.Option(wire.OptNSID, h.identity)
		}
	}
	if h.entries != nil {
		r.Policy.Program = h.entries[r.Peer.Index]
		r.Reply.Flags |= wire.FlagRA
	}
	return h.policy.Serve(r)
}

// Start is part of serve.Handler.
func (h *root) Start(r *serve.Request) serve.Status { return h.policy.Start(r) }

// Resume is part of serve.Handler.
func (h *root) Resume(ctx context.Context, r *serve.Request) serve.Status {
	return h.policy.Resume(ctx, r)
}

func reject(r *serve.Request, rcode wire.Rcode) serve.Status {
	r.Note.Source = serve.SourceError
	r.Finish(rcode)
	return serve.Done
}
