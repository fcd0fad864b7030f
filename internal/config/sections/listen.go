package sections

import (
	"net/netip"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

const listenExample = "udp://127.0.0.1:53\ntcp://127.0.0.1:53"

var listenRow = row[plan.Plan]{
	key:     "listen",
	value:   listOf(listenValue, func(p *plan.Plan) *[]plan.Listen { return &p.Listen }),
	example: listenExample,
	doc: "The addresses to answer on, as URLs. At least one is needed. The host is an IP address, IPv6 in brackets; " +
		"without a host (`udp://:53`) it is every address of the machine, IPv4 and IPv6. " +
		"The port is 53 unless written. The schemes are `udp` and `tcp`; a DNS server needs both (RFC 7766 §5).",
}

var listenValue = value[plan.Listen]{want: "an address", read: readListen}

// port is where DNS is without another word.
const port = 53

// laterSchemes are transports that the design knows and that are not built yet.
var laterSchemes = []string{"tls", "https", "quic", "http", "h3"}

func readListen(r *reader, s spot, into *plan.Listen) {
	into.Pos = s.node.Pos
	text, ok := r.text(s)
	if !ok {
		return
	}
	l, problem := ParseListen(s.node.Pos, text)
	if problem != nil {
		r.Problem(problem.Pos, problem.Mend, "%s: %s", s.name(), problem.Text)
	}
	*into = l
}

// ParseListen reads one listener, such as udp://127.0.0.1:53 or tcp://[::1].
// With a problem the listener has its position and nothing else.
func ParseListen(pos plan.Pos, text string) (plan.Listen, *plan.Problem) {
	wrong := func(mend, what string) (plan.Listen, *plan.Problem) {
		return plan.Listen{Pos: pos}, &plan.Problem{Pos: pos, Text: tree.Quote(text) + ": " + what, Mend: mend}
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return wrong("write for example udp://127.0.0.1:53", "expected a URL")
	}
	if scheme != "udp" && scheme != "tcp" {
		for _, later := range laterSchemes {
			if scheme == later {
				return wrong("write udp:// or tcp://", scheme+" is not in this version yet")
			}
		}
		return wrong("write udp:// or tcp://", "unknown scheme "+tree.Quote(scheme))
	}
	if strings.ContainsAny(rest, "/?#") {
		return wrong("remove what stands behind the port", "a listener has no path")
	}
	if rest == "" {
		return wrong("write "+scheme+"://:53 for every address", "no address")
	}
	addr, mend := hostPort(rest)
	if mend != "" {
		return wrong(mend, "expected an IP address and a port")
	}
	return plan.Listen{Pos: pos, Scheme: scheme, Addr: addr}, nil
}

// hostPort reads HOST, HOST:PORT or :PORT; a mend says that it could not.
func hostPort(s string) (_ netip.AddrPort, mend string) {
	if strings.HasPrefix(s, ":") && !strings.HasPrefix(s, "::") {
		s = "[::]" + s
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), ""
	}
	bare := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		bare = s[1 : len(s)-1]
	}
	addr, err := netip.ParseAddr(bare)
	switch {
	case err != nil && strings.HasPrefix(s, "*"):
		return netip.AddrPort{}, "leave the host out for every address, as in udp://:53"
	case err != nil:
		return netip.AddrPort{}, "write for example 127.0.0.1:53 or [::1]:53; names are not looked up"
	case addr.Is6() == (bare == s):
		return netip.AddrPort{}, "IPv6 addresses stand in brackets, as in [::1]:53; IPv4 addresses do not"
	}
	return netip.AddrPortFrom(addr.Unmap(), port), ""
}
