package plan

import (
	"fmt"
	"strings"
	"time"
)

// limit is the range of one number, duration or size in a T.
type limit[T any] struct {
	key      string // path inside of the T, as in Plan.Where
	min, max int64
	get      func(*T) int64
	show     func(int64) string
}

func count(n int64) string { return fmt.Sprint(n) }

func duration(n int64) string {
	if days := n / day; days > 0 && n%day == 0 {
		return fmt.Sprintf("%dd", days)
	}
	s := time.Duration(n).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// size is octets in the largest unit that holds them without a rest.
func size(n int64) string {
	const units = "KMGT"
	i := 0
	for ; n != 0 && n%1024 == 0 && i < len(units); i++ {
		n /= 1024
	}
	if i == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d%ciB", n, units[i-1])
}

const (
	millisecond = int64(time.Millisecond)
	second      = int64(time.Second)
	minute      = int64(time.Minute)
	hour        = int64(time.Hour)
	day         = 24 * hour
)

// The tables below have a row for every number, duration and size of a plan.
// The upper ends keep a slip of the pen from claiming the whole machine; the
// lower ends keep a server that still works.

var limits = []limit[Plan]{
	{"server.workers", 0, 1024, func(p *Plan) int64 { return int64(p.Server.Workers) }, count},
	// RFC 6891 §6.2.3: 512 is the least; more than 4096 only invites fragments.
	{"server.udp-size", 512, 4096, func(p *Plan) int64 { return int64(p.Server.UDPSize) }, count},
	{"server.parked", 1, 1 << 20, func(p *Plan) int64 { return int64(p.Server.Parked) }, count},
	{"server.drain", 0, 10 * minute, func(p *Plan) int64 { return int64(p.Server.Drain) }, duration},
	{"server.tcp.connections", 1, 1 << 20, func(p *Plan) int64 { return int64(p.Server.TCP.Conns) }, count},
	{"server.tcp.per-client", 1, 1 << 20, func(p *Plan) int64 { return int64(p.Server.TCP.PerClient) }, count},
	// One connection has 65,536 message IDs.
	{"server.tcp.in-flight", 1, 65535, func(p *Plan) int64 { return int64(p.Server.TCP.Inflight) }, count},
	{"server.tcp.idle", second, hour, func(p *Plan) int64 { return int64(p.Server.TCP.Idle) }, duration},
	{"server.tcp.total", second, day, func(p *Plan) int64 { return int64(p.Server.TCP.Total) }, duration},
	{"server.tcp.write", second, 5 * minute, func(p *Plan) int64 { return int64(p.Server.TCP.Write) }, duration},

	// Fewer than two leave nothing to go back to.
	{"history.keep", 2, 10_000, func(p *Plan) int64 { return int64(p.Server.History.Keep) }, count},

	{"limits.rate.queries-per-second", 0, 1_000_000, func(p *Plan) int64 { return int64(p.Limits.Rate.PerSecond) }, count},
	{"limits.rate.burst", 1, 10_000_000, func(p *Plan) int64 { return int64(p.Limits.Rate.Burst) }, count},
	// A shorter prefix would take whole parts of the Internet for one client.
	{"limits.rate.ipv4-prefix", 8, 32, func(p *Plan) int64 { return int64(p.Limits.Rate.IPv4) }, count},
	{"limits.rate.ipv6-prefix", 16, 128, func(p *Plan) int64 { return int64(p.Limits.Rate.IPv6) }, count},
	{"limits.rrl.responses-per-second", 0, 1_000_000, func(p *Plan) int64 { return int64(p.Limits.RRL.PerSecond) }, count},
	{"limits.rrl.slip", 0, 10, func(p *Plan) int64 { return int64(p.Limits.RRL.Slip) }, count},
	{"limits.rrl.ipv4-prefix", 8, 32, func(p *Plan) int64 { return int64(p.Limits.RRL.IPv4) }, count},
	{"limits.rrl.ipv6-prefix", 16, 128, func(p *Plan) int64 { return int64(p.Limits.RRL.IPv6) }, count},
}

// forwardLimits holds for each group.
var forwardLimits = []limit[Forward]{
	// Less would not reach the other side of the world and back; a client has
	// long left when more are over.
	{"timeout", 500 * millisecond, 30 * second, func(f *Forward) int64 { return int64(f.Timeout) }, duration},
}

// cacheLimits holds for a cache that is on.
var cacheLimits = []limit[Cache]{
	{"size", 1 << 20, 1 << 40, func(c *Cache) int64 { return c.Size }, size},
	// More would hide a change from clients longer than its owner can foresee.
	{"min-ttl", 0, hour, func(c *Cache) int64 { return int64(c.MinTTL) }, duration},
	// RFC 8767 §4: the advised cap.
	{"max-ttl", second, 7 * day, func(c *Cache) int64 { return int64(c.MaxTTL) }, duration},
	// RFC 2308 §5: more than a day has been found to be problematic.
	{"max-negative-ttl", 0, day, func(c *Cache) int64 { return int64(c.MaxNegative) }, duration},
	{"stale", 0, 30 * day, func(c *Cache) int64 { return int64(c.Stale) }, duration},
	{"interval", second, day, func(c *Cache) int64 { return int64(c.Interval) }, duration},
}

// queryLogLimits holds for a log of queries that is on.
var queryLogLimits = []limit[QueryLog]{
	// Less would be gone before anybody looks.
	{"keep", 1 << 20, 1 << 50, func(q *QueryLog) int64 { return q.Keep }, size},
	{"age", 0, 3650 * day, func(q *QueryLog) int64 { return int64(q.Age) }, duration},
}

// within adds a problem for each value of v that is out of its range. path is
// the one of v, name what people call it.
func within[T any](c *checker, path, name string, v *T, table []limit[T]) {
	for _, l := range table {
		if n := l.get(v); n < l.min || n > l.max {
			mend := fmt.Sprintf("write %s to %s", l.show(l.min), l.show(l.max))
			c.add(c.plan.At(path+l.key), mend, "%s: %s is out of range", name+l.key, l.show(n))
		}
	}
}

// ranges checks every number, duration and size.
func (c *checker) ranges() {
	within(c, "", "", c.plan, limits)
	for i := range c.plan.Forward {
		within(c, fmt.Sprintf("forward[%d].", i), "forward.", &c.plan.Forward[i], forwardLimits)
	}
	if c.plan.Cache.On {
		within(c, "cache.", "cache.", &c.plan.Cache, cacheLimits)
	}
	if c.plan.QueryLog.Dir != "" {
		within(c, "querylog.", "querylog.", &c.plan.QueryLog, queryLogLimits)
	}
}

// Range is the least and the greatest value that Check accepts for the key
// with this path, as text; ok is false for a key without a range. The path of a
// key in a list is that of all its entries: forward.timeout.
func Range(path string) (least, greatest string, ok bool) {
	if key, in := strings.CutPrefix(path, "forward."); in {
		return span(key, forwardLimits)
	}
	if key, in := strings.CutPrefix(path, "cache."); in {
		return span(key, cacheLimits)
	}
	if key, in := strings.CutPrefix(path, "querylog.sinks."); in {
		return span(key, sinkLimits)
	}
	if key, in := strings.CutPrefix(path, "querylog."); in {
		return span(key, queryLogLimits)
	}
	return span(path, limits)
}

func span[T any](key string, table []limit[T]) (least, greatest string, ok bool) {
	for _, l := range table {
		if l.key == key {
			return l.show(l.min), l.show(l.max), true
		}
	}
	return "", "", false
}
