package limit

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// A bucket is one word, so that one compare-and-swap changes all of it:
//
//	tag of the key (16 bits) | counter (4 bits) | time (44 bits)
//
// The time is that of the generic cell rate algorithm (ITU-T I.371, annex A):
// when the bucket will be full again if nothing more is taken. Each token taken
// moves it on by the token's cost; how far it is ahead of now is how much is
// missing. A bucket whose time is not ahead is full, and then it says nothing:
// an unknown key counts as a full bucket too. So to replace a full bucket loses
// nothing (a counter starts again), and a table never has to be cleaned.
//
// A key may stand in the four places of one set. Where none is free, the bucket
// whose time is furthest back goes: the one that has been full longest, or else
// the one that lacks least. A flood of sources that ask once leaves buckets that
// lack one token, which replace each other; those of clients at their limit stay.
// Two workers that enter one key while others change the set may both succeed;
// then the second bucket is not found again, and the client gains its tokens.
const (
	timeBits   = 44
	timeMask   = 1<<timeBits - 1
	countShift = timeBits
	countMax   = 15
	tagShift   = timeBits + 4
	ways       = 4
)

// Time counts in units of 1/64 of the time in which a token comes: costs are
// whole numbers however odd the rate, and rounding is at most 1/64 of a token.
const unitsPerToken = 64

// maxRate keeps times within 44 bits for days; at 1,000 tokens a second they
// last 8.7 years (2^38 / rate seconds). Then they start again, and a bucket that
// nobody touched for exactly so long counts as less than full.
const maxRate = 1 << 20

// clockSkew is by how many seconds the times that workers pass in may differ.
const clockSkew = 60

// set is the places where a key may stand.
type set = [ways]atomic.Uint64

// table is a fixed number of buckets.
type table struct {
	words   []atomic.Uint64
	key     sipKey
	scale   uint64 // units per nanosecond, times 2^64
	perSec  uint64 // units per second
	horizon uint64 // how far ahead a time may be, in units; beyond, it is past
}

// newTable makes a table of at least so many places, rounded up to a power of
// two. The fastest rate of its buckets sets the unit, longest is the greatest
// time in seconds by which a bucket's time may be ahead.
func newTable(places, rate int, longest float64, key sipKey) table {
	t := table{words: make([]atomic.Uint64, places2(places)), key: key}
	t.perSec = uint64(rate) * unitsPerToken
	t.scale, _ = bits.Div64(t.perSec, 0, uint64(time.Second))
	t.scale++ // rounded up: the time of a whole token is never counted as less
	t.horizon = uint64((longest + clockSkew) * float64(t.perSec))
	return t
}

// places2 rounds a number of places up to a power of two, at least one set.
func places2(n int) int {
	n = min(max(n, ways), 1<<30)
	return 1 << bits.Len(uint(n-1))
}

// at is a time in units.
func (t *table) at(now time.Duration) uint64 {
	u, _ := bits.Mul64(uint64(max(now, 0)), t.scale)
	return u & timeMask
}

// find is the set of a hash and its tag, which is never 0, so that an empty word
// belongs to nobody.
func (t *table) find(hash uint64) (s *set, tag uint64) {
	i := int(hash) & (len(t.words) - 1) &^ (ways - 1)
	return (*set)(t.words[i:]), max(hash>>tagShift, 1)
}

// look reads the place of a tag. If the tag is not in the set, known is false,
// and place and word are those of the bucket to replace.
func (t *table) look(s *set, tag, now uint64) (place int, word uint64, known bool) {
	least := int64(math.MaxInt64)
	for i := range s {
		w := s[i].Load()
		if w>>tagShift == tag {
			return i, w, true
		}
		if ahead := t.ahead(w, now); ahead < least {
			place, word, least = i, w, ahead
		}
	}
	return place, word, false
}

// ahead is by how many units the time of a bucket is ahead of now; where it is
// not, the bucket is full.
func (t *table) ahead(word, now uint64) int64 {
	d := (word - now) & timeMask
	if d <= t.horizon {
		return int64(d)
	}
	return int64(d) - (timeMask + 1)
}

// bucket puts a word together.
func bucket(tag, count, at uint64) uint64 {
	return tag<<tagShift | count<<countShift | at&timeMask
}
