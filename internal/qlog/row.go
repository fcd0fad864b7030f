package qlog

// Row is one query as files, sinks and people have it. The tags are the columns of
// a segment, the keys of filters and of --json.
type Row struct {
	Time int64 `parquet:"time" json:"time"` // microseconds since 1970 UTC, of arrival
	Sender
	Question
	Outcome
	Latency   uint32 `parquet:"latency" json:"latency"` // microseconds until the response was ready to send
	QuerySize uint16 `parquet:"query_size" json:"query_size"`
	Size      uint16 `parquet:"size" json:"size"` // of the response; 0: there was none
}

// Sender is where a query came from, and how.
type Sender struct {
	Client     string `parquet:"client" json:"client"`
	ClientPort uint16 `parquet:"client_port" json:"client_port"`
	Protocol   string `parquet:"protocol" json:"protocol"` // serve.Proto
	Listener   string `parquet:"listener" json:"listener"` // its URL
}

// Question is what was asked.
type Question struct {
	Name  string `parquet:"name" json:"name"` // presentation format, lower case, with the final dot
	Type  string `parquet:"type" json:"type"`
	Class string `parquet:"class" json:"class"`
	ECS   string `parquet:"ecs" json:"ecs,omitempty"` // the prefix that the client sent (RFC 7871)
}

// Outcome is what became of it.
type Outcome struct {
	Rcode    string `parquet:"rcode" json:"rcode"`
	Flags    string `parquet:"flags" json:"flags"` // such as "AA RD DO": of AA TC RD RA AD CD of the response, DO of the query
	Source   string `parquet:"source" json:"source"`
	Rule     string `parquet:"rule" json:"rule,omitempty"`         // file and line of the rule that decided
	Upstream string `parquet:"upstream" json:"upstream,omitempty"` // that answered
	EDE      string `parquet:"ede" json:"ede,omitempty"`           // code of the extended error (RFC 8914)
	Answers  string `parquet:"answers" json:"answers,omitempty"`   // up to four addresses, with spaces between
}
