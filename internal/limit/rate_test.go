package limit

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// testKey makes the places of clients the same in every run.
var testKey = sipKey{0x0706050403020100, 0x0f0e0d0c0b0a0908}

// client is the n-th IPv4 client.
func client(n int) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 0x0a000000+uint32(n))))
}

func TestRateByHand(t *testing.T) {
	l := newRate(RateConfig{PerSecond: 10, Burst: 3}, testKey)
	a := client(1)
	for i, c := range []struct {
		ms   int
		want bool
	}{
		{1000, true}, {1000, true}, {1000, true}, {1000, false}, // the burst
		{1099, false}, {1100, true}, {1100, false}, // a token each 100 ms
		{1300, true}, {1300, true}, {1300, false},
		{9000, true}, {9000, true}, {9000, true}, {9000, false}, // no more than the burst
	} {
		if got := l.Take(a, time.Duration(c.ms)*time.Millisecond); got != c.want {
			t.Errorf("step %d at %d ms: %v", i, c.ms, got)
		}
	}
}

func TestRateConfig(t *testing.T) {
	granted := func(name string, c RateConfig, want int) {
		t.Helper()
		l, n := newRate(c, testKey), 0
		for range 100 {
			if l.Take(client(1), -time.Second) { // no clock is that early; it counts as the start
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d granted at once, want %d", name, n, want)
		}
	}
	granted("no limit", RateConfig{Burst: 5}, 100)
	granted("burst as rate", RateConfig{PerSecond: 7}, 7)
	granted("smallest", RateConfig{PerSecond: 1, Burst: 1, Clients: 1}, 1)
	granted("greatest", RateConfig{PerSecond: math.MaxInt, Burst: math.MaxInt}, 100)
	granted("slow with a great burst", RateConfig{PerSecond: 1, Burst: math.MaxInt}, 100)
	if NewRate(RateConfig{}) != nil || NewRate(RateConfig{PerSecond: 1}) == nil {
		t.Error("nil is no limit, and only no limit is nil")
	}
	if n := len(newRate(RateConfig{PerSecond: 1, Clients: 1000}, testKey).table.words); n != 1024 {
		t.Errorf("%d places for 1,000 clients", n)
	}
}

// Who is one client.
func TestClients(t *testing.T) {
	same := func(c RateConfig, a, b string, want bool) {
		t.Helper()
		c.PerSecond, c.Burst = 1, 1
		l := newRate(c, testKey)
		l.Take(netip.MustParseAddr(a), 0)
		if got := !l.Take(netip.MustParseAddr(b), 0); got != want {
			t.Errorf("%s and %s are one client of %+v: %v", a, b, c, got)
		}
	}
	def := RateConfig{}
	same(def, "192.0.2.1", "192.0.2.1", true)
	same(def, "192.0.2.1", "192.0.2.0", false)
	same(def, "192.0.2.1", "::ffff:192.0.2.1", true)
	same(def, "192.0.2.1", "::192.0.2.1", false)
	same(def, "2001:db8::1", "2001:db8:0:ff:1:2:3:4", true)
	same(def, "2001:db8::1", "2001:db8:0:100::1", false)
	same(def, "fe80::1%eth0", "fe80::1%eth1", true)
	same(RateConfig{V4: 24}, "192.0.2.1", "192.0.2.255", true)
	same(RateConfig{V4: 24}, "192.0.2.1", "192.0.3.1", false)
	same(RateConfig{V4: 24}, "2001:db8::1", "2001:db9::1", false)
	same(RateConfig{V4: 1}, "128.0.0.1", "192.0.3.1", true)
	same(RateConfig{V6: 64}, "2001:db8::1", "2001:db8::ffff:1:2:3", true)
	same(RateConfig{V6: 64}, "2001:db8::1", "2001:db8:0:1::1", false)
	same(RateConfig{V6: 96}, "2001:db8::1", "2001:db8::ffff:ffff", true)
	same(RateConfig{V6: 96}, "2001:db8::1", "2001:db8::1:0:0", false)
	same(RateConfig{V6: 128}, "2001:db8::1", "2001:db8::2", false)
	same(RateConfig{V6: 129}, "2001:db8::1", "2001:db8::2", true) // out of range is the default
}

// Over any time, one client is granted at most what the limit promises.
func TestRateNeverGrantsMore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := RateConfig{PerSecond: rapid.IntRange(1, 100_000).Draw(rt, "rate"), Burst: rapid.IntRange(1, 20).Draw(rt, "burst"), Clients: 1 << 10}
		l := newRate(c, testKey)
		now := time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(rt, "start"))
		step := 2 * int64(time.Second) / int64(c.PerSecond)
		var grants []time.Duration
		for range 100 {
			now += time.Duration(rapid.Int64Range(0, step).Draw(rt, "step"))
			if l.Take(client(1), now) {
				grants = append(grants, now)
			}
		}
		for i, from := range grants {
			for j, to := range grants[i:] {
				most := float64(c.Burst) + (to-from).Seconds()*float64(c.PerSecond) + 1./64
				if got := j + 1; float64(got) > most {
					rt.Fatalf("%+v: %d grants from %v to %v, at most %.2f", c, got, from, to, most)
				}
			}
		}
	})
}

