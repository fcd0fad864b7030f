package cmd

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/config"
)

// logFolder says which log is meant.
type logFolder struct {
	Config string `short:"c" placeholder:"FILE" xor:"log" help:"Configuration file whose query log is meant."`
	Dir    string `placeholder:"DIR" xor:"log" help:"Folder of the query log."`
}

func (f *logFolder) folder() (string, error) {
	if f.Dir != "" {
		return f.Dir, nil
	}
	if f.Config == "" {
		return "", errors.New("finding the query log: give -c FILE or --dir DIR")
	}
	p, _, err := config.Load(f.Config) // problems are the server's to tell
	if err != nil {
		return "", err
	}
	if p == nil || p.QueryLog.Dir == "" {
		return "", fmt.Errorf("finding the query log: %s has none; add querylog: {dir: …}, or give --dir DIR", f.Config)
	}
	return p.QueryLog.Dir, nil
}

// logFilter is the conditions of search.Keys as flags, field by field: a test holds
// the names, examples and texts together.
type logFilter struct {
	From     []string `sep:"none" placeholder:"1h" group:"Filters" help:"Not before this time: 2026-01-31T12:00:00Z, 2026-01-31, 14:30, or how long ago: 90s, 1h, 2d."`
	Until    []string `sep:"none" placeholder:"2026-01-31" group:"Filters" help:"Before this time."`
	Client   []string `sep:"none" placeholder:"192.0.2.0/24" group:"Filters" help:"From one of these addresses or prefixes."`
	Name     []string `sep:"none" placeholder:"www.example.org" group:"Filters" help:"For one of these names."`
	Suffix   []string `sep:"none" placeholder:"example.org" group:"Filters" help:"For one of these names, or a name below."`
	Contains []string `sep:"none" placeholder:"track" group:"Filters" help:"For a name that has one of these texts in it."`
	Type     []string `sep:"none" placeholder:"A,AAAA" group:"Filters" help:"For one of these types."`
	Rcode    []string `sep:"none" placeholder:"NXDOMAIN" group:"Filters" help:"Answered with one of these response codes."`
	Source   []string `sep:"none" placeholder:"cache,stale" group:"Filters" help:"Answered from one of these: zone, local, cache, stale, forward, refused, error, none."`
	Rule     []string `sep:"none" placeholder:"waymark.yaml:12" group:"Filters" help:"Decided by one of these rules: a file and line, or a file."`
	Upstream []string `sep:"none" placeholder:"udp://192.0.2.53" group:"Filters" help:"Answered by one of these upstreams, with or without what stands before ://."`
	Listener []string `sep:"none" placeholder:"udp://0.0.0.0:53" group:"Filters" help:"Received by one of these listeners, with or without what stands before ://."`
	Protocol []string `sep:"none" placeholder:"tcp" group:"Filters" help:"Over one of these: udp, tcp."`
	Answer   []string `sep:"none" placeholder:"192.0.2.1" group:"Filters" help:"With one of these addresses, or an address of these prefixes, in the answer."`
	Slower   []string `sep:"none" placeholder:"50ms" group:"Filters" help:"Answered after more than this."`
	Blocked  *bool    `negatable:"" group:"Filters" help:"Blocked, censored, filtered or prohibited (RFC 8914 §4.16 to §4.19); false: all others."`
	Failed   *bool    `negatable:"" group:"Filters" help:"Answered with SERVFAIL; false: all others."`
}

// values are the flags as ParseFilter takes them.
func (f *logFilter) values() map[string][]string {
	values := map[string][]string{}
	v := reflect.ValueOf(*f)
	for i := range v.NumField() {
		key := strings.ToLower(v.Type().Field(i).Name)
		switch field := v.Field(i).Interface().(type) {
		case []string:
			values[key] = field
		case *bool:
			if field != nil {
				values[key] = []string{strconv.FormatBool(*field)}
			}
		}
	}
	return values
}

// logOrder is the rest of search.Keys.
type logOrder struct {
	Order  string `placeholder:"oldest" help:"Which come first: newest or oldest."`
	Limit  string `placeholder:"100" help:"So many rows at most; 0 is all."`
	Cursor string `placeholder:"1790000000000000-1" help:"Go on behind this place, as the answer before told it."`
}

// order adds the flags to the values of a filter.
func (o *logOrder) order(values map[string][]string) {
	for key, v := range map[string]string{"order": o.Order, "limit": o.Limit, "cursor": o.Cursor} {
		if v != "" {
			values[key] = []string{v}
		}
	}
}

// logFormat is what rows are written as.
type logFormat struct {
	JSON    bool   `name:"json" xor:"format" help:"Write JSON, one object a line."`
	CSV     bool   `name:"csv" xor:"format" help:"Write CSV, with a line of names."`
	Parquet string `xor:"format" placeholder:"FILE" help:"Write one Parquet file, in the format of the log's segments."`
}

// chosen tells whether a format was named.
func (f logFormat) chosen() bool { return f.JSON || f.CSV || f.Parquet != "" }

// name is the format as search knows it.
func (f logFormat) name() string {
	switch {
	case f.Parquet != "":
		return "parquet"
	case f.CSV:
		return "csv"
	}
	return "json"
}
