package sections

import (
	"net/netip"

	"github.com/waymark-dns/waymark/internal/plan"
)

var metricsRow = row[plan.Plan]{
	key:     "metrics",
	value:   under(metricsRows, func(p *plan.Plan) *plan.Metrics { return &p.Metrics }),
	example: "{listen: 127.0.0.1:9153}",
	doc:     "Counters for Prometheus, over HTTP at `/metrics`.",
}

var metricsRows = []row[plan.Metrics]{
	{
		key: "listen", value: value[plan.Metrics]{want: "an address", read: readMetricsListen}, example: "127.0.0.1:9153",
		doc: "IP address and port. Only addresses of the machine itself (`127.0.0.1`, `[::1]`) are allowed: metrics ask for no password.",
	},
}

func readMetricsListen(r *reader, s spot, into *plan.Metrics) {
	into.Pos = s.node.Pos
	text, ok := r.text(s)
	if !ok {
		return
	}
	addr, err := netip.ParseAddrPort(text)
	if err != nil {
		r.wrong(s)
		return
	}
	into.Listen = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}
