package plan

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Selects are the ways to choose among the upstreams of a group.
func Selects() []string { return []string{"fastest", "random", "order", "race"} }

// ECSModes are what may be done with a client's subnet (RFC 7871).
func ECSModes() []string { return []string{"off", "pass"} }

// maxRace bounds how many upstreams one query is sent to at once.
const maxRace = 16

// route is what a group of upstreams is for: one name, and whoever asks.
type route struct{ name, asks string }

func (c *checker) forward() {
	own := c.own()
	first := map[route]Pos{}
	for i, f := range c.plan.Forward {
		path := fmt.Sprintf("forward[%d]", i)
		if len(f.To) == 0 {
			c.add(c.plan.At(path+".to"), "name one, such as udp://9.9.9.9", "forward: no upstream")
		} else {
			c.routes(path, f, first)
		}
		seen := map[string]Pos{}
		for _, u := range f.To {
			c.upstream(u, own, seen)
		}
		c.prefixes(path+".clients", "forward.clients", f.Clients)
		if selects := Selects(); !slices.Contains(selects, f.Select) {
			c.add(c.plan.At(path+".select"), c.meant(f.Select, selects, ""), "forward.select: %q is unknown", f.Select)
		}
		if f.Select == "race" && (f.Race < 2 || f.Race > maxRace) {
			c.add(c.plan.At(path+".select"), fmt.Sprintf("write race:2 to race:%d", maxRace), "forward.select: race:%d is out of range", f.Race)
		}
		if modes := ECSModes(); !slices.Contains(modes, f.ECS) {
			c.add(c.plan.At(path+".ecs"), "write "+strings.Join(modes, " or "), "forward.ecs: %q is unknown", f.ECS)
		}
	}
}

// own has the addresses that the server itself answers on.
func (c *checker) own() map[netip.AddrPort]Pos {
	own := map[netip.AddrPort]Pos{}
	for _, l := range c.plan.Listen {
		if l.Addr.IsValid() {
			own[l.Addr] = l.Pos
		}
	}
	return own
}

// upstream checks one server of a group. seen has those before it.
func (c *checker) upstream(u Upstream, own map[netip.AddrPort]Pos, seen map[string]Pos) {
	addr := u.Addr.Addr()
	switch pos, loop := itself(u.Addr, own); {
	case !u.Addr.IsValid():
		c.add(u.Pos, "name one, such as udp://9.9.9.9", "forward.to: no upstream")
		return
	case u.Scheme != "udp" && u.Scheme != "tcp":
		c.add(u.Pos, "write udp or tcp", "forward.to: %s: unknown scheme %q", u, u.Scheme)
	case u.Addr.Port() == 0:
		c.add(u.Pos, "leave the port out for 53", "forward.to: %s: port 0 is no port", u)
	case loop:
		c.add(u.Pos, "name another server", "forward.to: %s: the server would ask itself, it listens there at %s", u, pos)
	case addr.IsUnspecified(), addr.IsMulticast(), addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		c.add(u.Pos, "write the address of one server", "forward.to: %s: %s is not the address of a server", u, addr)
	case addr.Is6() && addr.IsLinkLocalUnicast() && addr.Zone() == "":
		c.add(u.Pos, "write "+addr.String()+"%eth0, with the name of yours", "forward.to: %s: a link-local address needs its interface", u)
	}
	if pos, ok := seen[u.String()]; ok {
		c.add(u.Pos, "remove one", "forward.to: %s is in this group twice, first at %s", u, pos)
		return
	}
	seen[u.String()] = u.Pos
}

// itself tells whether a query to a would come back, and where the listener
// stands. A listener on every address has those of loopback for certain; which
// others the machine has is not known here. The transport does not matter: a
// truncated response over UDP leads to TCP.
func itself(a netip.AddrPort, own map[netip.AddrPort]Pos) (pos Pos, loop bool) {
	if pos, loop = own[a]; loop || !a.Addr().IsLoopback() {
		return pos, loop
	}
	if a.Addr().Is4() {
		if pos, loop = own[netip.AddrPortFrom(netip.IPv4Unspecified(), a.Port())]; loop {
			return pos, true
		}
	}
	// A socket on [::] has IPv4 too.
	pos, loop = own[netip.AddrPortFrom(netip.IPv6Unspecified(), a.Port())]
	return pos, loop
}

// routes: of two groups for the same name, clients and views the second would
// never be asked. first has the routes so far.
func (c *checker) routes(path string, f Forward, first map[route]Pos) {
	asks, sound := asks(f)
	once := func(name wire.Name, pos Pos) {
		key, called := route{string(name), asks}, name.String()
		if len(name) == 1 {
			called = "every name"
		}
		if before, ok := first[key]; ok {
			c.add(pos, "put the upstreams into one group", "forward: %s goes to two groups for the same clients and views, first at %s", called, before)
			return
		}
		first[key] = pos
	}
	if len(f.For) == 0 && sound {
		once(wire.Root, f.Pos)
	}
	for i, name := range f.For {
		pos := c.plan.At(fmt.Sprintf("%s.for[%d]", path, i))
		switch {
		case len(name) == 0:
			c.add(pos, "write . for every name", "forward.for: no name")
		case sound:
			once(name.Fold(), pos)
		}
	}
}

// asks is who a group is for, the same text for the same clients and views;
// sound is false where a part of it could not be read.
func asks(f Forward) (text string, sound bool) {
	parts := []string{}
	for _, p := range f.Clients {
		if !p.IsValid() {
			return "", false
		}
		parts = append(parts, p.String())
	}
	for _, v := range f.Views {
		parts = append(parts, "view "+v)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ","), true
}

func (c *checker) cache() {
	k := c.plan.Cache
	if !k.On {
		return
	}
	if k.MinTTL > k.MaxTTL {
		c.add(c.plan.At("cache.min-ttl"), "shorten it, or raise cache.max-ttl", "cache.min-ttl: %s is longer than cache.max-ttl, %s",
			duration(int64(k.MinTTL)), duration(int64(k.MaxTTL)))
	}
	if k.File == "" {
		return
	}
	pos := c.plan.At("cache.file")
	folder := filepath.Dir(k.File)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		c.add(pos, "create it, owned by the user that the server runs as", "cache.file: there is no folder %s", folder)
		return
	}
	if info, err := os.Stat(k.File); err == nil && !info.Mode().IsRegular() {
		c.add(pos, "name a file that can be written anew", "cache.file: %s is not a regular file", k.File)
	}
}
