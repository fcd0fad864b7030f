package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFromFlags(t *testing.T) {
	dir := t.TempDir()
	zone := filepath.Join(dir, "a=b.zone")
	if err := os.WriteFile(zone, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p, problems := FromFlags([]string{"udp://127.0.0.1:5300", "tcp://[::1]"}, []string{"Example.org=" + zone, ".=" + zone})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if len(p.Listen) != 2 || p.Listen[0].String() != "udp://127.0.0.1:5300" || p.Listen[1].String() != "tcp://[::1]:53" {
		t.Errorf("listen: %v", p.Listen)
	}
	if len(p.Zones) != 2 || p.Zones[0].Name.String() != "example.org." || p.Zones[0].File != zone || p.Zones[1].Name.String() != "." {
		t.Errorf("zones: %v", p.Zones)
	}
	if len(p.Programs) == 0 {
		t.Error("no program")
	}
	if p.Server.UDPSize != 1232 || p.Log.Level != "info" || p.Metrics.Listen.IsValid() || p.Control.Path != "" {
		t.Errorf("not the defaults: %+v", p)
	}
}

func TestFromFlagsProblems(t *testing.T) {
	for _, c := range []struct {
		name          string
		listen, zones []string
		want          []string
	}{
		{"nothing", nil, nil, []string{"no address to listen on"}},
		{"listener", []string{"127.0.0.1"}, nil, []string{`--listen: "127.0.0.1": expected a URL`}},
		{"port", []string{"udp://127.0.0.1:0"}, nil, []string{"port 0 is no port"}},
		{"twice", []string{"udp://127.0.0.1", "udp://127.0.0.1:53"}, nil, []string{"is named twice"}},
		{"zone", []string{"udp://127.0.0.1"}, []string{"example.org", "a..b=x", "=x", "example.org=", "example.org=/nonexistent/x"}, []string{
			`--zone: "example.org" has no file`, `--zone: "a..b" is no name: empty label`, "--zone: the name is empty",
			"zone example.org. has no file", "is named twice", "cannot read /nonexistent/x: no such file",
		}},
		{"both", []string{"x"}, []string{"y"}, []string{`--listen: "x"`, `--zone: "y"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, problems := FromFlags(c.listen, c.zones)
			if p == nil || len(problems) != len(c.want) {
				t.Fatalf("plan %v, problems %v, want %q", p, problems, c.want)
			}
			for i, problem := range problems {
				if text := problem.Error(); !strings.HasPrefix(text, "command line: ") || !strings.Contains(text, c.want[i]) {
					t.Errorf("got %q, want %q", text, c.want[i])
				}
			}
		})
	}
}

func TestLoadUnreadable(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Load(filepath.Join(dir, "missing.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("folder: %v", err)
	}
}
