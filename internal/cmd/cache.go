package cmd

import (
	"io"
	"strconv"
)

// CacheCmd looks into the cache of a running server.
type CacheCmd struct {
	List      CacheListCmd      `cmd:"" help:"List entries, perhaps those below a name."`
	Get       CacheGetCmd       `cmd:"" help:"Show the entries of a name."`
	Flush     CacheFlushCmd     `cmd:"" help:"Forget the entries of a name."`
	FlushTree CacheFlushTreeCmd `cmd:"" help:"Forget the entries of a name and of all below."`
	FlushAll  CacheFlushAllCmd  `cmd:"" help:"Forget everything."`
	Stats     CacheStatsCmd     `cmd:"" help:"Tell how full the cache is, and how it serves."`
}

// CacheListCmd lists entries.
type CacheListCmd struct {
	controlFlags
	Name  string `arg:"" optional:"" help:"List entries of this name and below only."`
	Limit int    `default:"100" help:"List so many at most."`
}

// Run prints one line an entry.
func (c *CacheListCmd) Run(stdout io.Writer) error {
	args := []string{"list", strconv.Itoa(c.Limit)}
	if c.Name != "" {
		args = append(args, c.Name)
	}
	return c.call(stdout, "cache", args...)
}

// CacheGetCmd shows the entries of a name.
type CacheGetCmd struct {
	controlFlags
	Name string `arg:""`
}

// Run prints one line an entry.
func (c *CacheGetCmd) Run(stdout io.Writer) error { return c.call(stdout, "cache", "get", c.Name) }

// CacheFlushCmd forgets the entries of a name.
type CacheFlushCmd struct {
	controlFlags
	Name string `arg:""`
}

// Run tells how many there were.
func (c *CacheFlushCmd) Run(stdout io.Writer) error { return c.call(stdout, "cache", "flush", c.Name) }

// CacheFlushTreeCmd forgets the entries of a name and of all below.
type CacheFlushTreeCmd struct {
	controlFlags
	Name string `arg:""`
}

// Run tells how many there were.
func (c *CacheFlushTreeCmd) Run(stdout io.Writer) error {
	return c.call(stdout, "cache", "flush-tree", c.Name)
}

// CacheFlushAllCmd empties the cache.
type CacheFlushAllCmd struct{ controlFlags }

// Run returns when the cache is empty.
func (c *CacheFlushAllCmd) Run(stdout io.Writer) error { return c.call(stdout, "cache", "flush-all") }

// CacheStatsCmd tells how full the cache is.
type CacheStatsCmd struct{ controlFlags }

// Run prints a few lines.
func (c *CacheStatsCmd) Run(stdout io.Writer) error { return c.call(stdout, "cache", "stats") }
