package app

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/qlog"
)

// queryLog is the log of queries, where one is kept.
type queryLog struct {
	mu   sync.Mutex // guards what follows
	conf plan.QueryLog
	log  *qlog.Log // nil is off
}

// kept is the log of queries, nil where none is kept.
func (q *queryLog) kept() *qlog.Log {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.log
}

// useQueryLog opens the log of p, in place of that of the plan before where it is
// another. An error leaves the one before as it is.
func (s *Server) useQueryLog(p *plan.Plan) error {
	s.queries.mu.Lock()
	defer s.queries.mu.Unlock()
	conf := p.QueryLog
	before := s.queries.conf
	conf.Pos, before.Pos = plan.Pos{}, plan.Pos{}
	if reflect.DeepEqual(conf, before) {
		return nil
	}
	if old := s.queries.log; old != nil {
		// Both may be of one folder: the old one has to end first.
		if err := old.Close(); err != nil {
			s.log.Warn("closing the query log failed", "error", err)
		}
		s.queries.log, s.queries.conf = nil, plan.QueryLog{}
	}
	if conf.Dir == "" {
		return nil
	}
	log, err := qlog.Open(s.queryLogConfig(conf))
	if err != nil {
		return err
	}
	s.queries.log, s.queries.conf = log, conf
	return nil
}

func (s *Server) queryLogConfig(conf plan.QueryLog) qlog.Config {
	levels := map[string]qlog.Privacy{"masked": qlog.Masked, "pseudonyms": qlog.Pseudonyms}
	return qlog.Config{
		Dir: conf.Dir, Keep: conf.Keep, Age: conf.Age, Privacy: levels[conf.Privacy],
		Without: qlog.Without{ClientPorts: slices.Contains(conf.Without, "client_port"), Answers: slices.Contains(conf.Without, "answers")},
		Names:   qlog.Names{Rule: s.rules.text, Upstream: s.upstreams.text, Listener: s.workers.key},
		Now:     s.now, Wall: s.wall, Log: s.log,
	}
}

// readRings makes the log read the rings of all listeners.
func (s *Server) readRings() {
	log := s.queries.kept()
	if log == nil {
		return
	}
	for _, src := range s.workers.all() {
		log.Add(src.rings...)
	}
}

// closeQueryLog ends the log. No listener is open any more.
func (s *Server) closeQueryLog() {
	s.queries.mu.Lock()
	defer s.queries.mu.Unlock()
	if s.queries.log == nil {
		return
	}
	if err := s.queries.log.Close(); err != nil {
		s.log.Warn("closing the query log failed", "error", err)
	}
	s.queries.log, s.queries.conf = nil, plan.QueryLog{}
}

// key is the URL of the listener with that index.
func (g *registry) key(index uint16) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if int(index) >= len(g.sources) {
		return fmt.Sprintf("listener %d", index)
	}
	return g.sources[index].key
}

// logMetric is one number of the log of queries.
type logMetric struct {
	kind prometheus.ValueType
	name string
	help string
	get  func(*qlog.Stats) float64
}

// logMetrics is the numbers of the log of queries.
func logMetrics() []logMetric {
	const c, g = prometheus.CounterValue, prometheus.GaugeValue
	return []logMetric{
		{c, "waymark_querylog_rows_total", "Queries written to the query log.", func(s *qlog.Stats) float64 { return float64(s.Rows) }},
		{c, "waymark_querylog_dropped_total", "Queries that the query log had no time for.", func(s *qlog.Stats) float64 { return float64(s.Dropped) }},
		{c, "waymark_querylog_lost_total", "Queries that no disk had room for.", func(s *qlog.Stats) float64 { return float64(s.Lost) }},
		{c, "waymark_querylog_failures_total", "Writes of the query log that failed.", func(s *qlog.Stats) float64 { return float64(s.Failures) }},
		{g, "waymark_querylog_files", "Segments of the query log.", func(s *qlog.Stats) float64 { return float64(s.Files) }},
		{g, "waymark_querylog_bytes", "Size of the segments of the query log.", func(s *qlog.Stats) float64 { return float64(s.Octets) }},
	}
}

// collect sends the metrics of the log of queries.
func (q *queryLog) collect(ch chan<- prometheus.Metric) {
	log := q.kept()
	if log == nil {
		return
	}
	stats := log.Stats()
	for _, m := range logMetrics() {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(m.name, m.help, nil, nil), m.kind, m.get(&stats))
	}
}
