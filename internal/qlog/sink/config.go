package sink

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Config is the configuration of one sink. Two that are equal mean the same, so that
// a reload can keep a sink.
type Config struct {
	Kind  string
	To    string // URL, or "stdout"; empty where File is written
	File  string // path; empty where To is written
	Queue int64  // octets in memory

	Files      Files
	Dnstap     Dnstap
	ClickHouse ClickHouse
}

// Files is how files are replaced.
type Files struct {
	Rotate int64 // octets of a file before a new one is begun
	Keep   int   // old files: FILE.1 is the newest
}

// Dnstap is what messages tell besides rows; Identity is the HOSTNAME of syslog too.
type Dnstap struct {
	Identity string // empty is the host's name
	Version  string
	Queries  bool // a CLIENT_QUERY before each CLIENT_RESPONSE
}

// ClickHouse is the table and how to reach it.
type ClickHouse struct {
	Database, Table string
	User            string // empty is ClickHouse's default
	PasswordFile    string // path; the first line is the password
	CA              string // path of certificates to trust, PEM; empty is the system's
	Verify          bool   // the server's certificate
	Compress        string // none, gzip or zstd
	Rows            int    // of a batch
	Interval        time.Duration
	Spill           string // folder; empty is none
	SpillSize       int64  // octets
}

// Default has the defaults of every kind.
func Default() Config {
	return Config{
		// Some seconds of a busy server's queries.
		Queue:  16 << 20,
		Files:  Files{Rotate: 64 << 20, Keep: 5},
		Dnstap: Dnstap{Version: "waymark"},
		ClickHouse: ClickHouse{
			Database: "default", Table: "queries", Verify: true, Compress: "none",
			// ClickHouse wants few inserts of many rows: about one a second at most.
			Rows: 10_000, Interval: 5 * time.Second,
			SpillSize: 1 << 30,
		},
	}
}

// Name is the kind and where to. It has no secret.
func (c Config) Name() string { return c.Kind + " " + c.To + c.File }

// Problem is what is wrong with one key of a configuration; an empty Key is the sink
// itself.
type Problem struct{ Key, Text, Mend string }

// Check returns all that is wrong with c, ranges of numbers apart. It opens nothing.
func (c Config) Check() []Problem {
	k := kindOf(c.Kind)
	if k == nil {
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		return []Problem{{"kind", fmt.Sprintf("unknown kind %q", c.Kind), "known are " + strings.Join(names, ", ")}}
	}
	problems := c.checkPlace(k)
	if k.Name == "clickhouse" {
		problems = append(problems, c.ClickHouse.check()...)
	}
	for _, text := range []struct{ key, value string }{{"identity", c.Dnstap.Identity}, {"version", c.Dnstap.Version}} {
		if len(text.value) > 255 || strings.ContainsFunc(text.value, func(r rune) bool { return r <= ' ' || r > '~' }) {
			problems = append(problems, Problem{text.key, fmt.Sprintf("%q is not up to 255 visible letters of ASCII", text.value), "shorten it, or leave it out"})
		}
	}
	return problems
}

// checkPlace checks that c goes to one place that its kind knows.
func (c Config) checkPlace(k *Kind) []Problem {
	places := strings.Join(k.Schemes, ", ")
	switch {
	case c.To != "" && c.File != "":
		return []Problem{{"file", "to and file are both written", "remove one"}}
	case c.File != "" && !k.File:
		return []Problem{{"file", k.Name + " is not written to a file", "write to, with " + places}}
	case c.To == "" && c.File == "":
		mend := "add to, with " + places
		if k.File {
			mend += "; or file"
		}
		return []Problem{{"", "it is not said where to", mend}}
	case c.File != "":
		return nil
	}
	scheme, _, _ := strings.Cut(c.To, "://")
	if !slices.Contains(k.Schemes, scheme) {
		return []Problem{{"to", fmt.Sprintf("%s cannot be sent to %s", k.Name, shown(c.To)), "write " + places}}
	}
	if _, _, mend := c.address(); mend != "" {
		return []Problem{{"to", shown(c.To) + " is no place to send to", mend}}
	}
	return nil
}

// shown is a URL that may have a password in it, for people.
func shown(to string) string {
	if scheme, rest, ok := strings.Cut(to, "://"); ok {
		if _, host, secret := strings.Cut(rest, "@"); secret {
			return fmt.Sprintf("%q", scheme+"://...@"+host)
		}
	}
	return fmt.Sprintf("%q", to)
}

// address is To for a dialer. mend is not empty when it is malformed.
func (c Config) address() (network, address, mend string) {
	scheme, rest, _ := strings.Cut(c.To, "://")
	switch scheme {
	case "stdout":
		if c.To != "stdout" {
			mend = "write stdout"
		}
		return "", "", mend
	case "unix":
		if !strings.HasPrefix(rest, "/") || len(rest) > maxUnixPath {
			mend = fmt.Sprintf("write unix:// and the whole path of a socket, at most %d octets", maxUnixPath)
		}
		return "unix", rest, mend
	case "http", "https":
		u, err := url.Parse(c.To)
		switch {
		case err != nil || u.Hostname() == "":
			mend = "write for example " + scheme + "://clickhouse.example:8123"
		case u.User != nil:
			mend = "write user and password-file in place of the part before the @"
		case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
			mend = "remove what stands behind the path"
		}
		return scheme, c.To, mend
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil || host == "" || port == "" || strings.ContainsAny(rest, "/?#@ ") {
		mend = "write for example " + scheme + "://192.0.2.1:6000"
	}
	return scheme, rest, mend
}

// maxUnixPath is sun_path of unix(7) less its final zero.
const maxUnixPath = 107

func (c ClickHouse) check() (problems []Problem) {
	for _, name := range []struct{ key, value string }{{"database", c.Database}, {"table", c.Table}} {
		if !identifier(name.value) {
			problems = append(problems, Problem{name.key, fmt.Sprintf("%q is no name of a %s", name.value, name.key), "write letters, digits and _, a letter first"})
		}
	}
	if !slices.Contains(Compressions(), c.Compress) {
		problems = append(problems, Problem{"compress", fmt.Sprintf("unknown compression %q", c.Compress), "write " + strings.Join(Compressions(), ", ")})
	}
	return problems
}

// Compressions are the ways in which a batch may be compressed.
func Compressions() []string { return []string{"none", "gzip", "zstd"} }

func identifier(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 128
}
