package act

import (
	"net/netip"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
	"github.com/waymark-dns/waymark/internal/serve"
)

func TestRateLimiter(t *testing.T) {
	match := func(m any, client string, when time.Duration) bool {
		r := &serve.Request{At: when}
		if client != "" {
			r.Client = netip.AddrPortFrom(netip.MustParseAddr(client), 4096)
		}
		return m.(policy.Matcher).Match(r)
	}
	// burst is how many of 100 queries at one time are within the limit.
	burst := func(m any, client string, when time.Duration) (n int) {
		for range 100 {
			if match(m, client, when) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name          string
		set           func(*step.RateLimiterArgs)
		client, other string
		first         int // at once
		second        int // of the same client a second later
		others        int // of the other client, at once
	}{
		{"as it is: 20 a second, 40 at once", func(*step.RateLimiterArgs) {}, "192.0.2.1", "192.0.2.2", 40, 20, 40},
		{"0 is the default", func(a *step.RateLimiterArgs) { *a = step.RateLimiterArgs{} }, "192.0.2.1", "192.0.2.2", 40, 20, 40},
		{"IPv4 in IPv6 is the same client", func(*step.RateLimiterArgs) {}, "192.0.2.1", "::ffff:192.0.2.1", 40, 20, 0},
		{"IPv6 clients are a /48", func(*step.RateLimiterArgs) {}, "2001:db8::1", "2001:db8:0:ffff::1", 40, 20, 0},
		{"beyond the /48", func(*step.RateLimiterArgs) {}, "2001:db8::1", "2001:db8:1::1", 40, 20, 40},
		{"mask4", func(a *step.RateLimiterArgs) { a.Mask4 = 24 }, "192.0.2.1", "192.0.2.2", 40, 20, 0},
		{"mask6", func(a *step.RateLimiterArgs) { a.Mask6 = 128 }, "2001:db8::1", "2001:db8::2", 40, 20, 40},
		{"qps and burst", func(a *step.RateLimiterArgs) { a.QPS, a.Burst = 3, 5 }, "192.0.2.1", "192.0.2.2", 5, 3, 5},
		{"half a query a second", func(a *step.RateLimiterArgs) { a.QPS, a.Burst = 0.5, 2 }, "192.0.2.1", "192.0.2.2", 2, 0, 2},
		{"two and a half", func(a *step.RateLimiterArgs) { a.QPS, a.Burst = 2.5, 9 }, "192.0.2.1", "192.0.2.2", 9, 2, 9},
		{"no address: no limit", func(*step.RateLimiterArgs) {}, "", "", 100, 100, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mustObject(t, plainEnv(), "rate_limiter", c.set)
			first, others, second := burst(m, c.client, time.Minute), burst(m, c.other, time.Minute), burst(m, c.client, time.Minute+time.Second)
			if first != c.first || others != c.others || second != c.second {
				t.Errorf("%d, of the other client %d, a second later %d; want %d, %d, %d", first, others, second, c.first, c.others, c.second)
			}
		})
	}
	half := mustObject(t, plainEnv(), "rate_limiter", func(a *step.RateLimiterArgs) { a.QPS, a.Burst = 0.5, 1 })
	if !match(half, "192.0.2.1", 0) || match(half, "192.0.2.1", 1900*time.Millisecond) || !match(half, "192.0.2.1", 2100*time.Millisecond) {
		t.Error("half a query a second is not one every two seconds")
	}
}
