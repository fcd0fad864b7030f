package app

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/stats"
	"github.com/waymark-dns/waymark/internal/upstream"
)

// upstreamMetric is one number of each upstream.
type upstreamMetric struct {
	kind prometheus.ValueType
	name string
	help string
	get  func(*upstream.ServerStatus) float64
}

// upstreamMetrics is the numbers of upstreams.
func upstreamMetrics() []upstreamMetric {
	const c, g = prometheus.CounterValue, prometheus.GaugeValue
	return []upstreamMetric{
		{c, "waymark_upstream_queries_total", "Queries sent to an upstream.", func(s *upstream.ServerStatus) float64 { return float64(s.Queries) }},
		{c, "waymark_upstream_answers_total", "Responses of an upstream that counted.", func(s *upstream.ServerStatus) float64 { return float64(s.Answers) }},
		{c, "waymark_upstream_timeouts_total", "Queries that an upstream did not answer in time.", func(s *upstream.ServerStatus) float64 { return float64(s.Timeouts) }},
		{c, "waymark_upstream_failures_total", "SERVFAIL, REFUSED and the like from an upstream.", func(s *upstream.ServerStatus) float64 { return float64(s.Failures) }},
		{c, "waymark_upstream_errors_total", "Errors of sockets and connections to an upstream.", func(s *upstream.ServerStatus) float64 { return float64(s.Errors) }},
		{c, "waymark_upstream_tcp_queries_total", "Queries sent to an upstream over TCP.", func(s *upstream.ServerStatus) float64 { return float64(s.TCPQueries) }},
		{c, "waymark_upstream_spoofs_total", "Messages that came in place of an answer: perhaps forged.", spoofs},
		{g, "waymark_upstream_rtt_seconds", "Smoothed round-trip time.", func(s *upstream.ServerStatus) float64 { return s.RTT.Seconds() }},
		{g, "waymark_upstream_healthy", "1 where the upstream has not failed lately.", func(s *upstream.ServerStatus) float64 {
			if s.Healthy {
				return 1
			}
			return 0
		}},
		{g, "waymark_upstream_sockets", "UDP sockets open to an upstream.", func(s *upstream.ServerStatus) float64 { return float64(s.Sockets) }},
	}
}

func spoofs(s *upstream.ServerStatus) float64 {
	return float64(s.Spoofs.WrongID + s.Spoofs.WrongQuestion + s.Spoofs.Unexpected)
}

// collect sends the metrics of the engines.
func (e *engines) collect(p *plan.Plan, now time.Duration, ch chan<- prometheus.Metric) {
	rows := upstreamMetrics()
	for i, g := range e.groups {
		for _, st := range g.Status(now) {
			for _, m := range rows {
				desc := prometheus.NewDesc(m.name, m.help, []string{"group", "upstream"}, nil)
				ch <- prometheus.MustNewConstMetric(desc, m.kind, m.get(&st), groupName(i, p), st.Name)
			}
		}
	}
	gauge := func(name, help string, v float64) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, v)
	}
	gauge("waymark_flights", "Questions that upstreams are being asked.", float64(e.flights.Len()))
	if e.cache == nil {
		return
	}
	st := e.cache.Stats()
	gauge("waymark_cache_entries", "Entries in the cache.", float64(st.Entries))
	gauge("waymark_cache_used_bytes", "Octets of the cache in use.", float64(st.Used))
	gauge("waymark_cache_size_bytes", "Octets that the cache may use.", float64(st.Size))
	counter := func(name, help string, v uint64) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, float64(v))
	}
	counter("waymark_cache_fills_total", "Responses that were stored.", st.Fills)
	counter("waymark_cache_evictions_total", "Entries that made room for others.", st.Evictions)
	counter("waymark_cache_drops_total", "Responses that found no room at once.", st.Dropped)
}

// groupName tells groups of a configuration apart: the first name that a group is
// for, and its number.
func groupName(i int, p *plan.Plan) string {
	name := "."
	if i >= len(p.Forward) {
		return strconv.Itoa(i + 1)
	}
	if f := p.Forward[i]; len(f.For) > 0 {
		name = f.For[0].String()
	}
	return strconv.Itoa(i+1) + " " + name
}

// cacheStats is how full the cache is and how queries were answered, for people.
func (s *Server) cacheStats(c *cache.Cache) string {
	st := c.Stats()
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name string, v any) { _, _ = fmt.Fprintf(t, "%s\t%v\n", name, v) }
	var sum stats.Batch
	for _, src := range s.workers.all() {
		one := src.sum()
		for i, n := range one {
			sum[i] += n
		}
	}
	hits, stale, misses := sum[stats.FromCache], sum[stats.FromStale], sum[stats.FromForward]
	row("entries", st.Entries)
	row("size", fmt.Sprintf("%d of %d KiB", st.Used>>10, st.Size>>10))
	row("hits", hits)
	row("stale hits", stale)
	row("misses", misses)
	if all := hits + stale + misses; all > 0 {
		row("hit ratio", fmt.Sprintf("%.1f %%", 100*float64(hits+stale)/float64(all)))
	}
	row("stored", st.Fills)
	row("evicted", st.Evictions)
	row("no room", st.Dropped)
	_ = t.Flush()
	return strings.TrimRight(b.String(), "\n")
}
