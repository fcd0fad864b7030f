package config

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/plan"
)

func TestFromFlags(t *testing.T) {
	dir := t.TempDir()
	zone := filepath.Join(dir, "a=b.zone")
	if err := os.WriteFile(zone, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p, problems := FromFlags(Flags{Listen: []string{"udp://127.0.0.1:5300", "tcp://[::1]"}, Zones: []string{"Example.org=" + zone, ".=" + zone}})
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
	if p.Server.UDPSize != 1232 || p.Log.Level != "info" || p.Metrics.Listen.IsValid() || p.Control.Path != "" || len(p.Forward) > 0 || p.Cache.On {
		t.Errorf("not the defaults: %+v", p)
	}
}

func TestFromFlagsForward(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags Flags
		size  int64 // of the cache; 0 is off
	}{
		{"cache by itself", Flags{Forward: []string{"9.9.9.9", "tcp://[2001:db8::1]:5300"}}, plan.DefaultCache().Size},
		{"cache with its size", Flags{Forward: []string{"udp://9.9.9.9", "tcp://[2001:db8::1]:5300"}, Cache: "1GiB"}, 1 << 30},
		{"cache off", Flags{Forward: []string{"9.9.9.9:53", "tcp://[2001:db8::1]:5300"}, Cache: "off"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.flags.Listen = []string{"udp://127.0.0.1"}
			p, problems := FromFlags(c.flags)
			if len(problems) > 0 || len(p.Forward) != 1 || len(p.Forward[0].For) > 0 {
				t.Fatalf("problems %v, groups %+v, want one for every name", problems, p.Forward)
			}
			want := []plan.Upstream{
				{Scheme: "udp", Addr: netip.MustParseAddrPort("9.9.9.9:53")},
				{Scheme: "tcp", Addr: netip.MustParseAddrPort("[2001:db8::1]:5300")},
			}
			if !slices.Equal(p.Forward[0].To, want) {
				t.Errorf("upstreams %v, want %v", p.Forward[0].To, want)
			}
			if p.Cache.On != (c.size > 0) || p.Cache.Size != c.size {
				t.Errorf("cache %+v, want size %d", p.Cache, c.size)
			}
		})
	}
	p, problems := FromFlags(Flags{Listen: []string{"udp://127.0.0.1"}, Cache: "on"})
	if len(problems) > 0 || !p.Cache.On {
		t.Errorf("a cache alone: %+v %v", p.Cache, problems)
	}
}

func TestFromFlagsProblems(t *testing.T) {
	one := []string{"udp://127.0.0.1"}
	for _, c := range []struct {
		name  string
		flags Flags
		want  []string
	}{
		{"nothing", Flags{}, []string{"no address to listen on"}},
		{"listener", Flags{Listen: []string{"127.0.0.1"}}, []string{`--listen: "127.0.0.1": expected a URL`}},
		{"port", Flags{Listen: []string{"udp://127.0.0.1:0"}}, []string{"port 0 is no port"}},
		{"twice", Flags{Listen: []string{"udp://127.0.0.1", "udp://127.0.0.1:53"}}, []string{"is named twice"}},
		{"zone", Flags{Listen: one, Zones: []string{"example.org", "a..b=x", "=x", "example.org=", "example.org=/nonexistent/x"}}, []string{
			`--zone: "example.org" has no file`, `--zone: "a..b" is no name: empty label`, "--zone: the name is empty",
			"zone example.org. has no file", "is named twice", "cannot read /nonexistent/x: no such file",
		}},
		{"both", Flags{Listen: []string{"x"}, Zones: []string{"y"}}, []string{`--listen: "x"`, `--zone: "y"`}},
		{"upstream", Flags{Listen: one, Forward: []string{"tls://9.9.9.9", "localhost"}}, []string{
			`--forward: "tls://9.9.9.9": tls is not in this version yet`, `--forward: "localhost": expected an IP address`,
		}},
		{"upstream twice", Flags{Listen: one, Forward: []string{"9.9.9.9", "udp://9.9.9.9:53"}}, []string{"udp://9.9.9.9:53 is in this group twice"}},
		{"upstream that is ourselves", Flags{Listen: one, Forward: []string{"127.0.0.1"}}, []string{"the server would ask itself"}},
		{"cache", Flags{Listen: one, Forward: []string{"9.9.9.9"}, Cache: "big"}, []string{`--cache: expected a size, on or off, got "big"`}},
		{"cache too small", Flags{Listen: one, Forward: []string{"9.9.9.9"}, Cache: "1KiB"}, []string{"cache.size: 1KiB is out of range"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, problems := FromFlags(c.flags)
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
