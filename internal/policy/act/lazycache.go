package act

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// LazyCache is the cache of a program: it answers, and the rules behind it still
// run; what they answer is kept. An expired answer may be given for a while, and is
// refreshed behind it.
type LazyCache struct {
	Tag   string
	Args  LazyCacheArgs
	cache *cache.Cache
	run   *policy.Runner
	now   func() time.Duration
	ends  bool // a hit ends the program
	count *CacheCounts
}

// CacheCounts counts what a cache is asked; shared by all that look into it.
type CacheCounts struct{ Queries, Hits, LazyHits Counter }

// LazyCacheArgs is the configuration of a cache object.
type LazyCacheArgs struct {
	Size         int    `key:"size"`
	LazyCacheTTL int    `key:"lazy_cache_ttl"`
	DumpFile     string `key:"dump_file"`
	DumpInterval int    `key:"dump_interval"`
}

// entrySize is the octets that an entry takes, roughly: sizes are written as
// numbers of entries.
const entrySize = 256

func makeLazyCache(e *Env, tag string, args *LazyCacheArgs) (any, error) {
	a := *args
	if a.Size <= 0 {
		a.Size = 1024
	}
	if a.DumpInterval <= 0 {
		a.DumpInterval = 600
	}
	made, err := e.NewCache(tag, cache.Config{
		Size: max(cache.MinSize, int64(a.Size)*entrySize), Loose: true,
		MaxStale: time.Duration(a.LazyCacheTTL) * time.Second, Immediate: true, StaleTTL: 5,
	})
	if err != nil {
		return nil, err
	}
	all := e.made()
	c := &LazyCache{Tag: tag, Args: a, cache: made, run: e.Run, now: e.Now, count: all.counts(tag)}
	if tag != "" {
		all.Caches = append(all.Caches, c)
	}
	return c, nil
}

// quickLazyCache is `cache [size]`.
func quickLazyCache(e *Env, args string) (any, error) {
	a := &LazyCacheArgs{}
	if args = strings.TrimSpace(args); args != "" {
		n, err := strconv.Atoi(args)
		if err != nil {
			return nil, fmt.Errorf("reading size: %w", err)
		}
		a.Size = n
	}
	return makeLazyCache(e, "", a)
}

// Cache is the engine.
func (a *LazyCache) Cache() *cache.Cache { return a.cache }

// Counts is what was counted.
func (a *LazyCache) Counts() *CacheCounts { return a.count }

// Fuse is part of Fuser.
func (a *LazyCache) Fuse() policy.Step {
	fused := *a
	fused.ends = true
	return &fused
}

// What Do leaves for After.
const (
	lazyMissed = iota
	lazyHit
)

func (a *LazyCache) key(r *serve.Request, k *cache.Key) {
	*k = cache.Key{
		Name: r.Ask.Name, Hash: r.Ask.Labels.Hash[0], Type: r.Ask.Type, Class: r.Ask.Class,
		CD: r.Flags&wire.FlagCD != 0, Scope: r.Ask.Subnet,
	}
	if r.Flags&wire.FlagAD != 0 { // upstreams say AD to those who ask for it (RFC 6840 §5.7)
		k.View = 1
	}
}

// Do is part of policy.Step.
func (a *LazyCache) Do(r *serve.Request) policy.Next {
	f := policy.NewFrame(r)
	if f == nil {
		return policy.Fail
	}
	f.A = lazyMissed
	a.count.Queries.Add(r)
	var k cache.Key
	a.key(r, &k)
	h, ok := a.get(r, &k)
	if r.Trace != nil {
		traceCache(r, a.cache, &k, h.Verdict)
	}
	if !ok {
		return policy.Go
	}
	a.count.Hits.Add(r)
	r.Note.Source = serve.SourceCache
	if h.Verdict == cache.Stale {
		a.count.LazyHits.Add(r)
		r.Note.Source = serve.SourceStale
	}
	answerFlags(r, h.Flags)
	r.Finish(h.Rcode)
	if h.Refresh {
		a.refresh(r)
	}
	f.A = lazyHit
	if a.ends {
		return policy.Stop
	}
	return policy.Go
}

// get writes what the cache has into the response.
func (a *LazyCache) get(r *serve.Request, k *cache.Key) (cache.Hit, bool) {
	if r.Out == nil && !renamed(r) {
		h := a.cache.Get(k, r.At, &r.Reply, true)
		return h, h.Verdict != cache.Miss
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.begin(r)
	h := a.cache.Get(k, r.At, &s.reply, true)
	if h.Verdict == cache.Miss {
		return h, false
	}
	r.Empty()
	r.Reply.AddMessage(s.reply.End(h.Rcode))
	return h, true
}

// refresh runs the rules behind for a copy of the request and keeps their answer.
func (a *LazyCache) refresh(r *serve.Request) {
	if b := a.run.Rest(r, refresher{a}); b != nil {
		b.Req.Empty()
		b.Req.Flags |= wire.FlagRD // the answer is for all
		b.Start()
	}
}

// refresher keeps what a branch has answered.
type refresher struct{ of *LazyCache }

// Joined is part of policy.Joiner.
func (j refresher) Joined(b *policy.Branch) {
	if !b.Req.Policy.Failed && b.Req.Out != nil {
		j.of.keep(&b.Req)
	}
	b.Release()
}

// After is part of policy.Finisher: it keeps what the rules behind have answered.
func (a *LazyCache) After(r *serve.Request, f *serve.Frame) {
	if r.Out == nil || r.Policy.Failed {
		return
	}
	if from := r.Note.Source; f.A == lazyHit && (from == serve.SourceCache || from == serve.SourceStale) {
		return // what we gave, perhaps changed since
	}
	if r.Flags&wire.FlagRD == 0 {
		return // what an upstream says without recursion is not for those who want it
	}
	a.keep(r)
}

// keep puts r's response into the cache.
func (a *LazyCache) keep(r *serve.Request) {
	var k cache.Key
	a.key(r, &k)
	now := a.now()
	if !renamed(r) {
		a.cache.Put(&k, r.Out, now, r.Note.Upstream)
		return
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.begin(r)
	s.reply.Flags = r.Reply.Flags
	if s.reply.AddMessage(r.Out) {
		a.cache.Put(&k, s.reply.End(r.Reply.Rcode()), now, r.Note.Upstream)
	}
}
