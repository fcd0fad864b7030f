package limit

import (
	"net/netip"
	"time"
)

// RateConfig says how much a client may ask.
type RateConfig struct {
	PerSecond int // tokens per second and client; below 1 there is no limit
	Burst     int // tokens of a full bucket; below 1 as PerSecond
	V4, V6    int // prefix lengths that make a client; 0 is 32 and 56
	Clients   int // buckets in the table, 8 octets each; 0 is 65,536
}

const defaultPlaces = 1 << 16

// Rate is a token bucket per client. Many may ask it at once. A nil Rate grants
// everything.
type Rate struct {
	table table
	mask  mask
	limit int64 // in units: a bucket further ahead has no whole token
}

// NewRate makes a limit, with all buckets full, or nil for no limit. Rates above
// 1,048,576 and bursts above 2^30 count as these.
func NewRate(c RateConfig) *Rate { return newRate(c, randomKey()) }

func newRate(c RateConfig, key sipKey) *Rate {
	if c.PerSecond < 1 {
		return nil
	}
	if c.Clients < 1 {
		c.Clients = defaultPlaces
	}
	rate := min(c.PerSecond, maxRate)
	if c.Burst < 1 {
		c.Burst = rate
	}
	burst := min(c.Burst, 1<<30)
	return &Rate{
		table: newTable(c.Clients, rate, float64(burst)/float64(rate), key),
		mask:  newMask(c.V4, c.V6, 32, 56),
		limit: int64(burst-1) * unitsPerToken,
	}
}

// Take takes a token of the client and says whether there was one. now is the
// time since some start, the same for all calls, and may differ by a minute
// between workers. A client that asks for no more than PerSecond is always
// granted; within T seconds one is granted at most Burst + T*PerSecond, save for
// 1/64 of a token, while the table has room for those that ask.
func (l *Rate) Take(addr netip.Addr, now time.Duration) bool {
	if l == nil {
		return true
	}
	t := &l.table
	hi, lo := l.mask.of(addr)
	s, tag := t.find(t.key.sum13(hi, lo, 0))
	at := t.at(now)
	known := false
	for range tries {
		var place int
		var word uint64
		var ahead int64
		if place, word, known = t.look(s, tag, at); known {
			ahead = max(t.ahead(word, at), 0)
		}
		if ahead > l.limit {
			return false
		}
		if s[place].CompareAndSwap(word, bucket(tag, 0, at+uint64(ahead)+unitsPerToken)) {
			return true
		}
	}
	return !known // a bucket that changes so often is far above any rate
}
