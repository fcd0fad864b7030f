package act

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/upstream"
	"github.com/waymark-dns/waymark/internal/upstream/egress"
)

// RelayArgs is the configuration of a forward object.
type RelayArgs struct {
	Upstreams        []RelayServer `key:"upstreams"`
	Concurrent       int           `key:"concurrent"`
	Socks5           string        `key:"socks5"`
	SoMark           int           `key:"so_mark"`
	BindToDevice     string        `key:"bind_to_device"`
	Bootstrap        string        `key:"bootstrap"`
	BootstrapVersion int           `key:"bootstrap_version"`
}

// RelayServer is one upstream of a forward object. What a transport has no use for
// is not looked at.
type RelayServer struct {
	Tag                string `key:"tag"`
	Addr               string `key:"addr"`
	DialAddr           string `key:"dial_addr"`
	IdleTimeout        int    `key:"idle_timeout"`
	MaxConns           int    `key:"max_conns"`
	EnablePipeline     bool   `key:"enable_pipeline"`
	EnableHTTP3        bool   `key:"enable_http3"`
	InsecureSkipVerify bool   `key:"insecure_skip_verify"`
	Socks5             string `key:"socks5"`
	SoMark             int    `key:"so_mark"`
	BindToDevice       string `key:"bind_to_device"`
	Bootstrap          string `key:"bootstrap"`
	BootstrapVersion   int    `key:"bootstrap_version"`
}

// maxConcurrent is the most upstreams that a question is sent to at once.
const maxConcurrent = 3

func makeRelay(e *Env, tag string, a *RelayArgs) (any, error) {
	if len(a.Upstreams) == 0 {
		return nil, fmt.Errorf("no upstreams")
	}
	return newRelay(e, tag, a, a.Upstreams)
}

// quickRelay is `forward address…`.
func quickRelay(e *Env, args string) (any, error) {
	a := &RelayArgs{Concurrent: maxConcurrent}
	for _, addr := range strings.Fields(args) {
		a.Upstreams = append(a.Upstreams, RelayServer{Addr: addr})
	}
	return newRelay(e, "", a, a.Upstreams)
}

func newRelay(e *Env, tag string, a *RelayArgs, servers []RelayServer) (*Relay, error) {
	c := upstream.Config{Select: upstream.Random}
	r := &Relay{Now: e.Now, Tag: tag}
	for _, u := range servers {
		s, err := relayServer(u, a)
		if err != nil {
			return nil, fmt.Errorf("reading upstream %q: %w", u.Addr, err)
		}
		at := r.enter(e, &c, s)
		if u.Tag != "" {
			r.Tagged = append(r.Tagged, TaggedServer{u.Tag, at})
		}
	}
	if c.Race = min(max(a.Concurrent, 1), maxConcurrent, len(c.Servers)); c.Race > 1 {
		c.Select = upstream.Race
	}
	var err error
	if r.Asked, err = e.NewGroup(c); err != nil {
		return nil, err
	}
	r.tagged = func(tags string) (*Relay, error) {
		some, err := a.withTags(tags)
		if err != nil {
			return nil, err
		}
		return newRelay(e, tag, a, some)
	}
	if tag != "" && len(r.Tagged) > 0 {
		m := e.made()
		m.Relays = append(m.Relays, r)
	}
	return r, nil
}

// enter gives s a place among the servers. One that is named twice is asked once:
// it would say the same again.
func (a *Relay) enter(e *Env, c *upstream.Config, s upstream.Server) (at int) {
	at = slices.IndexFunc(c.Servers, func(o upstream.Server) bool { o.Name = s.Name; return o == s })
	if at < 0 {
		at = len(c.Servers)
		c.Servers = append(c.Servers, s)
		a.Servers = append(a.Servers, s.Name)
		number := uint16(0)
		if e.Number != nil {
			number = e.Number(s.Name)
		}
		a.Numbers = append(a.Numbers, number)
	}
	return at
}

// withTags is the upstreams with these tags.
func (a *RelayArgs) withTags(tags string) (some []RelayServer, err error) {
	for _, tag := range strings.Fields(tags) {
		i := slices.IndexFunc(a.Upstreams, func(u RelayServer) bool { return u.Tag == tag })
		if i < 0 {
			return nil, fmt.Errorf("no upstream with the tag %q", tag)
		}
		some = append(some, a.Upstreams[i])
	}
	return some, nil
}

// relayServer reads one upstream. Its address is an IP address; what is to be
// dialled may be another.
func relayServer(u RelayServer, a *RelayArgs) (upstream.Server, error) {
	s := upstream.Server{Name: u.Addr, Way: egress.Way{Mark: or(u.SoMark, a.SoMark), Device: or(u.BindToDevice, a.BindToDevice)}}
	scheme, rest, ok := strings.Cut(u.Addr, "://")
	if !ok {
		scheme, rest = "udp", u.Addr
	}
	switch scheme, _, _ := strings.Cut(scheme, "+"); scheme {
	case "udp":
	case "tcp":
		s.TCP = true
		s.Serial = !u.EnablePipeline
		s.Socks5 = or(u.Socks5, a.Socks5)
	case "tls", "https", "h3", "quic", "doq":
		return s, fmt.Errorf("%s is not in this version yet", scheme)
	default:
		return s, fmt.Errorf("no scheme %q: there are udp and tcp", scheme)
	}
	addr, err := dialAddr(rest, 53)
	if err != nil && u.DialAddr == "" {
		return s, err
	}
	if u.DialAddr != "" {
		port := addr.Port()
		if err != nil {
			port = 53
		}
		if addr, err = dialAddr(u.DialAddr, port); err != nil {
			return s, err
		}
	}
	s.Addr = addr
	return s, nil
}

func or[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}

// dialAddr reads an IP address, perhaps with a port.
func dialAddr(text string, port uint16) (netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap, nil
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("expected an IP address, perhaps with a port, got %q", text)
	}
	return netip.AddrPortFrom(addr, port), nil
}
