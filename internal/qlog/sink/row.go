package sink

import (
	"encoding/json"
	"strconv"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// column is one column of a row: a number or a text.
type column struct {
	name     string
	sql      string // type and codec for ClickHouse
	number   func(r *qlog.Row) int64
	text     func(r *qlog.Row) string
	optional bool // left out where it is empty
}

// columns is all of a row, in the order of qlog.Row. Texts with few values are
// dictionaries in ClickHouse.
var columns = []column{
	{name: "time", sql: "DateTime64(6, 'UTC') CODEC(Delta, ZSTD)", number: func(r *qlog.Row) int64 { return r.Time }},
	{name: "client", sql: "String", text: func(r *qlog.Row) string { return r.Client }},
	{name: "client_port", sql: "UInt16", number: func(r *qlog.Row) int64 { return int64(r.ClientPort) }},
	{name: "protocol", sql: "LowCardinality(String)", text: func(r *qlog.Row) string { return r.Protocol }},
	{name: "listener", sql: "LowCardinality(String)", text: func(r *qlog.Row) string { return r.Listener }},
	{name: "name", sql: "String", text: func(r *qlog.Row) string { return r.Name }},
	{name: "type", sql: "LowCardinality(String)", text: func(r *qlog.Row) string { return r.Type }},
	{name: "class", sql: "LowCardinality(String)", text: func(r *qlog.Row) string { return r.Class }},
	{name: "ecs", sql: "String", text: func(r *qlog.Row) string { return r.ECS }, optional: true},
	{name: "rcode", sql: "LowCardinality(String)", text: func(r *qlog.Row) string { return r.Rcode }},
	{name: "flags", sql: "LowCardinality(String)", text: func(r *qlog.Row) string { return r.Flags }},
	{name: "source", sql: "LowCardinality(String)", text: func(r *qlog.Row) string { return r.Source }},
	{name: "rule", sql: "LowCardinality(String)", text: func(r *qlog.Row) string { return r.Rule }, optional: true},
	{name: "upstream", sql: "LowCardinality(String)", text: func(r *qlog.Row) string { return r.Upstream }, optional: true},
	{name: "ede", sql: "LowCardinality(String)", text: func(r *qlog.Row) string { return r.EDE }, optional: true},
	{name: "answers", sql: "String", text: func(r *qlog.Row) string { return r.Answers }, optional: true},
	{name: "latency", sql: "UInt32", number: func(r *qlog.Row) int64 { return int64(r.Latency) }},
	{name: "query_size", sql: "UInt16", number: func(r *qlog.Row) int64 { return int64(r.QuerySize) }},
	{name: "size", sql: "UInt16", number: func(r *qlog.Row) int64 { return int64(r.Size) }},
}

// appendJSON appends a row as one JSON object on one line, without its end.
func appendJSON(dst []byte, row *qlog.Row) []byte {
	open := byte('{')
	for i := range columns {
		c := &columns[i]
		text := ""
		if c.text != nil {
			if text = c.text(row); text == "" && c.optional {
				continue
			}
		}
		dst = append(append(append(dst, open, '"'), c.name...), '"', ':')
		open = ','
		if c.number != nil {
			dst = strconv.AppendInt(dst, c.number(row), 10)
		} else {
			dst = appendText(dst, text)
		}
	}
	return append(dst, '}')
}

// appendLine is appendJSON with the end of the line.
func appendLine(dst []byte, row *qlog.Row) []byte { return append(appendJSON(dst, row), '\n') }

// appendText appends a JSON string.
func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, _ := json.Marshal(s) // a string is always valid
			return append(dst, text...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
