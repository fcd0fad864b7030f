package limit

import (
	"net/netip"
	"time"
)

// Kind is what a response says, as far as limiting goes.
type Kind uint8

// The kinds of response. Each is counted for itself: a client that gets too many
// of one still gets the others.
const (
	Answer   Kind = iota // counted per QNAME and QTYPE; of a wildcard, its owner
	NXDomain             // counted per zone: the names are random in an attack
	Referral             // counted per zone cut
	Error                // counted per client only: SERVFAIL, REFUSED, FORMERR
	kinds
)

// Verdict is what is to become of a response.
type Verdict uint8

// The verdicts.
const (
	Send Verdict = iota // as it is
	Slip                // empty and truncated, so that an honest client comes back over TCP
	Drop                // not at all
)

// RRLConfig says how many alike responses a client may get.
type RRLConfig struct {
	PerSecond int           // per client, kind and name; below 1 there is no limit
	Errors    int           // per second; 0 is as PerSecond
	NXDomains int           // per second; 0 is as PerSecond
	Slip      int           // every n-th over the limit is sent truncated; 0 is none, 1 all, 15 the most
	V4, V6    int           // prefix lengths that make a client; 0 is 24 and 56
	Window    time.Duration // for how long a client pays for the past; 0 is 15 seconds, an hour the most
	Table     int           // buckets in the table, 8 octets each; 0 is 65,536
}

// RRL is response rate limiting, against the use of the server as an amplifier:
// the client is the victim whose address was forged, and its own queries must
// get through. It is for UDP without a valid server cookie only. Many may ask it
// at once. A nil RRL sends everything.
type RRL struct {
	table table
	mask  mask
	slip  uint64
	most  int64 // in units: no bucket lacks more
	kinds [kinds]kindLimit
}

// kindLimit is the rate of a kind, in units of the table.
type kindLimit struct {
	cost  int64 // of a response
	limit int64 // a bucket further ahead is over the limit
}

// NewRRL makes a limit, or nil for none. Rates above 1,048,576 count as that.
func NewRRL(c RRLConfig) *RRL { return newRRL(c, randomKey()) }

func newRRL(c RRLConfig, key sipKey) *RRL {
	if c.PerSecond < 1 {
		return nil
	}
	if c.Table < 1 {
		c.Table = defaultPlaces
	}
	if c.Window <= 0 {
		c.Window = 15 * time.Second
	}
	rates := [kinds]int{Answer: c.PerSecond, Referral: c.PerSecond, NXDomain: c.NXDomains, Error: c.Errors}
	fastest := 1
	for k := range rates {
		if rates[k] < 1 {
			rates[k] = c.PerSecond
		}
		rates[k] = min(rates[k], maxRate)
		fastest = max(fastest, rates[k])
	}
	// A bucket may lack the tokens of one second without harm, and those of the
	// window as a penalty.
	longest := 1 + min(c.Window, time.Hour).Seconds()
	l := &RRL{
		table: newTable(c.Table, fastest, longest, key),
		mask:  newMask(c.V4, c.V6, 24, 56),
		slip:  uint64(min(max(c.Slip, 0), countMax)),
	}
	l.most = int64(longest * float64(l.table.perSec))
	for k, rate := range rates {
		cost := int64(l.table.perSec) / int64(rate) // rounded down by 1/64 at most, for the client
		l.kinds[k] = kindLimit{cost: cost, limit: int64(rate-1) * cost}
	}
	return l
}

// Check counts a response and says what is to become of it. nameHash is a hash
// of what its kind is counted by. A response over the limit counts too: who keeps
// asking stays limited until less than the limit is asked for, or nothing for the
// window, as BIND does it.
func (l *RRL) Check(addr netip.Addr, kind Kind, nameHash uint64, now time.Duration) Verdict {
	if l == nil {
		return Send
	}
	if kind == Error {
		nameHash = 0
	}
	t, k := &l.table, &l.kinds[kind]
	hi, lo := l.mask.of(addr)
	// The kind takes the place of two bits of the hash, of 64.
	s, tag := t.find(t.key.sum13(hi, lo, nameHash<<2|uint64(kind)))
	at := t.at(now)
	known := false
	for range tries {
		var place int
		var word, slips uint64
		var ahead int64
		if place, word, known = t.look(s, tag, at); known {
			ahead = max(t.ahead(word, at), 0)
			slips = word >> countShift & countMax
		}
		verdict := Send
		if ahead > k.limit {
			verdict, slips = l.over(slips)
		}
		ahead = min(ahead+k.cost, l.most)
		if s[place].CompareAndSwap(word, bucket(tag, slips, at+uint64(ahead))) {
			return verdict
		}
	}
	if known { // a bucket that changes so often is far above any rate
		return Drop
	}
	return Send
}

// over is the verdict over the limit and the next state of the counter. The
// first slips: an honest client needs no second attempt.
func (l *RRL) over(slips uint64) (Verdict, uint64) {
	next := slips + 1
	if next >= l.slip {
		next = 0
	}
	if slips == 0 && l.slip > 0 {
		return Slip, next
	}
	return Drop, next
}
