package limit

import (
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// verdicts asks n times at once.
func verdicts(l *RRL, n int, now time.Duration) string {
	var all []byte
	for range n {
		all = append(all, "STD"[l.Check(client(1), Answer, 7, now)])
	}
	return string(all)
}

// S is sent, T truncated, D dropped.
func TestRRLSlip(t *testing.T) {
	for _, c := range []struct {
		name string
		slip int
		want string
	}{
		{"none", 0, "SSSDDDDDD"},
		{"all", 1, "SSSTTTTTT"},
		{"every second", 2, "SSSTDTDTD"},
		{"every third", 3, "SSSTDDTDD"},
		{"negative", -1, "SSSDDDDDD"},
	} {
		l := newRRL(RRLConfig{PerSecond: 3, Slip: c.slip}, testKey)
		if got := verdicts(l, 9, time.Hour); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	l := newRRL(RRLConfig{PerSecond: 1, Slip: 100}, testKey)
	if got := verdicts(l, 17, time.Hour); got != "STDDDDDDDDDDDDDDT" {
		t.Errorf("every 15th at most: %s", got)
	}
}

func TestRRLWindow(t *testing.T) {
	l := newRRL(RRLConfig{PerSecond: 4, Window: 5 * time.Second}, testKey)
	for _, c := range []struct {
		name string
		ms   int
		want string
	}{
		{"first second", 0, "SSSSDD"},
		{"who asks too much pays for it", 1000, "SSDDDD"}, // 6 taken, 4 came back
		{"an attack", 1000, "DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD"},
		{"within the window", 5900, "D"},
		{"after it, and the second of the limit", 7250, "SSSSD"},
		{"long after", 100_000, "SSSSD"},
	} {
		if got := verdicts(l, len(c.want), time.Hour+time.Duration(c.ms)*time.Millisecond); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestRRLWhatIsCountedTogether(t *testing.T) {
	type response struct {
		addr string
		kind Kind
		name uint64
	}
	one := response{"192.0.2.1", Answer, 7}
	for _, c := range []struct {
		name          string
		first, second response
		want          Verdict
	}{
		{"the same", one, one, Drop},
		{"another address of the network", one, response{"192.0.2.255", Answer, 7}, Drop},
		{"another network", one, response{"192.0.3.1", Answer, 7}, Send},
		{"another name", one, response{"192.0.2.1", Answer, 8}, Send},
		{"another kind", one, response{"192.0.2.1", NXDomain, 7}, Send},
		{"a referral", one, response{"192.0.2.1", Referral, 7}, Send},
		{"an error", response{"192.0.2.1", Answer, 0}, response{"192.0.2.1", Error, 0}, Send},
		{"errors, whatever the name", response{"192.0.2.1", Error, 1}, response{"192.0.2.1", Error, 2}, Drop},
		{"IPv6", response{"2001:db8::1", NXDomain, 7}, response{"2001:db8:0:ff::1", NXDomain, 7}, Drop},
		{"another network of IPv6", response{"2001:db8::1", NXDomain, 7}, response{"2001:db8:0:100::1", NXDomain, 7}, Send},
		{"mapped", one, response{"::ffff:192.0.2.9", Answer, 7}, Drop},
	} {
		l := newRRL(RRLConfig{PerSecond: 1}, testKey)
		l.Check(netip.MustParseAddr(c.first.addr), c.first.kind, c.first.name, time.Hour)
		if got := l.Check(netip.MustParseAddr(c.second.addr), c.second.kind, c.second.name, time.Hour); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestRRLConfig(t *testing.T) {
	sent := func(name string, c RRLConfig, want [kinds]int) {
		t.Helper()
		l := newRRL(c, testKey)
		var got [kinds]int
		for kind := range kinds {
			for range 50 {
				if l.Check(client(1), kind, 1, time.Hour) == Send {
					got[kind]++
				}
			}
		}
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	sent("no limit", RRLConfig{Errors: 3}, [kinds]int{50, 50, 50, 50})
	sent("one limit", RRLConfig{PerSecond: 5}, [kinds]int{5, 5, 5, 5})
	sent("own limits", RRLConfig{PerSecond: 5, Errors: 7, NXDomains: 11}, [kinds]int{Answer: 5, NXDomain: 11, Referral: 5, Error: 7})
	sent("far apart", RRLConfig{PerSecond: 1, Errors: math.MaxInt, NXDomains: 1, Window: 1000 * time.Hour}, [kinds]int{1, 1, 1, 50})
	if NewRRL(RRLConfig{}) != nil || NewRRL(RRLConfig{PerSecond: 1}) == nil {
		t.Error("nil is no limit, and only no limit is nil")
	}
}

// Of any second and a time before it, no more is sent than the limit; who stays
// below it gets everything; of what is over it, one in Slip at most is sent cut.
func TestRRLBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := RRLConfig{
			PerSecond: rapid.IntRange(1, 200).Draw(rt, "rate"),
			NXDomains: rapid.IntRange(0, 200).Draw(rt, "rate of NXDOMAIN"),
			Slip:      rapid.IntRange(0, 10).Draw(rt, "slip"),
			Table:     256,
		}
		l := newRRL(c, testKey)
		now := time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(rt, "start"))
		var sent []time.Duration
		count := [3]int{}
		modest := now
		for range 200 {
			now += time.Duration(rapid.Int64Range(0, 2*int64(time.Second)/int64(c.PerSecond)).Draw(rt, "step"))
			v := l.Check(client(1), Answer, 1, now)
			count[v]++
			if v == Send {
				sent = append(sent, now)
			}
			if now-modest >= time.Second/time.Duration(c.PerSecond)+1 {
				if modest = now; l.Check(client(1), Referral, 1, now) != Send {
					rt.Fatalf("%+v: what is below the limit was not sent", c)
				}
			}
		}
		for i, from := range sent {
			for j, to := range sent[i:] {
				if most := (1+(to-from).Seconds())*float64(c.PerSecond)*1.02 + 1./64; float64(j+1) > most {
					rt.Fatalf("%+v: %d sent from %v to %v, at most %.2f", c, j+1, from, to, most)
				}
			}
		}
		over := count[Slip] + count[Drop]
		if want := (over + max(c.Slip, 1) - 1) / max(c.Slip, 1); c.Slip > 0 && count[Slip] != want || c.Slip == 0 && count[Slip] != 0 {
			rt.Fatalf("%+v: %d of %d slipped", c, count[Slip], over)
		}
	})
}

func TestRRLAtOnce(t *testing.T) {
	l := newRRL(RRLConfig{PerSecond: 300, Slip: 2}, testKey)
	var count [3]atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				count[l.Check(client(1), NXDomain, 9, time.Hour)].Add(1)
			}
		})
	}
	all.Wait()
	got := []int64{count[Send].Load(), count[Slip].Load(), count[Drop].Load()}
	if !slices.Equal(got, []int64{300, 650, 650}) {
		t.Errorf("sent, slipped, dropped: %v", got)
	}
}
