package app

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/stats"
	"github.com/waymark-dns/waymark/internal/wire"
)

// metricsServer is the HTTP server of the Prometheus text.
type metricsServer struct {
	http *http.Server
	wg   sync.WaitGroup // of serveLoop
}

// serveMetrics listens on addr, which plan.Check made sure is this machine's own.
func serveMetrics(addr netip.AddrPort, s *Server) (*metricsServer, error) {
	l, err := net.Listen("tcp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("serving metrics: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	m := &metricsServer{http: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		MaxHeaderBytes:    1 << 14,
	}}
	m.wg.Go(func() {
		if err := m.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("metrics ended", "error", err)
		}
	})
	return m, nil
}

// Close stops it.
func (m *metricsServer) Close() error {
	err := m.http.Close()
	m.wg.Wait()
	return err
}

// counterMetric is one counter per listener.
type counterMetric struct {
	counter stats.Counter
	name    string
	help    string
}

// counterMetrics is the plain counters; responses by code and by source have a
// label and stand apart.
func counterMetrics() []counterMetric {
	return []counterMetric{
		{stats.Queries, "waymark_queries_total", "Messages received, whatever became of them."},
		{stats.Truncated, "waymark_truncated_total", "Responses with TC set."},
		{stats.BytesIn, "waymark_received_bytes_total", "Octets of messages received."},
		{stats.BytesOut, "waymark_sent_bytes_total", "Octets of responses."},
		{stats.DroppedShort, "waymark_dropped_short_total", "Messages shorter than a header."},
		{stats.DroppedResponse, "waymark_dropped_responses_total", "Messages with QR set, which are never answered."},
		{stats.DroppedPolicy, "waymark_dropped_policy_total", "Queries that the policy dropped."},
		{stats.DroppedRate, "waymark_dropped_rate_total", "Queries over the rate of one client, dropped."},
		{stats.DroppedRRL, "waymark_dropped_rrl_total", "Responses over the rate of one kind to one client, dropped."},
		{stats.LimitedRate, "waymark_limited_rate_total", "Queries over the rate of one client, told to come again over TCP or with a cookie."},
		{stats.LimitedRRL, "waymark_limited_rrl_total", "Responses over the rate of one kind to one client, sent truncated."},
		{stats.Parked, "waymark_parked_total", "Requests that had to wait."},
		{stats.Shed, "waymark_shed_total", "Requests dropped because too many waited already."},
		{stats.ShedUnknown, "waymark_shed_unknown_total", "Those among the requests shed whose client was not known."},
		{stats.SendFailed, "waymark_send_failed_total", "Responses that could not be sent."},
		{stats.Accepted, "waymark_connections_total", "Stream connections accepted."},
		{stats.Refused, "waymark_connections_refused_total", "Stream connections over a limit."},
	}
}

// collector turns the workers' counters into metrics when they are asked for.
type collector struct{ s *Server }

var (
	responsesDesc = prometheus.NewDesc("waymark_responses_total", "Responses by listener and code.", []string{"listener", "rcode"}, nil)
	sourcesDesc   = prometheus.NewDesc("waymark_answers_total", "Responses by listener and where they came from.", []string{"listener", "source"}, nil)
	lostDesc      = prometheus.NewDesc("waymark_log_dropped_total", "Records of queries that the log had no room for.", []string{"listener"}, nil)
	serialDesc    = prometheus.NewDesc("waymark_zone_serial", "Serial number of the version that is served.", []string{"zone"}, nil)
	recordsDesc   = prometheus.NewDesc("waymark_zone_records", "Resource records of the version that is served.", []string{"zone"}, nil)
	failedDesc    = prometheus.NewDesc("waymark_zones_failed", "Zones whose last reading failed.", nil, nil)
	waitingDesc   = prometheus.NewDesc("waymark_waiting", "Requests that wait now.", nil, nil)
	reloadsDesc   = prometheus.NewDesc("waymark_reloads_total", "Reloads that succeeded.", nil, nil)
)

// Describe is part of prometheus.Collector: metrics are described as they come.
func (c collector) Describe(ch chan<- *prometheus.Desc) { ch <- reloadsDesc }

// Collect is part of prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(reloadsDesc, prometheus.CounterValue, float64(c.s.reloads.Load()))
	plain := counterMetrics()
	for _, src := range c.s.workers.all() {
		sum := src.sum()
		for _, m := range plain {
			desc := prometheus.NewDesc(m.name, m.help, []string{"listener"}, nil)
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(sum[m.counter]), src.key)
		}
		src.responses(&sum, ch)
	}
	c.s.queries.Collect(ch)
	netSetMetrics(c.s.netSets.Counts(), ch)
	if w := c.s.world.Load(); w != nil {
		setMetrics(w.sets, ch)
		w.engines.collect(w.plan, c.s.now(), ch)
		ch <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(c.s.parked.Len()))
		ch <- prometheus.MustNewConstMetric(failedDesc, prometheus.GaugeValue, float64(w.failed))
		for _, z := range w.served() {
			if z.Broken() {
				continue
			}
			name := z.Name().String()
			ch <- prometheus.MustNewConstMetric(serialDesc, prometheus.GaugeValue, float64(z.Serial()), name)
			ch <- prometheus.MustNewConstMetric(recordsDesc, prometheus.GaugeValue, float64(z.Records()), name)
		}
	}
}

// responses sends the counters that have a second label.
func (s *source) responses(sum *stats.Batch, ch chan<- prometheus.Metric) {
	for code := range uint16(24) {
		if n := sum[stats.Rcode(code)]; n > 0 {
			ch <- prometheus.MustNewConstMetric(responsesDesc, prometheus.CounterValue, float64(n), s.key, wire.Rcode(code).String())
		}
	}
	for i := range serve.Sources {
		n := sum[stats.FromNone+stats.Counter(i)]
		ch <- prometheus.MustNewConstMetric(sourcesDesc, prometheus.CounterValue, float64(n), s.key, serve.Source(i).String())
	}
	dropped := uint64(0)
	for _, ring := range s.rings {
		dropped += ring.Dropped()
	}
	ch <- prometheus.MustNewConstMetric(lostDesc, prometheus.CounterValue, float64(dropped), s.key)
}

// sum is the counters of all workers of a listener.
func (s *source) sum() stats.Batch {
	var sum stats.Batch
	for _, w := range s.workers {
		for c := range stats.Counters {
			sum[c] += w.Stats.Load(c)
		}
	}
	return sum
}
