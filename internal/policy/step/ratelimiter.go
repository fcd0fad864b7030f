package step

import (
	"fmt"
	"math"
	"time"

	"github.com/waymark-dns/waymark/internal/limit"
	"github.com/waymark-dns/waymark/internal/serve"
)

// RateLimiterArgs says how much clients may ask, and which prefixes are a client.
type RateLimiterArgs struct {
	QPS   float64 `key:"qps"`
	Burst int     `key:"burst"`
	Mask4 int     `key:"mask4"`
	Mask6 int     `key:"mask6"`
}

// RateLimiter matches the queries of clients that are within the limit.
type RateLimiter struct {
	rate *limit.Rate
	pace float64 // by which time goes slower, for rates that are no whole number
}

// NewRateLimiter makes a matcher that counts for itself.
func NewRateLimiter(args *RateLimiterArgs) (any, error) {
	qps := positive(args.QPS, 20)
	whole := math.Ceil(qps)
	c := limit.RateConfig{PerSecond: int(min(whole, math.MaxInt32)), Burst: positive(args.Burst, 40)}
	var err error
	if c.V4, err = MaskLength("mask4", args.Mask4, 32, 32); err != nil {
		return nil, err
	}
	if c.V6, err = MaskLength("mask6", args.Mask6, 48, 128); err != nil {
		return nil, err
	}
	return &RateLimiter{limit.NewRate(c), qps / whole}, nil
}

// MaskLength is the length of a prefix; 0 is def.
func MaskLength(key string, n, def, most int) (int, error) {
	if n < 0 || n > most {
		return 0, fmt.Errorf("reading %s %d: not from 0 to %d", key, n, most)
	}
	return positive(n, def), nil
}

// Match is part of policy.Matcher.
func (a *RateLimiter) Match(r *serve.Request) bool {
	client := r.Client.Addr()
	return !client.IsValid() || a.rate.Take(client, time.Duration(float64(r.At)*a.pace))
}
