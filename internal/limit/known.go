package limit

import (
	"math"
	"net/netip"
	"sync/atomic"
	"time"
)

// Known remembers which clients were answered lately, so that they come first
// when there is not room for all. A client is an address, or a /56 of IPv6. Many
// may ask it at once. A nil Known knows nobody.
//
// An address that is forged is answered once and then hardly again. So clients
// seen again go last when the table is full: a flood of addresses replaces its own,
// and not those that were known before it. Still, what came by UDP without a cookie proves nothing; this is a
// preference, no access rule.
type Known struct {
	words []atomic.Uint64
	key   sipKey
	mask  mask
}

// A client is one word: tag (31 bits) | seen again (1 bit) | seconds (32 bits).
const (
	seenAgain     = 1 << 32
	knownTagShift = 33
	knownFor      = 10 * 60 // seconds
	knownStep     = 2       // seconds between two notes of one client: a busy one costs no writes
)

// NewKnown makes room for at least so many clients, 8 octets each.
func NewKnown(places int) *Known { return newKnown(places, randomKey()) }

func newKnown(places int, key sipKey) *Known {
	return &Known{words: make([]atomic.Uint64, places2(places)), key: key, mask: newMask(32, 56, 32, 56)}
}

// Add notes that a client was answered. now is as for Rate.Take.
func (k *Known) Add(addr netip.Addr, now time.Duration) {
	if k == nil {
		return
	}
	s, tag := k.find(addr)
	second := seconds(now)
	for range tries {
		place, word, known := look(s, tag, second)
		fresh := tag<<knownTagShift | uint64(second)
		if known {
			if age(word, second) < knownStep {
				return
			}
			fresh |= seenAgain
		}
		if s[place].CompareAndSwap(word, fresh) {
			return
		}
	}
}

// Has says whether the client was answered within the last ten minutes.
func (k *Known) Has(addr netip.Addr, now time.Duration) bool {
	if k == nil {
		return false
	}
	s, tag := k.find(addr)
	_, _, known := look(s, tag, seconds(now))
	return known
}

func (k *Known) find(addr netip.Addr) (s *set, tag uint64) {
	hi, lo := k.mask.of(addr)
	hash := k.key.sum13(hi, lo, 0)
	i := int(hash) & (len(k.words) - 1) &^ (ways - 1)
	return (*set)(k.words[i:]), max(hash>>knownTagShift, 1)
}

// look reads the place of a tag seen in time. If there is none, place and word
// are what to replace: what is free or out of time, then the oldest of those
// seen once, then the oldest.
func look(s *set, tag uint64, second uint32) (place int, word uint64, known bool) {
	oldest := int64(math.MinInt64)
	for i := range s {
		w := s[i].Load()
		a := int64(age(w, second))
		switch {
		case w == 0 || a > knownFor:
			a = math.MaxInt64
		case w>>knownTagShift == tag:
			return i, w, true
		case w&seenAgain != 0:
			a -= math.MaxUint32
		}
		if a > oldest {
			place, word, oldest = i, w, a
		}
	}
	return place, word, false
}

// age is how many seconds ago a client was seen; the clock of another worker may
// be ahead.
func age(word uint64, second uint32) int32 { return int32(second - uint32(word)) }

func seconds(now time.Duration) uint32 { return uint32(max(now, 0) / time.Second) }
