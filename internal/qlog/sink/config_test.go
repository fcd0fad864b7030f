package sink

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, kind, to, file string
		key, want            string // of the first problem
	}{
		{"dnstap over unix", "dnstap", "unix:///run/tap.sock", "", "", ""},
		{"dnstap over tcp", "dnstap", "tcp://collector.example:6000", "", "", ""},
		{"dnstap to a file", "dnstap", "", "tap", "", ""},
		{"IPv6", "json", "tcp://[2001:db8::1]:6000", "", "", ""},
		{"stdout", "json", "stdout", "", "", ""},
		{"clickhouse", "clickhouse", "https://ch.example", "", "", ""},
		{"a path", "clickhouse", "http://[2001:db8::1]:8123/ch", "", "", ""},

		{"kind", "tap", "stdout", "", "kind", "unknown kind"},
		{"both", "json", "stdout", "f", "file", "both written"},
		{"neither", "json", "", "", "", "where to"},
		{"syslog to a file", "syslog", "", "f", "file", "not written to a file"},
		{"clickhouse to a file", "clickhouse", "", "f", "file", "not written to a file"},
		{"scheme", "dnstap", "udp://192.0.2.1:1", "", "to", "cannot be sent"},
		{"no scheme", "json", "192.0.2.1:1", "", "to", "cannot be sent"},
		{"no port", "json", "tcp://192.0.2.1", "", "to", "no place"},
		{"no host", "json", "tcp://:1", "", "to", "no place"},
		{"a path behind a port", "json", "tcp://h:1/x", "", "to", "no place"},
		{"a relative socket", "json", "unix://sock", "", "to", "no place"},
		{"a long socket", "json", "unix:///" + strings.Repeat("x", 107), "", "to", "no place"},
		{"stdout with more", "json", "stdout://x", "", "to", "no place"},
		{"password", "clickhouse", "https://u:secret@h/", "", "to", "no place"},
		{"parameters", "clickhouse", "https://h/?query=x", "", "to", "no place"},
		{"no server", "clickhouse", "https:///x", "", "to", "no place"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := Default()
			conf.Kind, conf.To, conf.File = c.kind, c.to, c.file
			problems := conf.Check()
			if c.want == "" {
				if len(problems) > 0 {
					t.Fatalf("got %q", problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Key != c.key || !strings.Contains(problems[0].Text, c.want) || problems[0].Mend == "" {
				t.Fatalf("got %q, want %s: %s", problems, c.key, c.want)
			}
			if strings.Contains(problems[0].Text, "secret") {
				t.Errorf("a password is told: %q", problems[0].Text)
			}
		})
	}
}

func TestCheckWords(t *testing.T) {
	c := config("clickhouse", "http://h")
	c.Dnstap.Identity, c.Dnstap.Version = "a b", strings.Repeat("x", 256)
	c.ClickHouse.Database, c.ClickHouse.Table, c.ClickHouse.Compress = "a`b", "1a", "xz"
	got := map[string]bool{}
	for _, p := range c.Check() {
		got[p.Key] = p.Mend != ""
	}
	for _, key := range []string{"identity", "version", "database", "table", "compress"} {
		if !got[key] {
			t.Errorf("no problem, or no mend, for %s", key)
		}
	}
}
