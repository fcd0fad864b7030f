// Package querylog keeps the log of queries that a plan asks for: it opens it with its
// sinks, swaps it for another when the plan changes, and tells how it does. The log
// itself is package qlog's; app calls this.
package querylog

import (
	"errors"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/qlog/sink"
)

// Env is what a log needs of the server.
type Env struct {
	Names  qlog.Names
	Now    func() time.Duration // as Request.At
	Wall   func() time.Time
	Log    *slog.Logger
	Stdout io.Writer // for sinks that write there
}

// Keeper is the log of queries, where one is kept. Its methods may be called by any
// goroutine.
type Keeper struct {
	env Env

	mu    sync.Mutex // guards what follows
	conf  plan.QueryLog
	log   *qlog.Log // nil is off; it closes the sinks
	sinks []*sink.Sink
}

// New makes a keeper without a log.
func New(env Env) *Keeper { return &Keeper{env: env} }

// Log is the log of queries and the folder of its files; nil where none is kept.
func (q *Keeper) Log() (log *qlog.Log, dir string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.log, q.conf.Dir
}

// Use opens the log of conf, in place of the one before where it is another. After an
// error there is none.
func (q *Keeper) Use(conf plan.QueryLog) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.conf
	conf.Pos, before.Pos = plan.Pos{}, plan.Pos{}
	if reflect.DeepEqual(conf, before) {
		return nil
	}
	q.close() // both may be of one folder
	if conf.Dir == "" {
		return nil
	}
	sinks, err := q.openSinks(conf.Sinks)
	if err != nil {
		return err
	}
	c := q.config(conf)
	for _, one := range sinks {
		c.Sinks = append(c.Sinks, one)
	}
	log, err := qlog.Open(c)
	if err != nil {
		return errors.Join(err, closeSinks(sinks))
	}
	q.log, q.conf, q.sinks = log, conf, sinks
	return nil
}

// Add makes the log, where there is one, read rings that it does not read yet.
func (q *Keeper) Add(rings ...*qlog.Ring) {
	if log, _ := q.Log(); log != nil {
		log.Add(rings...)
	}
}

// Close ends the log. No listener is open any more.
func (q *Keeper) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.close()
}

// close is Close under the lock.
func (q *Keeper) close() {
	if q.log == nil {
		return
	}
	if err := q.log.Close(); err != nil {
		q.env.Log.Warn("closing the query log failed", "error", err)
	}
	q.log, q.sinks, q.conf = nil, nil, plan.QueryLog{}
}

func (q *Keeper) config(conf plan.QueryLog) qlog.Config {
	levels := map[string]qlog.Privacy{"masked": qlog.Masked, "pseudonyms": qlog.Pseudonyms}
	return qlog.Config{
		Dir: conf.Dir, Keep: conf.Keep, Age: conf.Age, Privacy: levels[conf.Privacy],
		Without: qlog.Without{ClientPorts: slices.Contains(conf.Without, "client_port"), Answers: slices.Contains(conf.Without, "answers")},
		Names:   q.env.Names, Now: q.env.Now, Wall: q.env.Wall, Log: q.env.Log,
	}
}

// openSinks opens sinks, all or none.
func (q *Keeper) openSinks(all []plan.Sink) (opened []*sink.Sink, err error) {
	for _, one := range all {
		o, err := sink.Open(one.Config(), sink.Env{Log: q.env.Log, Wall: q.env.Wall, Stdout: q.env.Stdout})
		if err != nil {
			return nil, errors.Join(err, closeSinks(opened))
		}
		opened = append(opened, o)
	}
	return opened, nil
}

func closeSinks(all []*sink.Sink) error {
	var errs []error
	for _, one := range all {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
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

// sinkMetric is one number of each sink.
type sinkMetric struct {
	kind prometheus.ValueType
	name string
	help string
	get  func(*sink.Stats) float64
}

// sinkMetrics is the numbers of sinks.
func sinkMetrics() []sinkMetric {
	const c, g = prometheus.CounterValue, prometheus.GaugeValue
	return []sinkMetric{
		{c, "waymark_querylog_sink_rows_total", "Rows that a sink has sent.", func(s *sink.Stats) float64 { return float64(s.Sent) }},
		{c, "waymark_querylog_sink_dropped_total", "Rows that a sink had no room for, or that were refused.", func(s *sink.Stats) float64 { return float64(s.Dropped) }},
		{c, "waymark_querylog_sink_errors_total", "Tries of a sink that failed.", func(s *sink.Stats) float64 { return float64(s.Errors) }},
		{g, "waymark_querylog_sink_spilled_bytes", "What a sink keeps on disk while its peer is away.", func(s *sink.Stats) float64 { return float64(s.Disk) }},
	}
}

// Collect sends the metrics of the log and its sinks.
func (q *Keeper) Collect(ch chan<- prometheus.Metric) {
	q.mu.Lock()
	log, sinks := q.log, q.sinks
	q.mu.Unlock()
	if log == nil {
		return
	}
	stats := log.Stats()
	for _, m := range logMetrics() {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(m.name, m.help, nil, nil), m.kind, m.get(&stats))
	}
	for i, one := range sinks {
		stats := one.Stats()
		for _, m := range sinkMetrics() {
			desc := prometheus.NewDesc(m.name, m.help, []string{"number", "sink"}, nil)
			ch <- prometheus.MustNewConstMetric(desc, m.kind, m.get(&stats), strconv.Itoa(i), one.Name())
		}
	}
}
