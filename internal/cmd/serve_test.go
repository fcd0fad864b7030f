package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/plan"
)

func TestServeFlags(t *testing.T) {
	listen := []string{"udp://127.0.0.1:5300"}
	p, problems, err := (&ServeCmd{Listen: listen, Forward: []string{"192.0.2.1", "tcp://192.0.2.2"}, Cache: "1GiB"}).plan()
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if len(p.Forward) != 1 || len(p.Forward[0].To) != 2 || p.Cache.Size != 1<<30 {
		t.Errorf("forward %+v, cache %+v", p.Forward, p.Cache)
	}
	p, _, err = (&ServeCmd{Listen: listen, Forward: []string{"192.0.2.1"}}).plan()
	if err != nil || p.Cache != plan.DefaultCache() {
		t.Errorf("cache %+v, want the default: %v", p.Cache, err)
	}
	for _, c := range []struct {
		name string
		cmd  ServeCmd
		want string
	}{
		{"nothing", ServeCmd{}, "nothing to listen on"},
		{"no listener", ServeCmd{Forward: []string{"192.0.2.1"}}, "nothing to listen on"},
		{"file and upstream", ServeCmd{Config: "x.yaml", Forward: []string{"192.0.2.1"}}, "do not go with -c"},
		{"file and cache", ServeCmd{Config: "x.yaml", Cache: "off"}, "do not go with -c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := c.cmd.plan(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestLogJSON: lines of JSON where they are asked for.
func TestLogJSON(t *testing.T) {
	for _, c := range []struct {
		json bool
		want string
	}{{true, `"msg":"hello"`}, {false, "msg=hello"}} {
		file := filepath.Join(t.TempDir(), "log")
		log, closeLog, err := openLog(plan.Log{Level: "info", File: file, JSON: c.json})
		if err != nil {
			t.Fatal(err)
		}
		log.Info("hello")
		closeLog()
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), c.want) {
			t.Errorf("got %q, want %q: %v", text, c.want, err)
		}
	}
}
