package sections

import (
	"strconv"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

var cacheRow = row[plan.Plan]{
	key: "cache",
	value: value[plan.Plan]{want: "keys and values, on, off or a size", read: readCache, keys: func(path string) []entry {
		return entries(path, cacheRows)
	}},
	example: "{size: 256MiB}",
	doc: "A cache of responses. Without the section there is none; `cache: on` takes all defaults, `cache: off` has none, " +
		"and `cache: 256MiB` is short for a size.",
}

var cacheRows = []row[plan.Cache]{
	{
		key: "size", value: one("a size", parseSize, func(c *plan.Cache) *int64 { return &c.Size }), preset: "64MiB", example: "256MiB",
		doc: "Memory for responses, everything that belongs to them counted.",
	},
	{
		key: "min-ttl", value: duration(func(c *plan.Cache) *time.Duration { return &c.MinTTL }), preset: "0s", example: "0s",
		doc: "What is cached lives at least so long. Longer than its owner says means that clients see changes late.",
	},
	{
		key: "max-ttl", value: duration(func(c *plan.Cache) *time.Duration { return &c.MaxTTL }), preset: "1d", example: "1d",
		doc: "What is cached lives at most so long (RFC 8767 §4).",
	},
	{
		key: "max-negative-ttl", value: duration(func(c *plan.Cache) *time.Duration { return &c.MaxNegative }), preset: "1h", example: "1h",
		doc: "NXDOMAIN and NODATA live at most so long (RFC 2308 §5).",
	},
	{
		key: "stale", value: value[plan.Cache]{want: "off, a duration or immediate", read: readStale}, preset: "1d", example: "1d",
		doc: "How long past its life an answer may still be given when no upstream has one (RFC 8767). " +
			"With `immediate`, or `immediate 12h`, it is given at once and the upstream is asked behind it.",
	},
	{
		key: "prefetch", value: boolean(func(c *plan.Cache) *bool { return &c.Prefetch }), preset: "true", example: "true",
		doc: "Fetch popular answers anew shortly before their life ends.",
	},
	{
		key: "file", value: path(func(c *plan.Cache) *string { return &c.File }), example: "cache.dump",
		doc: "File to keep the cache in over a restart. Its folder must exist.",
	},
	{
		key: "interval", value: duration(func(c *plan.Cache) *time.Duration { return &c.Interval }), preset: "10m", example: "10m",
		doc: "How often the file is written, besides at the end.",
	},
}

func readCache(r *reader, s spot, into *plan.Plan) {
	if s.node.Kind != tree.Scalar {
		into.Cache = plan.DefaultCache()
		into.Cache.Pos = r.where[s.path]
		readRows(r, s, cacheRows, &into.Cache)
		return
	}
	c, problem := ParseCache(s.node.Pos, s.node.Text)
	if problem != nil {
		r.Problem(problem.Pos, problem.Mend, "%s: %s", s.name(), problem.Text)
	}
	into.Cache = c
}

// ParseCache reads a cache in one word: on, off or its size. With a problem
// the cache is off.
func ParseCache(pos plan.Pos, text string) (plan.Cache, *plan.Problem) {
	c := plan.DefaultCache()
	if on, ok := parseBool(text); ok && !on {
		c = plan.Cache{}
	} else if size, sized := parseSize(text); sized {
		c.Size = size
	} else if !ok {
		return plan.Cache{Pos: pos}, &plan.Problem{Pos: pos, Text: "expected a size, on or off, got " + tree.Quote(text), Mend: "write for example 256MiB"}
	}
	c.Pos = pos
	return c, nil
}

// sizes are the units of a size: those of memory, and those of disks.
var sizes = []struct {
	unit   string
	octets int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
}

// parseSize takes a whole number of octets, or of a unit: 256MiB, 1 GB.
func parseSize(s string) (int64, bool) {
	octets := int64(1)
	for _, size := range sizes {
		if n, ok := strings.CutSuffix(s, size.unit); ok {
			s, octets = strings.TrimSuffix(n, " "), size.octets
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/octets {
		return 0, false
	}
	return n * octets, true
}

// readStale takes off, how long, and whether at once.
func readStale(r *reader, s spot, into *plan.Cache) {
	text, ok := r.text(s)
	if !ok {
		return
	}
	word, rest, _ := strings.Cut(text, " ")
	immediate := word == "immediate"
	if immediate {
		text = strings.TrimSpace(rest)
	}
	stale := into.Stale
	switch on, switched := parseBool(text); {
	case immediate && text == "", switched && on && !immediate:
	case switched && !on && !immediate:
		stale = 0
	default:
		d, ok := parseDuration(text)
		if !ok || immediate && d == 0 {
			r.wrong(s)
			return
		}
		stale = d
	}
	into.Stale, into.Immediate = stale, immediate
}
