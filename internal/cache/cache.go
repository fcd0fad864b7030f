// Package cache keeps responses of others in wire format, bounded in octets, and
// writes them into responses again: fresh, negative (RFC 2308) and stale (RFC
// 8767). It asks nobody: on a miss the caller does, and puts in what came. It
// has no clock; every call is handed the time since the process started. Callers
// are the steps of the policy and the resolver. A hit takes no lock and allocates
// nothing.
//
// Entries lie outside the garbage collector's sight. A shard has an index, a
// table of ghosts, and segments that are filled from front to back and emptied
// whole: entries that were asked for are copied on, the others go (S3-FIFO). A
// segment is filled again when no reader can be in it any more (epoch.go).
package cache

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Config is what a cache is made from. Size is needed; the zero value of all
// else is sensible, with the default in brackets.
type Config struct {
	Size           int64         // octets of memory for everything, at least MinSize
	MinTTL, MaxTTL time.Duration // every TTL is raised or lowered to these [0, 1 day]
	MaxNegativeTTL time.Duration // no negative response lives longer (RFC 2308 §5) [3 h]
	MaxStale       time.Duration // how long after its end an entry may still be used (RFC 8767) [0, never]
	Immediate      bool          // stale entries are answered at once and refreshed behind it
	Prefetch       bool          // popular entries are refreshed shortly before their end
	StaleTTL       uint32        // of stale data, in seconds [30, RFC 8767 §4]
	// Loose keeps negative responses without SOA as well: NXDOMAIN for 30 s, a
	// response without answer as long as its TTLs say, 5 minutes at most.
	Loose bool
}

// MinSize is the smallest size of a cache.
const MinSize = 1 << 20

// Bounds of the number of shards: each has about shardSize octets.
const (
	shardSize = 4 << 20
	maxShards = 64
)

// ErrSize is the error of New for a size below MinSize.
var ErrSize = errors.New("smaller than 1 MiB")

// Cache is a cache of responses. All methods but Close may be called at once
// from many goroutines.
type Cache struct {
	conf     Config
	limits   limits
	mask     uint64 // of the shard's number
	shards   []shard
	epoch    *epoch
	mem      []byte
	cleanup  runtime.Cleanup // of mem; methods that read it end with KeepAlive
	readings readings
}

// New makes a cache. Its memory is asked of the system at once and used as the
// cache fills.
func New(c Config) (*Cache, error) {
	if c.Size < MinSize {
		return nil, fmt.Errorf("making a cache of %d octets: %w", c.Size, ErrSize)
	}
	if c.MaxTTL == 0 {
		c.MaxTTL = 24 * time.Hour
	}
	if c.MaxNegativeTTL == 0 {
		c.MaxNegativeTTL = 3 * time.Hour
	}
	if c.StaleTTL == 0 {
		c.StaleTTL = staleTTL
	}
	n := 1
	for n < maxShards && int64(n)*2*shardSize <= c.Size {
		n *= 2
	}
	l := plan(c.Size / int64(n))
	mem, err := reserve(int(l.size) * n)
	if err != nil {
		return nil, fmt.Errorf("reserving %d octets for the cache: %w", c.Size, err)
	}
	cache := &Cache{
		conf: c, limits: limits{seconds(c.MinTTL), seconds(c.MaxTTL), seconds(c.MaxNegativeTTL), c.Loose}, mask: uint64(n - 1),
		shards: make([]shard, n), epoch: new(epoch), mem: mem,
	}
	for i := range cache.shards {
		cache.shards[i].open(l, mem[i*int(l.size):(i+1)*int(l.size)], cache.epoch, c.MaxStale)
	}
	cache.cleanup = runtime.AddCleanup(cache, func(mem []byte) { _ = release(mem) }, mem)
	return cache, nil
}

// Close gives the memory back. Nobody may use the cache at that time or after. A
// cache that nobody refers to any more gives it back by itself: so it can be
// replaced while requests still use it.
func (c *Cache) Close() error {
	c.cleanup.Stop()
	mem := c.mem
	c.mem, c.shards = nil, nil
	if err := release(mem); err != nil {
		return fmt.Errorf("releasing the memory of the cache: %w", err)
	}
	return nil
}

// seconds is d in whole seconds, as a TTL.
func seconds(d time.Duration) uint32 {
	return uint32(min(max(d/time.Second, 0), maxTTL))
}

// maxTTL is the largest TTL (RFC 2181 §8).
const maxTTL = 1<<31 - 1

// Key is what an entry is found by. The cache keeps nothing of it.
type Key struct {
	Name        wire.Name
	Hash        uint64 // of Name, as wire.Labels.Hash[0] has it
	Type, Class uint16
	View        uint32
	CD          bool         // checking disabled: such data is never given to who wants it checked
	Scope       netip.Prefix // the client's subnet (RFC 7871); the zero value where it does not matter
}

// Verdict is what a look-up found.
type Verdict uint8

// What a look-up found.
const (
	Miss    Verdict = iota // nothing of use
	Fresh                  // the response is in the Builder
	Stale                  // the response is in the Builder, with TTLs of 30 s (RFC 8767 §4)
	Expired                // stale data is there; the upstream is to be tried first, and then Stale
)

// Hit is the result of a look-up. All but Verdict is of the entry found, and set
// for Fresh and Stale only.
type Hit struct {
	Verdict
	Rcode    wire.Rcode
	EDE      uint16 // extended error of the upstream (RFC 8914) plus one; 0 is none
	Upstream uint16 // as it was put in
	Flags    uint16 // wire.FlagAD where the stored response had it
	Refresh  bool   // the caller, and nobody else, is to ask the upstream again behind this answer
}

// Stored is what became of a response.
type Stored uint8

// What became of a response.
const (
	Kept         Stored = iota
	NotCacheable        // it says so: TTL 0, truncated, negative without SOA, another code
	Malformed           // it is no sound response to the question
	NoRoom              // too large, or no segment was free: nothing is waited for
	KeptOld             // a failure, or older data, and what is there is better
)
