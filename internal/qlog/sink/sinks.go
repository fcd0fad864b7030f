package sink

import (
	"slices"
	"strings"
)

// Kind is one kind of sink, for those who make them and for the manual.
type Kind struct {
	Name    string
	Schemes []string // of URLs to send to; "stdout" stands alone
	File    bool     // can write to a file
	Keys    []string // of its configuration, besides kind, to, file and queue
	Doc     string   // Markdown
	open    func(Config, Env) (parts, error)
}

// kinds is every kind of sink.
var kinds = []Kind{
	{
		Name: "dnstap", Schemes: []string{"unix", "tcp"}, File: true, Keys: []string{"identity", "version", "queries", "rotate", "keep"}, open: openDnstap,
		Doc: "Frame Streams of dnstap messages, type `CLIENT_RESPONSE`, to a collector or to a file. " +
			"The log has no copy of the message that was sent. What is in the frame is built from the row: question, flags, RCODE, extended error, and the first " +
			"addresses as answers with a TTL of 0; other records are not there, and the ID is 0. A query that got no response has no `CLIENT_RESPONSE`.",
	},
	{
		Name: "syslog", Schemes: []string{"udp", "tcp", "unix"}, Keys: []string{"identity"}, open: openSyslog,
		Doc: "Syslog messages (RFC 5424), facility `daemon`, severity `info`, one a query; the text is the row as JSON. Over TCP each has its length in front " +
			"(RFC 6587 §3.4.1). `unix` is a socket of datagrams such as `unix:///dev/log`.",
	},
	{
		Name: "json", Schemes: []string{"stdout", "tcp", "unix"}, File: true, Keys: []string{"rotate", "keep"}, open: openJSON,
		Doc: "A line of JSON a query, to a file, a stream or standard output.",
	},
	{
		Name: "clickhouse", Schemes: []string{"http", "https"}, open: openClickHouse,
		Keys: []string{"database", "table", "user", "password-file", "ca", "verify", "compress", "rows", "interval", "spill", "spill-size"},
		Doc: "Rows into a table of ClickHouse, over its HTTP interface, in batches. Each batch has a token by which ClickHouse knows it again, so that one whose outcome " +
			"was not heard of is not there twice; the table must have a window for that, as below. A batch that is refused as malformed is dropped.",
	},
}

// Kinds is the whole table. The caller does not change it.
func Kinds() []Kind { return kinds }

// kindOf finds a kind, or is nil.
func kindOf(name string) *Kind {
	// Not a method of the table: what opens a sink must not refer to it.
	i := slices.IndexFunc(Kinds(), func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return &Kinds()[i]
}

// Manual is a section of Markdown about the kinds of sinks.
func Manual() string {
	var b strings.Builder
	b.WriteString("\n### Kinds of sinks\n")
	for _, k := range kinds {
		b.WriteString("\n- `" + k.Name + "`: " + k.Doc)
	}
	b.WriteString("\n\nThe table of ClickHouse:\n\n```sql\n" + CreateTable(Default().ClickHouse) + "```\n")
	return b.String()
}
