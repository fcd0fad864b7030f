package act

import (
	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Cache answers from the cache; what is not there goes on to the next rule.
type Cache struct {
	Cache  *cache.Cache
	Routes *Routes
	// Views keeps the answers of each view apart, as Part does those of a group; nil
	// where there are no views.
	Views []uint32
	ECS   []bool // by route: whether client subnets are used
	// Again runs the rest of the program for a copy of the request, so that the
	// cache has a fresh answer.
	Again func(r *serve.Request)
}

// key is the cache's key of what is asked.
func (a *Cache) key(r *serve.Request, k *cache.Key) {
	*k = cache.Key{
		Name: r.Ask.Name, Hash: r.Ask.Labels.Hash[0], Type: r.Ask.Type, Class: r.Ask.Class,
		View: a.Routes.part(r), CD: r.Flags&wire.FlagCD != 0,
	}
	if a.Views != nil {
		k.View ^= a.Views[r.View]
	}
	if len(a.ECS) > 0 && r.Route > 0 && a.ECS[r.Route-1] {
		if k.Scope = clientSubnet(r); k.Scope.Bits() <= 0 {
			k.View |= noSubnet
		}
	}
}

// noSubnet keeps answers to questions without a subnet, which may be for where we
// are, apart from those that are for everyone (RFC 7871 §7.3.1). Views and Parts have 31
// bits.
const noSubnet = 1 << 31

// Do is part of policy.Step.
func (a *Cache) Do(r *serve.Request) policy.Next {
	if r.Flags&wire.FlagRD == 0 || r.Route == 0 {
		return policy.Go
	}
	var k cache.Key
	a.key(r, &k)
	var h cache.Hit
	if a.Cache != nil {
		h = a.Cache.Get(&k, r.At, &r.Reply, r.Ask.DO)
	}
	if r.Trace != nil && a.Cache != nil {
		traceCache(r, a.Cache, &k, h.Verdict)
	}
	switch h.Verdict {
	case cache.Expired:
		r.Expired = true
		return policy.Go
	case cache.Miss:
		return policy.Go
	}
	a.finish(r, &h)
	if h.Refresh {
		a.Again(r)
	}
	return policy.Stop
}

// stale answers with what has expired, where it is still there.
func (a *Cache) stale(r *serve.Request) bool {
	if a.Cache == nil || !r.Expired {
		return false
	}
	var k cache.Key
	a.key(r, &k)
	h := a.Cache.Stale(&k, r.At, &r.Reply, r.Ask.DO)
	if r.Reply.Truncated() && r.Grow(wire.MaxMessage) {
		h = a.Cache.Stale(&k, r.At, &r.Reply, r.Ask.DO)
	}
	if h.Verdict == cache.Miss {
		return false
	}
	if r.Trace != nil {
		traceCache(r, a.Cache, &k, h.Verdict)
	}
	a.finish(r, &h)
	return true
}

// finish ends a response that the cache has written.
func (a *Cache) finish(r *serve.Request, h *cache.Hit) {
	r.Note.Source, r.Note.Upstream = serve.SourceCache, h.Upstream
	ede := h.EDE
	if h.Verdict == cache.Stale {
		r.Note.Source = serve.SourceStale
		if ede = edeStale + 1; h.Rcode == wire.NXDomain {
			ede = edeStaleNXDomain + 1
		}
	}
	// What did not fit may be done again with more room, and options stay.
	if !r.Reply.Truncated() {
		if ede > 0 {
			r.Extend(ede-1, "")
		}
		a.subnetBack(r)
	}
	answerFlags(r, h.Flags)
	r.Finish(h.Rcode)
}

// subnetBack tells a client that gave a subnet whom the answer is for (RFC 7871
// §7.2.2): for that subnet, which is right for every answer.
func (a *Cache) subnetBack(r *serve.Request) {
	if len(a.ECS) == 0 || r.Route == 0 || !a.ECS[r.Route-1] {
		return
	}
	var b [ecsOption - 4]byte
	if data, ok := r.EDNS.Option(wire.OptECS); ok && len(data) >= 4 && len(data) <= len(b) {
		copy(b[:], data)
		b[3] = b[2]
		r.Reply.Option(wire.OptECS, b[:len(data)])
	}
}

// answerFlags sets the flags of an answer that is not our own: AD where the
// upstream has validated it and the client cares (RFC 6840 §5.8), CD as the client
// has it.
func answerFlags(r *serve.Request, from uint16) {
	if from&wire.FlagAD != 0 && r.Flags&wire.FlagCD == 0 && (r.Ask.DO || r.Flags&wire.FlagAD != 0) {
		r.Reply.Flags |= wire.FlagAD
	}
	r.Reply.Flags |= wire.FlagRA | r.Flags&wire.FlagCD
}
