package qlog

import (
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// column is one column of a segment. All are required; the order is that of Row.
type column struct {
	name    string
	kind    format.Type
	logical format.LogicalTypeValue
	write   func(e *encoder) error
}

// columns is all of a segment.
var columns = []column{
	{"time", format.Int64, &format.TimestampType{IsAdjustedToUTC: true, Unit: format.TimeUnit{Value: &format.MicroSeconds{}}}, (*encoder).times},
	texts("client", client),
	numbers("client_port", 16, port),
	ofKind("protocol"),
	ofKind("listener"),
	texts("name", name),
	ofKind("type"),
	ofKind("class"),
	ofKind("ecs"),
	ofKind("rcode"),
	ofKind("flags"),
	ofKind("source"),
	ofKind("rule"),
	ofKind("upstream"),
	ofKind("ede"),
	texts("answers", answers),
	numbers("latency", 32, latency),
	numbers("query_size", 16, querySize),
	numbers("size", 16, size),
}

// kindColumn is a column with so few different values that whole combinations of them
// have numbers: a kind.
type kindColumn struct {
	name string
	of   func(row *Row) *string
}

// kindColumns is all of those, in the order in which tails have them.
var kindColumns = []kindColumn{
	{"protocol", func(r *Row) *string { return &r.Protocol }},
	{"listener", func(r *Row) *string { return &r.Listener }},
	{"type", func(r *Row) *string { return &r.Type }},
	{"class", func(r *Row) *string { return &r.Class }},
	{"ecs", func(r *Row) *string { return &r.ECS }},
	{"rcode", func(r *Row) *string { return &r.Rcode }},
	{"flags", func(r *Row) *string { return &r.Flags }},
	{"source", func(r *Row) *string { return &r.Source }},
	{"rule", func(r *Row) *string { return &r.Rule }},
	{"upstream", func(r *Row) *string { return &r.Upstream }},
	{"ede", func(r *Row) *string { return &r.EDE }},
}

var textType = &format.StringType{}

// texts is a column of texts that rows have by number.
func texts(name string, f field) column {
	return column{name, format.ByteArray, textType, func(e *encoder) error {
		e.values = append(e.values[:0], e.fields[f]...)
		return e.texts(&e.table.dicts()[f].texts)
	}}
}

// ofKind is a column of kinds.
func ofKind(name string) column {
	at := slices.IndexFunc(kindColumns, func(c kindColumn) bool { return c.name == name })
	return column{name, format.ByteArray, textType, func(e *encoder) error { return e.ofKind(kindColumns[at].of) }}
}

// numbers is a column of numbers.
func numbers(name string, bits int8, f field) column {
	return column{name, format.Int32, &format.IntType{BitWidth: bits}, func(e *encoder) error {
		e.values = append(e.values[:0], e.fields[f]...)
		return e.numbers()
	}}
}