// A client that stays below its rate is never denied, whatever others do.
func TestRateNeverDeniesTheModest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := RateConfig{PerSecond: rapid.OneOf(rapid.IntRange(1, maxRate), rapid.SampledFrom([]int{10, 1000, 1_000_000})).Draw(rt, "rate"), Burst: rapid.IntRange(1, 3).Draw(rt, "burst"), Clients: 64}
		l := newRate(c, testKey)
		now := time.Duration(rapid.SampledFrom([]int64{0, int64(time.Hour), 123_456_789_012_345}).Draw(rt, "start"))
		step := (int64(time.Second) + int64(c.PerSecond) - 1) / int64(c.PerSecond)
		for range 100 {
			now += time.Duration(step + rapid.SampledFrom([]int64{0, 0, 0, 1, step / 3}).Draw(rt, "more"))
			for range rapid.IntRange(0, 10).Draw(rt, "others") {
				l.Take(client(2+rapid.IntRange(0, 100).Draw(rt, "other")), now)
			}
			if !l.Take(client(1), now) {
				rt.Fatalf("%+v: denied at %v", c, now)
			}
		}
	})
}

// To replace a full bucket loses nothing: as long as no more clients have taken
// something than there are places, one set decides as an endless table would.
func TestReplacingFullBucketsLosesNothing(t *testing.T) {
	c := RateConfig{PerSecond: 1, Burst: 4, Clients: ways}
	endless := c
	endless.Clients = 1 << 14
	tags := map[uint64]bool{}
	const clients = 12
	for i := range clients {
		l := newRate(endless, testKey)
		hi, lo := l.mask.of(client(i))
		_, tag := l.table.find(l.table.key.sum13(hi, lo, 0))
		tags[tag] = true
	}
	if len(tags) != clients {
		t.Fatal("two clients have one tag: choose other clients")
	}
	replaced := 0
	rapid.Check(t, func(rt *rapid.T) {
		small, large := newRate(c, testKey), newRate(endless, testKey)
		full := map[int]time.Duration{} // when a client's bucket is full again
		seen := map[int]bool{}
		now := time.Hour
		for range 100 {
			now += time.Duration(rapid.IntRange(0, 900).Draw(rt, "step")) * time.Millisecond
			lacking := 0
			for _, at := range full {
				if at > now {
					lacking++
				}
			}
			n := rapid.IntRange(0, clients-1).Draw(rt, "client")
			if full[n] <= now && lacking == ways {
				continue
			}
			got, want := small.Take(client(n), now), large.Take(client(n), now)
			if got != want {
				rt.Fatalf("client %d at %v: %v, want %v", n, now, got, want)
			}
			if want {
				full[n] = max(full[n], now) + time.Second + 20*time.Millisecond // and the rounding
			}
			if seen[n] = true; len(seen) > ways {
				replaced++
			}
		}
	})
	if replaced == 0 {
		t.Error("no bucket was replaced")
	}
}

// A flood of random sources does not wash out a client at its limit.
func TestFloodKeepsOffenders(t *testing.T) {
	c := RateConfig{PerSecond: 20, Burst: 40, Clients: 4096}
	l := newRate(c, testKey)
	random := rand.New(rand.NewPCG(1, 2))
	granted, denied := 0, 0
	const seconds = 3
	for ms := range seconds * 1000 {
		now := time.Hour + time.Duration(ms)*time.Millisecond
		for range 300 { // 300,000 a second: each place is asked for 73 times a second
			if !l.Take(client(1<<20+random.IntN(1<<27)), now) {
				denied++
			}
		}
		if l.Take(client(1), now) {
			granted++
		}
	}
	if most := c.Burst + seconds*c.PerSecond; granted > most {
		t.Errorf("the offender was granted %d, at most %d", granted, most)
	}
	// Sources that asked once share a bucket with others only by a clash of tags.
	if denied > 300*seconds*1000/1000 {
		t.Errorf("%d of the flood were denied", denied)
	}
}

// Times of workers differ, and start again.
func TestRateTime(t *testing.T) {
	l := newRate(RateConfig{PerSecond: 1000, Burst: 500}, testKey)
	take := func(now time.Duration) (n int) {
		for range 600 {
			if l.Take(client(1), now) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name string
		now  time.Duration
		want int
	}{
		{"burst", time.Hour, 500},
		{"a worker behind", time.Hour - 30*time.Second, 0},
		{"a worker ahead", time.Hour + 200*time.Millisecond, 200},
		{"before the times start again", turn(1000) - 300*time.Millisecond, 500},
		{"after the times started again", turn(1000) + 100*time.Millisecond, 400},
		{"a worker that is still before", turn(1000) - 200*time.Millisecond, 0},
		{"a while later", turn(1000) + time.Hour, 500},
	} {
		if got := take(c.now); got != c.want {
			t.Errorf("%s: %d granted, want %d", c.name, got, c.want)
		}
	}
}

// turn is when the times of a table start again.
func turn(rate int) time.Duration {
	return time.Duration(float64(uint64(1)<<timeBits) / float64(rate*unitsPerToken) * 1e9)
}

func TestRateAtOnce(t *testing.T) {
	l := newRate(RateConfig{PerSecond: 1, Burst: 500, Clients: 1 << 12}, testKey)
	var granted [4]atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 4 * 400 {
				if l.Take(client(i%4), time.Hour) {
					granted[i%4].Add(1)
				}
			}
		})
	}
	all.Wait()
	for i := range granted {
		if n := granted[i].Load(); n != 500 {
			t.Errorf("client %d was granted %d of 500", i, n)
		}
	}
}
