package plan

import (
	"fmt"
	"strings"
	"time"
)

// limit is the range of one number or duration of a plan.
type limit struct {
	path     string // as in Plan.Where
	min, max int64
	get      func(*Plan) int64
	show     func(int64) string
}

func count(n int64) string { return fmt.Sprint(n) }

func duration(n int64) string {
	s := time.Duration(n).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

const (
	second = int64(time.Second)
	minute = int64(time.Minute)
	hour   = int64(time.Hour)
)

// limits has a row for every number and duration of a plan. The upper ends
// keep a slip of the pen from claiming the whole machine; the lower ends keep
// a server that still works.
var limits = []limit{
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
	{"server.tcp.total", second, 24 * hour, func(p *Plan) int64 { return int64(p.Server.TCP.Total) }, duration},
	{"server.tcp.write", second, 5 * minute, func(p *Plan) int64 { return int64(p.Server.TCP.Write) }, duration},
}

// Range is the least and the greatest value that Check accepts for the key
// with this path, as text; ok is false for a key without a range.
func Range(path string) (least, greatest string, ok bool) {
	for _, l := range limits {
		if l.path == path {
			return l.show(l.min), l.show(l.max), true
		}
	}
	return "", "", false
}
