package plan

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// sound is a plan without problems.
func sound() *Plan {
	p := Default()
	p.Listen = []Listen{{Scheme: "udp", Addr: netip.MustParseAddrPort("127.0.0.1:53")}}
	return p
}

func TestCheckSound(t *testing.T) {
	if problems := sound().Check(); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	name := wire.Name("\x07example\x03org\x00")
	for _, c := range []struct {
		name   string
		change func(*Plan)
		want   []string
	}{
		{"no listener", func(p *Plan) { p.Listen = nil }, []string{"no address to listen on"}},
		{"listener without address", func(p *Plan) { p.Listen[0].Addr = netip.AddrPort{} }, []string{"listener without an address"}},
		{"scheme", func(p *Plan) { p.Listen[0].Scheme = "sctp" }, []string{`unknown scheme "sctp"`}},
		{"listener twice", func(p *Plan) { p.Listen = append(p.Listen, p.Listen[0]) }, []string{"named twice"}},
		{"same address, other transport", func(p *Plan) {
			p.Listen = append(p.Listen, Listen{Scheme: "tcp", Addr: p.Listen[0].Addr})
		}, nil},
		{"zone without name", func(p *Plan) { p.Zones = []Zone{{File: "x"}} }, []string{"zone without a name"}},
		{"zone without file", func(p *Plan) { p.Zones = []Zone{{Name: name}} }, []string{"zone example.org. has no file"}},
		{"zone twice, letters differ", func(p *Plan) {
			p.Zones = []Zone{{Name: name, File: dir}, {Name: wire.Name("\x07EXAMPLE\x03org\x00"), File: filepath.Join(dir, "x")}}
		}, []string{"is a folder", "named twice", "no such file"}},
		{"device", func(p *Plan) { p.Zones = []Zone{{Name: name, File: "/dev/null"}} }, []string{"not a regular file"}},
		{"limits", func(p *Plan) { p.Server.UDPSize, p.Server.TCP.Idle = 4097, 2*time.Hour }, []string{
			"server.udp-size: 4097 is out of range (write 512 to 4096)", "server.tcp.idle: 2h is out of range (write 1s to 1h)",
		}},
		{"log level", func(p *Plan) { p.Log.Level = "" }, []string{`unknown level ""`}},
		{"metrics on IPv6 loopback", func(p *Plan) { p.Metrics.Listen = netip.MustParseAddrPort("[::1]:9153") }, nil},
		{"metrics open", func(p *Plan) { p.Metrics.Listen = netip.MustParseAddrPort("192.0.2.1:0") }, []string{"from other machines", "port 0"}},
		{"metrics on every address", func(p *Plan) { p.Metrics.Listen = netip.MustParseAddrPort("[::]:9153") }, []string{"from other machines"}},
		{"control path", func(p *Plan) { p.Control.Path = strings.Repeat("x", 108) }, []string{"108 octets"}},
		{"control socket in no folder", func(p *Plan) { p.Control.Path = filepath.Join(dir, "none", "sock") }, []string{"there is no folder"}},
		{"group without user", func(p *Plan) { p.Server.Group = "0" }, []string{"without a user"}},
		{"TCP on all addresses and on one", func(p *Plan) {
			p.Listen = []Listen{{Scheme: "tcp", Addr: netip.MustParseAddrPort("127.0.0.1:5300")}, {Scheme: "tcp", Addr: netip.MustParseAddrPort("0.0.0.0:5300")}}
		}, []string{"has this address already"}},
		{"UDP on all addresses and on one", func(p *Plan) {
			p.Listen = []Listen{{Scheme: "udp", Addr: netip.MustParseAddrPort("127.0.0.1:5300")}, {Scheme: "udp", Addr: netip.MustParseAddrPort("0.0.0.0:5300")}}
		}, nil},
		{"control path that fits", func(p *Plan) { p.Control.Path = strings.Repeat("x", 107) }, nil},
		{"identity", func(p *Plan) {
			p.Server.ID, p.Server.Version = strings.Repeat("x", 256), strings.Repeat("x", 256)
		}, []string{"server.id", "server.version"}},
		{"user by number", func(p *Plan) { p.Server.User, p.Server.Group = "4294967295", "0" }, nil},
		{"user", func(p *Plan) { p.Server.User = "no such user" }, []string{`no user "no such user"`}},
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

func TestAt(t *testing.T) {
	pos := func(line int) Pos { return Pos{File: "f", Line: line, Column: 1} }
	p := &Plan{Where: map[string]Pos{"": pos(1), "server": pos(2), "server.tcp": pos(3), "zones[1]": pos(4)}}
	for path, want := range map[string]int{
		"": 1, "log": 1, "log.level": 1, "server.id": 2, "server.tcp.idle": 3, "zones[1].file": 4, "zones[0].file": 1,
	} {
		if got := p.At(path); got != pos(want) {
			t.Errorf("At(%q) = %v, want line %d", path, got, want)
		}
	}
	if got := (&Plan{}).At("server.id"); got != (Pos{}) {
		t.Errorf("without positions: %v", got)
	}
}

// TestSort: position decides, and problems at one position keep their order.
func TestSort(t *testing.T) {
	p := func(file string, line, column int, text string) Problem {
		return Problem{Pos: Pos{file, line, column}, Text: text}
	}
	problems := []Problem{p("b", 1, 1, "5"), p("a", 2, 1, "4"), p("a", 1, 9, "2"), p("a", 1, 9, "3"), p("", 0, 0, "1")}
	Sort(problems)
	for i, problem := range problems {
		if want := string(rune('1' + i)); problem.Text != want {
			t.Errorf("place %d has %s", i+1, problem.Text)
		}
	}
}
