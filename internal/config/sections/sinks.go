package sections

import (
	"time"

	"github.com/waymark-dns/waymark/internal/plan"
)

// sinksRow is the row of the query log's sinks, in whatever T they are.
func sinksRow[T any](get func(*T) *[]plan.Sink) row[T] {
	return row[T]{
		key: "sinks", value: listOf(sinkValue, get),
		example: "{kind: dnstap, to: \"unix:///run/dnstap.sock\"}\n{kind: json, file: queries.json}",
		doc: "Places that the log is sent to as well. What a sink has no room for is dropped and counted; no query waits. " +
			"Keys that a kind does not name below are not for it.",
	}
}

var sinkValue = value[plan.Sink]{
	want: "a sink",
	keys: func(path string) []entry { return entries(path, sinkRows) },
	read: func(r *reader, s spot, into *plan.Sink) {
		*into = plan.DefaultSink()
		into.Pos = s.node.Pos
		readRows(r, s, sinkRows, into)
	},
}

var sinkRows = []row[plan.Sink]{
	{
		key: "kind", value: text(func(s *plan.Sink) *string { return &s.Kind }), must: true, example: "json",
		doc: "`dnstap`, `syslog`, `json` or `clickhouse`.",
	},
	{
		key: "to", value: text(func(s *plan.Sink) *string { return &s.To }), example: "tcp://192.0.2.1:6000",
		doc: "Where to send to: `dnstap` to `unix://PATH` or `tcp://HOST:PORT`, `syslog` to `udp://`, `tcp://` or `unix:///dev/log`, " +
			"`json` to `stdout`, `tcp://` or `unix://`, `clickhouse` to `https://HOST:PORT` or `http://`.",
	},
	{
		key: "file", value: path(func(s *plan.Sink) *string { return &s.File }), example: "queries.json",
		doc: "File to write in place of `to`, for `dnstap` and `json`. Its folder must exist.",
	},
	{
		key: "queue", value: one("a size", parseSize, func(s *plan.Sink) *int64 { return &s.Queue }), preset: "16MiB", example: "16MiB",
		doc: "Memory for what waits to be sent.",
	},
	{
		key: "rotate", value: one("a size", parseSize, func(s *plan.Sink) *int64 { return &s.Rotate }), preset: "64MiB", example: "64MiB",
		doc: "A file of this size is put aside as `FILE.1`, and a new one begun.",
	},
	{
		key: "keep", value: number(func(s *plan.Sink) *int { return &s.Keep }), preset: "5", example: "5",
		doc: "How many files that were put aside are kept.",
	},
	{
		key: "identity", value: text(func(s *plan.Sink) *string { return &s.Identity }), none: "the host's name", example: "ns1.example",
		doc: "What `dnstap` and `syslog` call this server.",
	},
	{
		key: "version", value: text(func(s *plan.Sink) *string { return &s.Version }), preset: "waymark", example: "waymark",
		doc: "What `dnstap` calls its program.",
	},
	{
		key: "queries", value: boolean(func(s *plan.Sink) *bool { return &s.Queries }), preset: "false", example: "true",
		doc: "With `dnstap`, send a `CLIENT_QUERY` for each query too.",
	},
	{
		key: "database", value: text(func(s *plan.Sink) *string { return &s.Table.Database }), preset: "default", example: "default",
		doc: "Database of `clickhouse`.",
	},
	{
		key: "table", value: text(func(s *plan.Sink) *string { return &s.Table.Table }), preset: "queries", example: "queries",
		doc: "Table of `clickhouse`. It must exist.",
	},
	{
		key: "user", value: text(func(s *plan.Sink) *string { return &s.Table.User }), none: "the user `default`", example: "waymark",
		doc: "User of `clickhouse`.",
	},
	{
		key: "password-file", value: path(func(s *plan.Sink) *string { return &s.Table.PasswordFile }), none: "no password", example: "clickhouse.password",
		doc: "File whose first line is the user's password.",
	},
	{
		key: "ca", value: path(func(s *plan.Sink) *string { return &s.Table.CA }), none: "those of the system", example: "ca.pem",
		doc: "Certificates (PEM) that the one of `clickhouse` must come from.",
	},
	{
		key: "verify", value: boolean(func(s *plan.Sink) *bool { return &s.Table.Verify }), preset: "true", example: "true",
		doc: "Check the certificate of `clickhouse`. Without that anyone on the way can read the log and the password.",
	},
	{
		key: "compress", value: text(func(s *plan.Sink) *string { return &s.Table.Compress }), preset: "none", example: "zstd",
		doc: "Compress batches: `none`, `gzip` or `zstd`.",
	},
	{
		key: "rows", value: number(func(s *plan.Sink) *int { return &s.Table.Rows }), preset: "10000", example: "10000",
		doc: "Rows of a batch, at most.",
	},
	{
		key: "interval", value: duration(func(s *plan.Sink) *time.Duration { return &s.Table.Interval }), preset: "5s", example: "5s",
		doc: "How long a batch waits to become full.",
	},
	{
		key: "spill", value: path(func(s *plan.Sink) *string { return &s.Table.Spill }), example: "spill",
		doc: "Folder for batches while `clickhouse` is away, also over a restart. Each sink needs its own.",
	},
	{
		key: "spill-size", value: one("a size", parseSize, func(s *plan.Sink) *int64 { return &s.Table.SpillSize }), preset: "1GiB", example: "1GiB",
		doc: "How large the folder may become; then the oldest batches go.",
	},
}
