package sections

import (
	"time"

	"github.com/waymark-dns/waymark/internal/plan"
)

var serverRow = row[plan.Plan]{
	key:     "server",
	value:   under(serverRows, func(p *plan.Plan) *plan.Server { return &p.Server }),
	example: "{workers: 4}",
	doc:     "Identity and limits of the server. The defaults suit most machines.",
}

var serverRows = []row[plan.Server]{
	{
		key: "workers", value: number(func(s *plan.Server) *int { return &s.Workers }), preset: "0", example: "4",
		doc: "UDP sockets, each with its own goroutine, per listener. 0 is one per processor.",
	},
	{
		key: "user", value: text(func(s *plan.Server) *string { return &s.User }), example: "waymark",
		doc: "User to become once the listeners are open, by name or number.",
	},
	{
		key: "group", value: text(func(s *plan.Server) *string { return &s.Group }), example: "waymark",
		doc: "Group to become; without it, the user's own.",
	},
	{
		key: "id", value: text(func(s *plan.Server) *string { return &s.ID }), example: "ns1",
		doc: "What the server answers to NSID (RFC 5001) and to `id.server` in class CHAOS (RFC 4892).",
	},
	{
		key: "version", value: text(func(s *plan.Server) *string { return &s.Version }), example: "waymark",
		doc: "What the server answers to `version.bind` in class CHAOS.",
	},
	{
		key: "watch", value: boolean(func(s *plan.Server) *bool { return &s.Watch }), preset: "false", example: "true",
		doc: "Reload a zone when its file changes.",
	},
	{
		key: "udp-size", value: number(func(s *plan.Server) *int { return &s.UDPSize }), preset: "1232", example: "1232",
		doc: "Largest response over UDP, in octets. 1232 fits every path without fragments; a client may ask for less.",
	},
	{
		key: "parked", value: number(func(s *plan.Server) *int { return &s.Parked }), preset: "16384", example: "16384",
		doc: "Queries that may wait for something at once; beyond it the newest are dropped.",
	},
	{
		key: "drain", value: duration(func(s *plan.Server) *time.Duration { return &s.Drain }), preset: "5s", example: "5s",
		doc: "How long a stopping server finishes what it has begun.",
	},
	{
		key: "cpu-steer", value: boolean(func(s *plan.Server) *bool { return &s.CPUSteer }), preset: "false", example: "true",
		doc: "Let the kernel hand a packet to the socket of the processor that received it. " +
			"Helps where the network card spreads its queues over all processors, and harms where it does not.",
	},
	{
		key: "tcp", value: under(tcpRows, func(s *plan.Server) *plan.TCP { return &s.TCP }), example: "{idle: 10s}",
		doc: "Limits of connections.",
	},
}

var tcpRows = []row[plan.TCP]{
	{
		key: "connections", value: number(func(t *plan.TCP) *int { return &t.Conns }), preset: "4096", example: "4096",
		doc: "Connections at once, per listener.",
	},
	{
		key: "per-client", value: number(func(t *plan.TCP) *int { return &t.PerClient }), preset: "128", example: "128",
		doc: "Connections at once from one client address.",
	},
	{
		key: "in-flight", value: number(func(t *plan.TCP) *int { return &t.Inflight }), preset: "128", example: "128",
		doc: "Queries of one connection that are worked on at once (RFC 7766 §6.2.1.1).",
	},
	{
		key: "idle", value: duration(func(t *plan.TCP) *time.Duration { return &t.Idle }), preset: "10s", example: "10s",
		doc: "A connection without a query for so long is closed (RFC 7766 §6.2.3).",
	},
	{
		key: "total", value: duration(func(t *plan.TCP) *time.Duration { return &t.Total }), preset: "10m", example: "10m",
		doc: "Any connection is closed after so long, so that no client keeps its place for ever.",
	},
	{
		key: "write", value: duration(func(t *plan.TCP) *time.Duration { return &t.Write }), preset: "5s", example: "5s",
		doc: "A client that does not take a response for so long is dropped.",
	},
}
