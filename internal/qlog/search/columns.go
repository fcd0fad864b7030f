package search

import (
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// column is one column of a segment besides time: of text, or of numbers of at
// most 32 bits.
type column struct {
	name   string
	text   func(*qlog.Row) *string // nil in a column of numbers
	number func(*qlog.Row) uint32
	set    func(*qlog.Row, uint32)
}

// The places of columns in the table.
const (
	colClient = iota
	colPort
	colProtocol
	colListener
	colName
	colType
	colClass
	colECS
	colRcode
	colFlags
	colSource
	colRule
	colUpstream
	colEDE
	colAnswers
	colLatency
	colQuerySize
	colSize
	numColumns
)

// columns are those of qlog.Row, in its order.
var columns = [numColumns]column{
	colClient: {name: "client", text: func(r *qlog.Row) *string { return &r.Client }},
	colPort: {name: "client_port", number: func(r *qlog.Row) uint32 { return uint32(r.ClientPort) },
		set: func(r *qlog.Row, n uint32) { r.ClientPort = uint16(n) }},
	colProtocol: {name: "protocol", text: func(r *qlog.Row) *string { return &r.Protocol }},
	colListener: {name: "listener", text: func(r *qlog.Row) *string { return &r.Listener }},
	colName:     {name: "name", text: func(r *qlog.Row) *string { return &r.Name }},
	colType:     {name: "type", text: func(r *qlog.Row) *string { return &r.Type }},
	colClass:    {name: "class", text: func(r *qlog.Row) *string { return &r.Class }},
	colECS:      {name: "ecs", text: func(r *qlog.Row) *string { return &r.ECS }},
	colRcode:    {name: "rcode", text: func(r *qlog.Row) *string { return &r.Rcode }},
	colFlags:    {name: "flags", text: func(r *qlog.Row) *string { return &r.Flags }},
	colSource:   {name: "source", text: func(r *qlog.Row) *string { return &r.Source }},
	colRule:     {name: "rule", text: func(r *qlog.Row) *string { return &r.Rule }},
	colUpstream: {name: "upstream", text: func(r *qlog.Row) *string { return &r.Upstream }},
	colEDE:      {name: "ede", text: func(r *qlog.Row) *string { return &r.EDE }},
	colAnswers:  {name: "answers", text: func(r *qlog.Row) *string { return &r.Answers }},
	colLatency: {name: "latency", number: func(r *qlog.Row) uint32 { return r.Latency },
		set: func(r *qlog.Row, n uint32) { r.Latency = n }},
	colQuerySize: {name: "query_size", number: func(r *qlog.Row) uint32 { return uint32(r.QuerySize) },
		set: func(r *qlog.Row, n uint32) { r.QuerySize = uint16(n) }},
	colSize: {name: "size", number: func(r *qlog.Row) uint32 { return uint32(r.Size) },
		set: func(r *qlog.Row, n uint32) { r.Size = uint16(n) }},
}

// suffix is what Top counts besides columns: the last two labels of the name.
const suffix = "suffix"

// Columns are the names that Top takes, in the order of the row.
func Columns() []string {
	names := make([]string, 0, numColumns+1)
	for i := range columns {
		names = append(names, columns[i].name)
	}
	return append(names, suffix)
}

// counted is the column that Top reads for a name, and what it makes of a value.
func counted(name string) (col int, of func(string) string, err error) {
	if name == suffix {
		return colName, lastLabels, nil
	}
	for i := range columns {
		if columns[i].name == name {
			return i, func(s string) string { return s }, nil
		}
	}
	return 0, nil, &FilterError{Key: "column", Value: name, Problem: "unknown", Near: nearest(name, Columns())}
}

// lastLabels is the last two labels of a name in presentation format, or the name
// where it has fewer.
func lastLabels(name string) string {
	at := strings.TrimSuffix(name, ".")
	for range 2 {
		dot := lastDot(at)
		if dot < 0 {
			return name
		}
		at = at[:dot]
	}
	return name[len(at)+1:]
}

// lastDot is where the last dot stands that ends a label, -1 if none does.
func lastDot(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '.' && !escaped(s, i) {
			return i
		}
	}
	return -1
}

// escaped tells whether an odd number of backslashes stands before s[i]
// (RFC 1035 §5.1).
func escaped(s string, i int) bool {
	n := 0
	for i--; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// decimal is a number as Top and CSV have it.
func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
