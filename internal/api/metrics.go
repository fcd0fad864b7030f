package api

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymark-dns/waymark/internal/policy/act"
	"github.com/waymark-dns/waymark/internal/upstream"
)

// collector is the metrics of plugins, with the names that mosdns gives them.
type collector struct{ conf Config }

// Describe is part of prometheus.Collector: metrics are described as they come.
func (c collector) Describe(ch chan<- *prometheus.Desc) { ch <- desc("up", "1 while the server runs.") }

// Collect is part of prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(desc("up", "1 while the server runs."), prometheus.GaugeValue, 1)
	made, metrics := c.conf.Made()
	for _, m := range made.Caches {
		collectCache(m, ch)
	}
	for _, r := range made.Relays {
		collectRelay(r, c.conf.Now(), ch)
	}
	for _, m := range metrics.All() {
		collectCollector(m, ch)
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("mosdns_"+name, help, labels, nil)
}

// number sends one number.
func number(ch chan<- prometheus.Metric, d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
}

func collectCache(m *act.LazyCache, ch chan<- prometheus.Metric) {
	n := m.Counts()
	for _, row := range []struct {
		name, help string
		v          uint64
	}{
		{"cache_query_total", "Queries that looked into the cache.", n.Queries.Load()},
		{"cache_hit_total", "Queries that the cache answered.", n.Hits.Load()},
		{"cache_lazy_hit_total", "Queries that the cache answered with what had expired.", n.LazyHits.Load()},
	} {
		number(ch, desc(row.name, row.help, "tag"), prometheus.CounterValue, float64(row.v), m.Tag)
	}
	size := desc("cache_size_current", "Entries in the cache.", "tag")
	number(ch, size, prometheus.GaugeValue, float64(m.Cache().Stats().Entries), m.Tag)
}

func collectRelay(r *act.Relay, now time.Duration, ch chan<- prometheus.Metric) {
	all := r.Group.Status(now)
	for _, t := range r.Tagged {
		s := &all[t.Index]
		for _, row := range []struct {
			name, help string
			v          uint64
		}{
			{"forward_query_total", "Queries sent to the upstream.", s.Queries},
			{"forward_err_total", "Queries that it did not answer.", s.Timeouts + s.Errors},
			{"forward_conn_opened_total", "Sockets and connections opened.", s.Opened},
		} {
			number(ch, desc(row.name, row.help, "tag", "upstream"), prometheus.CounterValue, float64(row.v), r.Tag, t.Tag)
		}
		open := desc("forward_conn_current", "Sockets and connections open now.", "tag", "upstream")
		number(ch, open, prometheus.GaugeValue, float64(s.Sockets+s.Conns), r.Tag, t.Tag)
		latency := desc("forward_response_latency_millisecond", "How long answers took.", "tag", "upstream")
		ch <- histogram(latency, s.Latency.Classes[:], upstream.LatencyBounds[:], float64(s.Latency.Sum.Milliseconds()), r.Tag, t.Tag)
	}
}

func collectCollector(m *act.Collector, ch chan<- prometheus.Metric) {
	number(ch, desc("metrics_collector_query_total", "Queries that passed.", "name"), prometheus.CounterValue, float64(m.Queries.Load()), m.Name)
	number(ch, desc("metrics_collector_err_total", "Queries that failed.", "name"), prometheus.CounterValue, float64(m.Errors.Load()), m.Name)
	number(ch, desc("metrics_collector_thread", "Queries on their way.", "name"), prometheus.GaugeValue, float64(m.Thread.Load()), m.Name)
	classes, sum := m.Latency()
	latency := desc("metrics_collector_response_latency_millisecond", "How long responses took.", "name")
	ch <- histogram(latency, classes[:], act.LatencyBounds[:], float64(sum), m.Name)
}

// histogram makes one of classes, the last of which has what is above all bounds.
func histogram(d *prometheus.Desc, classes, bounds []uint64, sum float64, labels ...string) prometheus.Metric {
	buckets, all := map[float64]uint64{}, uint64(0)
	for i, n := range classes {
		all += n
		if i < len(bounds) {
			buckets[float64(bounds[i])] = all
		}
	}
	return prometheus.MustNewConstHistogram(d, all, sum, buckets, labels...)
}
