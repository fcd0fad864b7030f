package plan

import (
	"os"
	"path/filepath"
	"time"
)

// QueryLog is the log of queries; an empty folder is off.
type QueryLog struct {
	Pos     Pos
	Dir     string
	Keep    int64         // octets of all files
	Age     time.Duration // of the oldest rows; 0 is any
	Privacy string        // off, masked or pseudonyms
	Without []string      // columns that are left empty: client_port, answers
	Sinks   []Sink
}

// DefaultQueryLog has what is not written of a log that is wanted.
func DefaultQueryLog() QueryLog {
	// About 90 million queries; a house has fewer in a year.
	return QueryLog{Keep: 1 << 30, Privacy: "off"}
}

func (c *checker) queryLog() {
	q := c.plan.QueryLog
	if q.Dir == "" {
		return
	}
	c.sinks("querylog.sinks", q.Sinks)
	parent := filepath.Dir(q.Dir)
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		c.add(q.Pos, "create it, owned by the user that the server runs as", "querylog.dir: there is no folder %s", parent)
	}
	if info, err := os.Stat(q.Dir); err == nil && !info.IsDir() {
		c.add(q.Pos, "name a folder", "querylog.dir: %s is a file", q.Dir)
	}
}
