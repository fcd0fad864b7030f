package plan

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// group is a sound group with one upstream.
func group(change func(*Forward)) Forward {
	f := DefaultForward()
	f.To = []Upstream{{Scheme: "udp", Addr: netip.MustParseAddrPort("192.0.2.1:53")}}
	if change != nil {
		change(&f)
	}
	return f
}

// TestCheckWithoutPositions: what other front ends than level 1 may hand over,
// or a program, is checked as well. The golden files of package config have the
// rest.
func TestCheckWithoutPositions(t *testing.T) {
	dir := t.TempDir()
	name := wire.Name("\x07example\x03org\x00")
	bits := netip.MustParsePrefix("10.1.2.3/8")
	for _, c := range []struct {
		name   string
		change func(*Plan)
		want   []string
	}{
		{"group", func(p *Plan) { p.Forward = []Forward{group(nil)} }, nil},
		{"empty group", func(p *Plan) { p.Forward = []Forward{{}} }, []string{"no upstream", `forward.select: "" is unknown`, `forward.ecs: ""`, "forward.timeout: 0s"}},
		{"upstream without address", func(p *Plan) { p.Forward = []Forward{group(func(f *Forward) { f.To = []Upstream{{}} })} }, []string{"forward.to: no upstream"}},
		{"scheme", func(p *Plan) { p.Forward = []Forward{group(func(f *Forward) { f.To[0].Scheme = "tls" })} }, []string{`unknown scheme "tls"`}},
		{"race of one", func(p *Plan) { p.Forward = []Forward{group(func(f *Forward) { f.Select, f.Race = "race", 1 })} }, []string{"race:1 is out of range"}},
		{"race not asked for", func(p *Plan) { p.Forward = []Forward{group(func(f *Forward) { f.Race = 0 })} }, nil},
		{"empty name", func(p *Plan) { p.Forward = []Forward{group(func(f *Forward) { f.For = []wire.Name{nil} })} }, []string{"forward.for: no name"}},
		{"same name, letters differ", func(p *Plan) {
			p.Forward = []Forward{
				group(func(f *Forward) { f.For = []wire.Name{name} }),
				group(func(f *Forward) { f.For = []wire.Name{wire.Name("\x07EXAMPLE\x03org\x00")} }),
			}
		}, []string{"example.org. goes to two groups"}},
		{"clients with bits", func(p *Plan) { p.Forward = []Forward{group(func(f *Forward) { f.Clients = []netip.Prefix{bits, {}} })} }, []string{
			"forward.clients: 10.1.2.3/8 has bits below the prefix (write 10.0.0.0/8)", "forward.clients: no prefix",
		}},
		{"cache that is off", func(p *Plan) { p.Cache = Cache{Size: -1, File: dir} }, nil},
		{"cache", func(p *Plan) { p.Cache = DefaultCache() }, nil},
		{"cache without values", func(p *Plan) { p.Cache = Cache{On: true} }, []string{"cache.size: 0 is", "cache.max-ttl: 0s", "cache.interval: 0s"}},
		{"cache in a folder", func(p *Plan) { p.Cache = DefaultCache(); p.Cache.File = dir }, []string{"is not a regular file"}},
		{"cache nowhere", func(p *Plan) { p.Cache = DefaultCache(); p.Cache.File = filepath.Join(dir, "a", "b") }, []string{"there is no folder"}},
		{"cache lives", func(p *Plan) {
			p.Cache = DefaultCache()
			p.Cache.MinTTL, p.Cache.MaxTTL = time.Minute, time.Minute
		}, nil},
		{"access", func(p *Plan) { p.Access = Access{Allow: []netip.Prefix{bits}, Deny: []netip.Prefix{{}}} }, []string{"access.allow: 10.1.2.3/8", "access.deny: no prefix"}},
		{"access by no listener", func(p *Plan) { p.Access.Listeners = []ListenerAccess{{}} }, []string{"access.listeners.listen: no listener"}},
		{"exempt", func(p *Plan) { p.Limits.Exempt = []netip.Prefix{bits} }, []string{"limits.exempt: 10.1.2.3/8"}},
		{"limits without values", func(p *Plan) { p.Limits = Limits{} }, []string{
			"limits.rate.burst: 0", "limits.rate.ipv4-prefix: 0", "limits.rate.ipv6-prefix: 0", "limits.rrl.ipv4-prefix: 0", "limits.rrl.ipv6-prefix: 0",
		}},
		{"secret", func(p *Plan) { p.Limits.Cookies.Secret = strings.Repeat("aF", 16) }, nil},
		{"secret that is none", func(p *Plan) { p.Limits.Cookies.Secret = strings.Repeat("xy", 16) }, []string{"expected 32 hexadecimal digits"}},
		{"views at the limit", func(p *Plan) { p.Views = views(1000) }, nil},
		{"too many views", func(p *Plan) { p.Views = views(1001) }, []string{"more than 1000 views"}},
		{"unknown view among many", func(p *Plan) {
			p.Views = views(1000)
			p.Forward = []Forward{group(func(f *Forward) { f.Views = []string{"elsewhere"} })}
		}, []string{"known are v0, v1, v2, v3, v4, v5, v6, v7, v8, v9 and more"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := sound()
			c.change(p)
			problems := p.Check()
			if len(problems) != len(c.want) {
				t.Fatalf("got %v, want %q", problems, c.want)
			}
			for i, problem := range problems {
				if !strings.Contains(problem.Error(), c.want[i]) {
					t.Errorf("got %q, want %q", problem.Error(), c.want[i])
				}
			}
		})
	}
}

// views makes views with names and clients.
func views(n int) []View {
	var all []View
	for i := range n {
		all = append(all, View{Name: fmt.Sprintf("v%d", i), Clients: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	}
	return all
}

// TestSecretStaysSecret: no problem has a part of it.
func TestSecretStaysSecret(t *testing.T) {
	p := sound()
	p.Limits.Cookies.Secret = "5ec7e75ec7e7"
	problems := p.Check()
	if len(problems) != 1 || strings.Contains(problems[0].Error(), "5ec7") {
		t.Errorf("got %v", problems)
	}
}

func TestShow(t *testing.T) {
	for in, want := range map[int64]string{0: "0", 1: "1", 1000: "1000", 1 << 10: "1KiB", 1 << 20: "1MiB", 1 << 40: "1TiB", 1<<20 + 1: "1048577", 1 << 50: "1024TiB"} {
		if got := size(in); got != want {
			t.Errorf("size(%d) = %s, want %s", in, got, want)
		}
	}
	for in, want := range map[int64]string{0: "0s", 500 * millisecond: "500ms", minute: "1m", hour: "1h", day: "1d", 25 * hour: "25h", 7 * day: "7d"} {
		if got := duration(in); got != want {
			t.Errorf("duration(%d) = %s, want %s", in, got, want)
		}
	}
}

func TestRange(t *testing.T) {
	for path, want := range map[string]string{
		"server.drain": "0s to 10m", "forward.timeout": "500ms to 30s", "cache.size": "1MiB to 1TiB", "limits.rrl.slip": "0 to 10",
		"timeout": " to ", "forward.select": " to ", "cache": " to ", "size": " to ",
	} {
		least, greatest, ok := Range(path)
		if got := least + " to " + greatest; got != want || ok != (want != " to ") {
			t.Errorf("Range(%q) = %s, %v, want %s", path, got, ok, want)
		}
	}
}
