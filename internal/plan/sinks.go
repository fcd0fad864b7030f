package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/qlog/sink"
)

// Sink is one place that the query log is sent to. DefaultSink has the defaults.
type Sink struct {
	Pos   Pos
	Kind  string // of sink.Kinds
	To    string // URL, or "stdout"; empty where File is
	File  string
	Queue int64 // octets in memory

	// Of files.
	Rotate int64 // octets
	Keep   int   // old ones

	// Of dnstap; Identity of syslog too.
	Identity string // empty is the host's name
	Version  string
	Queries  bool

	Table SinkTable
}

// SinkTable is a table of ClickHouse.
type SinkTable struct {
	Database, Table    string
	User, PasswordFile string // empty is none
	CA                 string // file of certificates; empty is the system's
	Verify             bool
	Compress           string
	Rows               int // of a batch
	Interval           time.Duration
	Spill              string // folder; empty is none
	SpillSize          int64
}

// DefaultSink has the defaults of every kind.
func DefaultSink() Sink {
	d := sink.Default()
	t := d.ClickHouse
	return Sink{
		Queue: d.Queue, Rotate: d.Files.Rotate, Keep: d.Files.Keep, Version: d.Dnstap.Version,
		Table: SinkTable{
			Database: t.Database, Table: t.Table, Verify: t.Verify, Compress: t.Compress,
			Rows: t.Rows, Interval: t.Interval, SpillSize: t.SpillSize,
		},
	}
}

// Config is what package sink opens.
func (s Sink) Config() sink.Config {
	return sink.Config{
		Kind: s.Kind, To: s.To, File: s.File, Queue: s.Queue,
		Files:      sink.Files{Rotate: s.Rotate, Keep: s.Keep},
		Dnstap:     sink.Dnstap{Identity: s.Identity, Version: s.Version, Queries: s.Queries},
		ClickHouse: sink.ClickHouse(s.Table),
	}
}

// sinkLimits holds for each sink, whatever its kind.
var sinkLimits = []limit[Sink]{
	// Less has no room for a burst, more belongs into a spill folder.
	{"queue", 64 << 10, 1 << 30, func(s *Sink) int64 { return s.Queue }, size},
	{"rotate", 64 << 10, 1 << 40, func(s *Sink) int64 { return s.Rotate }, size},
	{"keep", 0, 1000, func(s *Sink) int64 { return int64(s.Keep) }, count},
	{"rows", 1, 1_000_000, func(s *Sink) int64 { return int64(s.Table.Rows) }, count},
	{"interval", 100 * millisecond, 10 * minute, func(s *Sink) int64 { return int64(s.Table.Interval) }, duration},
	{"spill-size", 1 << 20, 1 << 40, func(s *Sink) int64 { return s.Table.SpillSize }, size},
}

// sinks checks the sinks that were written at a path, such as "querylog.sinks".
func (c *checker) sinks(path string, sinks []Sink) {
	places, spills := map[string]Pos{}, map[string]Pos{}
	for i := range sinks {
		s, at := &sinks[i], fmt.Sprintf("%s[%d]", path, i)
		for _, p := range s.Config().Check() {
			pos := s.Pos
			if p.Key != "" {
				pos = c.plan.At(at + "." + p.Key)
			}
			c.add(pos, p.Mend, "%s: %s", strings.TrimSuffix(path+"."+p.Key, "."), p.Text)
		}
		within(c, at+".", path+".", s, sinkLimits)
		c.sinkKeys(path, at, s)
		c.sinkFiles(path, at, s)
		c.sinkTwice(c.plan.At(at+".file"), path+".file", s.File, places)
		c.sinkTwice(c.plan.At(at+".spill"), path+".spill", s.Table.Spill, spills)
	}
}

// sinkKeys finds keys that are of other kinds of sinks.
func (c *checker) sinkKeys(path, at string, s *Sink) {
	var own, all []string
	for _, k := range sink.Kinds() {
		all = append(all, k.Keys...)
		if k.Name == s.Kind {
			own = k.Keys
		}
	}
	if own == nil {
		return // an unknown kind, which is told
	}
	slices.Sort(all)
	for _, key := range slices.Compact(all) {
		if pos, ok := c.plan.Where[at+"."+key]; ok && !slices.Contains(own, key) {
			c.add(pos, "remove it", "%s.%s: %s has no such key", path, key, s.Kind)
		}
	}
}

// sinkFiles finds files that cannot be read.
func (c *checker) sinkFiles(path, at string, s *Sink) {
	for _, f := range []struct{ key, file string }{{"password-file", s.Table.PasswordFile}, {"ca", s.Table.CA}} {
		if f.file == "" {
			continue
		}
		if trouble, mend := Unreadable(f.file); trouble != "" {
			c.add(c.plan.At(at+"."+f.key), mend, "%s.%s: %s", path, f.key, trouble)
		}
	}
}

// sinkTwice finds a path that two sinks would write to.
func (c *checker) sinkTwice(pos Pos, key, path string, first map[string]Pos) {
	if path == "" {
		return
	}
	if before, ok := first[path]; ok {
		c.add(pos, "name another", "%s: %s is written to by two sinks, first at %s", key, path, before)
		return
	}
	first[path] = pos
}
