package cache

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/waymark-dns/waymark/internal/wire"
)

const (
	// staleTTL is the TTL of stale data in seconds (RFC 8767 §4).
	staleTTL = 30
	// hold is how long nobody else is told to refresh an entry after one was: long
	// enough for an upstream to answer.
	hold = 5 * time.Second
)

// Get looks k up and, where it says Fresh or Stale, writes the response into b,
// which has been begun with the same question and holds no record yet. The
// caller calls b.End. dnssec tells whether the client wants DNSSEC records (RFC
// 4035 §3.2.1). A scope in k is the client's whole subnet: the longest prefix of
// it that there is data for is taken.
func (c *Cache) Get(k *Key, now time.Duration, b *wire.Builder, dnssec bool) Hit {
	g := c.epoch.enter(unsafe.Pointer(b))
	e, freq := c.lookup(k, now)
	hit := Hit{}
	if e != nil {
		hit = c.judge(e, freq, now)
		c.replay(&hit, e, now, b, dnssec)
	}
	g.leave()
	runtime.KeepAlive(c)
	return hit
}

// Stale is Get for a caller that has tried the upstream in vain: an expired entry
// is taken at once, as long as MaxStale lets it.
func (c *Cache) Stale(k *Key, now time.Duration, b *wire.Builder, dnssec bool) Hit {
	g := c.epoch.enter(unsafe.Pointer(b))
	e, _ := c.lookup(k, now)
	hit := Hit{}
	if e != nil {
		hit.Verdict = Fresh
		if e.left(now) <= 0 {
			hit.Verdict = Stale
		}
		c.replay(&hit, e, now, b, dnssec)
	}
	g.leave()
	runtime.KeepAlive(c)
	return hit
}

// Life is how long ago k's entry was put in, and how long it has left: negative where
// it is stale. Both are 0 where there is none.
func (c *Cache) Life(k *Key, now time.Duration) (age, left time.Duration) {
	g := c.epoch.enter(unsafe.Pointer(k))
	defer g.leave()
	if e, _ := c.lookup(k, now); e != nil {
		age, left = now-time.Duration(e.stored), e.left(now)
	}
	runtime.KeepAlive(c)
	return age, left
}

// Failed notes that a refresh of k's entry has failed: the next is not due before
// 30 s have passed (RFC 8767 §5), and stale data is given until then. Where there
// is no entry it does nothing.
func (c *Cache) Failed(k *Key, now time.Duration) { c.fail(k, now) }

// fail is Failed. It tells whether there is an entry that is still of use, and
// not a failure itself.
func (c *Cache) fail(k *Key, now time.Duration) bool {
	g := c.epoch.enter(unsafe.Pointer(k))
	defer g.leave()
	e, _ := c.lookup(k, now)
	if e == nil || e.flags&flagFailure != 0 {
		return false
	}
	e.failed(now, recheck)
	runtime.KeepAlive(c)
	return true
}

// lookup finds the entry for k that is not dead, and how often it was asked for
// before. The caller is inside an epoch.
func (c *Cache) lookup(k *Key, now time.Duration) (e *entry, freq int) {
	p := k.probe()
	if k.Scope.IsValid() {
		if e, freq = c.scoped(k, &p, now); e != nil {
			return e, freq
		}
	}
	return c.one(&p, now)
}

// one finds the entry for p.
func (c *Cache) one(p *probe, now time.Duration) (e *entry, freq int) {
	slot, v, e := c.shard(p.hash).find(p)
	if e == nil || e.dead(now, c.conf.MaxStale) {
		return nil, 0
	}
	touch(slot, v)
	return e, slotFreq(v)
}

// judge says what an entry is good for, and who refreshes it.
func (c *Cache) judge(e *entry, freq int, now time.Duration) (hit Hit) {
	left := e.left(now)
	if left > 0 {
		hit.Verdict = Fresh
		if c.conf.Prefetch && freq > 0 && left*10 < time.Duration(e.ttl)*time.Second {
			hit.Refresh = e.win(now, hold)
		}
		return hit
	}
	if c.conf.Immediate {
		hit.Verdict = Stale
		hit.Refresh = e.win(now, hold)
		return hit
	}
	hit.Verdict = Expired
	if due, failed := e.refreshable(now); !due && failed {
		hit.Verdict = Stale
	}
	return hit
}

// replay writes the response, where the verdict is that there is one.
func (c *Cache) replay(hit *Hit, e *entry, now time.Duration, b *wire.Builder, dnssec bool) {
	var age, fixed uint32
	switch hit.Verdict {
	case Fresh:
		age = e.age(now)
	case Stale:
		fixed = c.conf.StaleTTL
	default:
		return
	}
	msg, ttlAt := e.form(dnssec)
	if !b.Replay(msg, ttlAt, age, fixed) {
		*hit = Hit{} // the Builder has another question
		return
	}
	hit.Rcode = wire.Rcode(e.flags & flagRcode)
	hit.EDE, hit.Upstream = e.ede, e.upstream
	if e.flags&flagAD != 0 {
		hit.Flags = wire.FlagAD
	}
}
