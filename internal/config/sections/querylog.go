package sections

import (
	"slices"
	"time"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

var queryLogRow = row[plan.Plan]{
	key: "querylog",
	value: value[plan.Plan]{want: "keys and values, or a folder", read: readQueryLog, keys: func(path string) []entry {
		return entries(path, queryLogRows)
	}},
	example: "{dir: queries, keep: 1GiB}",
	doc: "A log of every query, in Parquet files that `waymark log` and other programs read. Without the section there is none; " +
		"`querylog: queries` is short for a folder. The program's own log is under `log`.",
}

var queryLogRows = []row[plan.QueryLog]{
	{
		key: "dir", must: true, example: "queries",
		value: value[plan.QueryLog]{want: "a path", read: func(r *reader, s spot, into *plan.QueryLog) {
			into.Pos = s.node.Pos
			path(func(q *plan.QueryLog) *string { return &q.Dir }).read(r, s, into)
		}},
		doc: "Folder of the files. It is made where the folder above it is there.",
	},
	{
		key: "keep", value: one("a size", parseSize, func(q *plan.QueryLog) *int64 { return &q.Keep }), preset: "1GiB", example: "1GiB",
		doc: "Size of all files; beyond that the oldest go, also when the disk is full. About 12 octets are a query.",
	},
	{
		key: "age", value: duration(func(q *plan.QueryLog) *time.Duration { return &q.Age }), none: "any", example: "30d",
		doc: "What is older goes.",
	},
	{
		key: "privacy", value: one("off, masked or pseudonyms", parsePrivacy, func(q *plan.QueryLog) *string { return &q.Privacy }), preset: "off", example: "masked",
		doc: "What is told of clients: `off` is the address, `masked` its /24 (IPv4) or /48 (IPv6), `pseudonyms` a name that is made of the address and of a key in the folder.",
	},
	{
		key: "without", value: filled(listOf(withoutValue, func(q *plan.QueryLog) *[]string { return &q.Without })), none: "nothing", example: "client_port\nanswers",
		doc: "Columns that are left empty: `client_port`, `answers` (addresses in the answer). They are more than a third of the size.",
	},
	sinksRow(func(q *plan.QueryLog) *[]plan.Sink { return &q.Sinks }),
}

var withoutValue = one("client_port or answers", func(s string) (string, bool) {
	return s, slices.Contains([]string{"client_port", "answers"}, s)
}, func(s *string) *string { return s })

func parsePrivacy(s string) (string, bool) {
	return s, slices.Contains([]string{"off", "masked", "pseudonyms"}, s)
}

func readQueryLog(r *reader, s spot, into *plan.Plan) {
	into.QueryLog = plan.DefaultQueryLog()
	into.QueryLog.Pos = r.where[s.path]
	if s.node.Kind == tree.Scalar {
		path(func(q *plan.QueryLog) *string { return &q.Dir }).read(r, s, &into.QueryLog)
		return
	}
	readRows(r, s, queryLogRows, &into.QueryLog)
}
