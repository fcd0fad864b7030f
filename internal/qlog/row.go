package qlog

// Row is one query as files, sinks and people have it. The tags are the columns of
// a segment, and the words of the filters and of --json.
//
// Every column but Time, ClientPort, Latency and the sizes has few different
// values, or values that come again and again, and is kept by a dictionary.
type Row struct {
	Time       int64  `parquet:"time" json:"time"` // microseconds since 1970 UTC, of arrival
	Client     string `parquet:"client" json:"client"`
	ClientPort uint16 `parquet:"client_port" json:"client_port"`
	ClientID   string `parquet:"client_id" json:"client_id,omitempty"` // that the client named in the path or in TLS
	Protocol   string `parquet:"protocol" json:"protocol"`             // serve.Proto
	Listener   string `parquet:"listener" json:"listener"`             // its URL
	ServerName string `parquet:"server_name" json:"server_name,omitempty"`
	TLS        string `parquet:"tls" json:"tls,omitempty"` // version, cipher and key-exchange group

	Name  string `parquet:"name" json:"name"` // presentation format, lower case, with the final dot
	Type  string `parquet:"type" json:"type"`
	Class string `parquet:"class" json:"class"`
	ECS   string `parquet:"ecs" json:"ecs,omitempty"` // the prefix that the client sent (RFC 7871)

	Rcode    string `parquet:"rcode" json:"rcode"`
	Flags    string `parquet:"flags" json:"flags"` // such as "AA RD DO": of AA TC RD RA AD CD of the response, DO of the query
	Source   string `parquet:"source" json:"source"`
	Rule     string `parquet:"rule" json:"rule,omitempty"`         // file and line of the rule that decided
	Upstream string `parquet:"upstream" json:"upstream,omitempty"` // that answered
	EDE      string `parquet:"ede" json:"ede,omitempty"`           // code of the extended error (RFC 8914)
	Answers  string `parquet:"answers" json:"answers,omitempty"`   // up to four addresses, with spaces between

	Latency   uint32 `parquet:"latency" json:"latency"` // microseconds until the response was ready to send
	QuerySize uint16 `parquet:"query_size" json:"query_size"`
	Size      uint16 `parquet:"size" json:"size"` // of the response
}
