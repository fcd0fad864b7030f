// Package mosdns is the metrics of plugins with the names that mosdns v5 gives them. It
// serves nothing; package api does.
package mosdns

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymark-dns/waymark/internal/policy/act"
	"github.com/waymark-dns/waymark/internal/upstream"
)

// Collector is the metrics of plugins.
type Collector struct {
	// Made is what the present configuration has made. It is called by many at once.
	Made func() (*act.Made, *act.Metrics)
	Now  func() time.Duration // as upstreams count
}

// Describe is part of prometheus.Collector. It tells of nothing: what there is
// depends on the configuration, and is described as it comes.
func (Collector) Describe(chan<- *prometheus.Desc) {}

// Collect is part of prometheus.Collector.
func (c Collector) Collect(ch chan<- prometheus.Metric) {
	made, metrics := c.Made()
	out := sink{ch}
	for _, cache := range made.Caches {
		out.cache(cache)
	}
	for _, u := range upstreams(made.Relays, c.Now()) {
		out.upstream(u)
	}
	for _, m := range metrics.All() {
		out.collector(m)
	}
}

// sink is where metrics go.
type sink struct{ ch chan<- prometheus.Metric }

// label is a label and its value.
type label struct{ name, value string }

func desc(name, help string, labels []label) (d *prometheus.Desc, values []string) {
	names := make([]string, len(labels))
	for i, l := range labels {
		names[i], values = l.name, append(values, l.value)
	}
	return prometheus.NewDesc("mosdns_"+name, help, names, nil), values
}

func (s sink) counter(name, help string, v uint64, labels ...label) {
	d, values := desc(name, help, labels)
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), values...)
}

func (s sink) gauge(name, help string, v float64, labels ...label) {
	d, values := desc(name, help, labels)
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, values...)
}

// latency sends a histogram of milliseconds; the last of classes has no bound.
func (s sink) latency(name string, bounds, classes []uint64, sum float64, labels ...label) {
	buckets, count := map[float64]uint64{}, uint64(0)
	for i, bound := range bounds {
		count += classes[i]
		buckets[float64(bound)] = count
	}
	count += classes[len(bounds)]
	d, values := desc(name+"_response_latency_millisecond", "How long responses took, in milliseconds.", labels)
	s.ch <- prometheus.MustNewConstHistogram(d, count, sum, buckets, values...)
}

func (s sink) cache(c *act.LazyCache) {
	tag, n := label{"tag", c.Tag}, c.Counts()
	s.counter("cache_query_total", "Queries that came to the cache.", n.Queries.Load(), tag)
	s.counter("cache_hit_total", "Queries that the cache has answered.", n.Hits.Load(), tag)
	s.counter("cache_lazy_hit_total", "Queries that the cache has answered with expired data.", n.LazyHits.Load(), tag)
	s.gauge("cache_size_current", "Entries in the cache.", float64(c.Cache().Stats().Entries), tag)
}

// tagged is the numbers of one upstream of a plugin.
type tagged struct {
	tag, upstream string
	status        upstream.ServerStatus
	asking        int // questions of the whole plugin
}

// upstreams is those that have a tag. What a rule asks for with only some of a
// plugin's upstreams counts as theirs too; relays that share a group count once.
func upstreams(relays []*act.Relay, now time.Duration) []*tagged {
	var all []*tagged
	type key struct{ tag, upstream string }
	type place struct {
		tag   string
		group *upstream.Group
	}
	seen, counted := map[key]*tagged{}, map[place]bool{}
	for _, r := range relays {
		if at := (place{r.Tag, r.Group}); counted[at] {
			continue
		} else {
			counted[at] = true
		}
		status := r.Group.Status(now)
		for _, t := range r.Tagged {
			k := key{r.Tag, t.Tag}
			have := seen[k]
			if have == nil {
				have = &tagged{tag: r.Tag, upstream: t.Tag}
				seen[k] = have
				all = append(all, have)
			}
			have.add(&status[t.Index])
			have.asking += r.Flights.Len()
		}
	}
	return all
}

// add adds the numbers that are sent.
func (t *tagged) add(s *upstream.ServerStatus) {
	to := &t.status
	to.Queries += s.Queries
	to.Timeouts += s.Timeouts
	to.Errors += s.Errors
	to.Opened += s.Opened
	to.Sockets += s.Sockets
	to.Conns += s.Conns
	for i, n := range s.Latency.Classes {
		to.Latency.Classes[i] += n
	}
	to.Latency.Sum += s.Latency.Sum
}

func (s sink) upstream(t *tagged) {
	tag, up, st := label{"tag", t.tag}, label{"upstream", t.upstream}, &t.status
	open := min(uint64(max(st.Sockets+st.Conns, 0)), st.Opened) // they are counted one after the other
	s.counter("forward_query_total", "Queries sent to the upstream.", st.Queries, tag, up)
	s.counter("forward_err_total", "Queries that the upstream has not answered in time, and errors of sockets and connections.", st.Timeouts+st.Errors, tag, up)
	s.gauge("forward_thread", "Questions that upstreams of the plugin are being asked.", float64(t.asking), tag, up)
	s.counter("forward_conn_opened_total", "Sockets and connections opened.", st.Opened, tag, up)
	s.counter("forward_conn_closed_total", "Sockets and connections closed.", st.Opened-open, tag, up)
	s.latency("forward", upstream.LatencyBounds[:], st.Latency.Classes[:], float64(st.Latency.Sum)/float64(time.Millisecond), tag, up)
}

func (s sink) collector(c *act.Collector) {
	name := label{"name", c.Name}
	s.counter("metrics_collector_query_total", "Queries that passed.", c.Queries.Load(), name)
	s.counter("metrics_collector_err_total", "Queries with a rule that could not do its work.", c.Errors.Load(), name)
	s.gauge("metrics_collector_thread", "Queries that are on their way.", float64(c.Thread.Load()), name)
	classes, sum := c.Latency()
	s.latency("metrics_collector", act.LatencyBounds[:], classes[:], float64(sum), name)
}
