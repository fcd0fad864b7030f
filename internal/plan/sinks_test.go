package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSinks(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clickHouse := func(change func(*Sink)) []Sink {
		s := DefaultSink()
		s.Kind, s.To = "clickhouse", "https://ch.example:8443"
		change(&s)
		return []Sink{s}
	}
	simple := func(kind, to, file string) []Sink {
		s := DefaultSink()
		s.Kind, s.To, s.File = kind, to, file
		return []Sink{s}
	}
	for _, c := range []struct {
		name  string
		sinks []Sink
		keys  []string // that were written
		want  []string
	}{
		{"none", nil, nil, nil},
		{"good", append(simple("json", "", "a.json"), simple("dnstap", "unix:///run/tap.sock", "")...), nil, nil},
		{"a good table", clickHouse(func(s *Sink) { s.Table.PasswordFile = password }), []string{"table", "spill"}, nil},
		{"kind", simple("kafka", "tcp://192.0.2.1:1", ""), []string{"table"}, []string{"log.kind: unknown kind"}},
		{"nowhere", simple("json", "", ""), nil, []string{"log: it is not said where to"}},
		{"a key of another kind", simple("json", "stdout", ""), []string{"table", "rotate"}, []string{"log.table: json has no such key"}},
		{"two writers", append(simple("json", "", "a"), simple("dnstap", "", "a")...), nil, []string{"log.file: a is written to by two sinks"}},
		{"no password", clickHouse(func(s *Sink) { s.Table.PasswordFile = password + "x" }), nil, []string{"log.password-file: cannot read"}},
		{"ranges", clickHouse(func(s *Sink) {
			s.Queue, s.Rotate, s.Keep, s.Table.Rows, s.Table.Interval, s.Table.SpillSize = 1, 1, -1, 0, time.Hour, 1
		}), nil, []string{
			"log.queue: 1 is out of range", "log.rotate: 1 ", "log.keep: -1 ", "log.rows: 0 ", "log.interval: 1h ", "log.spill-size: 1 ",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Plan{Where: map[string]Pos{"": {File: "f", Line: 1}}}
			for _, key := range c.keys {
				p.Where["log[0]."+key] = Pos{File: "f", Line: 7}
			}
			check := &checker{plan: p}
			check.sinks("log", c.sinks)
			if len(check.problems) != len(c.want) {
				t.Fatalf("got %v, want %q", check.problems, c.want)
			}
			for i, want := range c.want {
				if got := check.problems[i]; !strings.HasPrefix(got.Text, want) || got.Mend == "" {
					t.Errorf("got %+v, want %q and a mend", got, want)
				}
			}
		})
	}
}

// A problem has the position of its key.
func TestSinkPositions(t *testing.T) {
	at := Pos{File: "f", Line: 3}
	s := DefaultSink()
	s.Kind, s.To = "dnstap", "udp://192.0.2.1:1"
	c := &checker{plan: &Plan{Where: map[string]Pos{"log[0].to": at}}}
	c.sinks("log", []Sink{s})
	if len(c.problems) != 1 || c.problems[0].Pos != at {
		t.Errorf("got %+v, want one problem at %v", c.problems, at)
	}
}

// What a front end sets reaches the sink.
func TestSinkConfig(t *testing.T) {
	s := DefaultSink()
	s.Kind, s.To, s.Queue, s.Rotate, s.Keep, s.Identity, s.Queries = "k", "t", 1, 2, 3, "i", true
	s.Table.Table, s.Table.SpillSize = "q", 4
	got := s.Config()
	if got.Kind != "k" || got.To != "t" || got.Queue != 1 || got.Files.Rotate != 2 || got.Files.Keep != 3 ||
		got.Dnstap.Identity != "i" || !got.Dnstap.Queries || got.ClickHouse.Table != "q" || got.ClickHouse.SpillSize != 4 {
		t.Errorf("got %+v from %+v", got, s)
	}
}
