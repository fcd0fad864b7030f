package limit

import (
	"net/netip"
	"testing"
	"time"
)

// calls are the calls that a query may make, each with a warm table.
func calls() map[string]func() {
	v4, v6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	rate := newRate(RateConfig{PerSecond: 1000, Burst: 100}, testKey)
	denying := newRate(RateConfig{PerSecond: 1, Burst: 1}, testKey)
	rrl := newRRL(RRLConfig{PerSecond: 5, Slip: 2}, testKey)
	known := newKnown(1<<16, testKey)
	known.Add(v4, time.Hour)
	shed := NewShed(100)
	full := NewShed(0)
	cookies := NewCookies([16]byte{1}, [16]byte{2})
	var good, made [CookieSize]byte
	cookies.Make(&good, good[:], v6, 1000)
	now, n := time.Hour, 0
	return map[string]func(){
		"Take":           func() { now += time.Millisecond; rate.Take(v4, now) },
		"TakeDenied":     func() { denying.Take(v6, time.Hour) },
		"TakeNew":        func() { n++; rate.Take(client(n&0xffffff), now) },
		"CheckRRL":       func() { now += time.Second; rrl.Check(v4, Answer, 7, now) },
		"CheckRRLOver":   func() { rrl.Check(v6, NXDomain, 7, now) },
		"CookieClient":   func() { cookies.Check(good[:8], v6, 1000) },
		"CookieGood":     func() { cookies.Check(good[:], v6, 1000) },
		"CookieBad":      func() { cookies.Check(good[:], v4, 1000) },
		"CookieMake":     func() { cookies.Make(&made, good[:], v6, 1000) },
		"KnownAdd":       func() { n++; known.Add(client(n&0xffffff), now) },
		"KnownAddAgain":  func() { known.Add(v4, time.Hour) },
		"KnownHas":       func() { known.Has(v4, time.Hour) },
		"ShedEnterLeave": func() { shed.Enter(false); shed.Leave() },
		"ShedFull":       func() { full.Enter(false) },
	}
}

func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	for name, call := range calls() {
		if n := testing.AllocsPerRun(100, call); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func Benchmark(b *testing.B) {
	for name, call := range calls() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

func BenchmarkTakeParallel(b *testing.B) {
	l := newRate(RateConfig{PerSecond: 1000}, testKey)
	b.RunParallel(func(pb *testing.PB) {
		for now := time.Hour; pb.Next(); now += time.Microsecond {
			l.Take(client(1), now)
		}
	})
}
