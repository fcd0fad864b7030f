package mosdns

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

type udpArgs struct {
	Entry  string `key:"entry"`
	Listen string `key:"listen"`
}

type tcpArgs struct {
	Entry  string `key:"entry"`
	Listen string `key:"listen"`
	Cert   string `key:"cert"`
	Key    string `key:"key"`
	Idle   int    `key:"idle_timeout"` // seconds; 0 is the default
}

// maxIdle bounds idle_timeout, in seconds.
const maxIdle = 24 * 60 * 60

func (f *file) udpServer(p plugin) {
	var args udpArgs
	where := f.serverArgs(p, &args)
	f.listen(p, plan.Listen{Scheme: "udp", Entry: args.Entry}, args.Listen, where)
}

func (f *file) tcpServer(p plugin) {
	var args tcpArgs
	where := f.serverArgs(p, &args)
	if args.Cert != "" || args.Key != "" {
		key := "cert"
		if args.Cert == "" {
			key = "key"
		}
		f.src.Problem(where[key], "remove "+key+" for plain TCP", "plugin %s: TLS is not in this version yet", p.tag)
	}
	l := plan.Listen{Scheme: "tcp", Entry: args.Entry}
	if args.Idle > 0 {
		l.Idle = time.Duration(min(args.Idle, maxIdle)) * time.Second
	}
	if args.Idle > maxIdle {
		f.src.Problem(where["idle_timeout"], "write seconds, at most "+strconv.Itoa(maxIdle), "plugin %s: idle_timeout: %d is out of range", p.tag, args.Idle)
	}
	f.listen(p, l, args.Listen, where)
}

// serverArgs reads arguments and tells where each was written.
func (f *file) serverArgs(p plugin, args any) map[string]plan.Pos {
	where := map[string]plan.Pos{"": p.pos, "entry": p.pos, "listen": p.pos}
	d := &decoder{src: f.src, where: where}
	d.into(p.args, args, p.kind)
	return where
}

// listen adds a listener. One whose address has a problem has none.
func (f *file) listen(p plugin, l plan.Listen, text string, where map[string]plan.Pos) {
	l.Pos = where["listen"]
	if l.Entry == "" {
		f.src.Problem(where["entry"], "name a sequence", "plugin %s: the key entry is missing", p.tag)
	} else if f.find(where["entry"], l.Entry) == server {
		f.src.Problem(where["entry"], "name a sequence", "plugin %s: entry: %s is a server", p.tag, l.Entry)
	}
	addr, what, mend := address(text)
	if what != "" {
		f.src.Problem(l.Pos, mend, "plugin %s: listen: %s", p.tag, what)
	}
	l.Addr = addr
	f.plan.Listen = append(f.plan.Listen, l)
}

// address reads host:port; without a host it is every address. what is wrong with
// it otherwise.
func address(text string) (_ netip.AddrPort, what, mend string) {
	const example = "write for example 127.0.0.1:53 or [::1]:53"
	if text == "" {
		return netip.AddrPort{}, "no address", example
	}
	if strings.HasPrefix(text, "@") {
		return netip.AddrPort{}, "abstract sockets are not in this version yet", example
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return netip.AddrPort{}, tree.Quote(text) + " is no address with a port", example
	}
	switch host {
	case "":
		host = "::"
	case "localhost":
		host = "127.0.0.1"
	}
	if port == "domain" {
		port = "53"
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.AddrPort{}, tree.Quote(host) + " is no IP address", "names are not looked up; " + example
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, tree.Quote(port) + " is no port", example
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), "", ""
}
