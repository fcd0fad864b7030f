package plan

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Levels are the levels of the program's own log, the most talkative first.
func Levels() []string { return []string{"debug", "info", "warn", "error"} }

// Limits of identity and paths.
const (
	// maxUnixPath is sun_path of unix(7) less its final zero.
	maxUnixPath = 107
	// maxText keeps NSID and a CHAOS TXT string within one
	// <character-string> (RFC 1035 §3.3).
	maxText = 255
)

// checker collects the problems of one plan.
type checker struct {
	plan     *Plan
	problems []Problem
	views    map[string]Pos // by name
}

func (c *checker) add(pos Pos, mend, format string, args ...any) {
	c.problems = append(c.problems, Problem{Pos: pos, Text: fmt.Sprintf(format, args...), Mend: mend})
}

// file adds a problem of a zone's file.
func (c *checker) file(pos Pos, mend, format string, args ...any) {
	c.add(pos, mend, format, args...)
	c.problems[len(c.problems)-1].ZoneFile = true
}

// Check returns everything that would keep the plan from being served, sorted
// by position. It opens zone files to see that they can be read and looks up
// user and group, but opens no socket and changes nothing. A plan that came
// from no front end may be checked too: problems then have the zero Pos.
func (p *Plan) Check() []Problem {
	c := &checker{plan: p, views: map[string]Pos{}}
	c.listeners()
	c.overlaps()
	c.zones()
	c.allViews()
	c.sets()
	c.forward()
	c.cache()
	c.access()
	c.clientLimits()
	c.ranges()
	c.identity()
	c.log()
	c.queryLog()
	c.metrics()
	c.control()
	c.api()
	c.zoneStore()
	c.history()
	Sort(c.problems)
	return c.problems
}

// Sort puts problems in the order of their positions; those at one position
// keep their order.
func Sort(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			strings.Compare(a.Pos.File, b.Pos.File),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column),
		)
	})
}

func (c *checker) listeners() {
	if len(c.plan.Listen) == 0 {
		mend := "name at least one, such as udp://127.0.0.1:53"
		if c.plan.Level2 {
			mend = "add a plugin of type udp_server"
		}
		c.add(c.plan.At("listen"), mend, "no address to listen on")
	}
	first := map[string]Pos{}
	for _, l := range c.plan.Listen {
		if !l.Addr.IsValid() {
			c.add(l.Pos, "name one, such as udp://127.0.0.1:53", "listener without an address")
			continue
		}
		if l.Scheme != "udp" && l.Scheme != "tcp" {
			c.add(l.Pos, "write udp or tcp", "listener %s: unknown scheme %q", l, l.Scheme)
		}
		if l.Addr.Port() == 0 {
			c.add(l.Pos, "leave the port out for 53", "listener %s: port 0 is no port", l)
			continue
		}
		if pos, ok := first[l.String()]; ok {
			c.add(l.Pos, "remove one", "listener %s is named twice, first at %s", l, pos)
			continue
		}
		first[l.String()] = l.Pos
	}
}

// overlaps: a stream socket on all addresses leaves none for another, while
// datagram sockets may stand beside each other.
func (c *checker) overlaps() {
	for _, l := range c.plan.Listen {
		for _, o := range c.plan.Listen {
			if l.Scheme == "tcp" && o.Scheme == "tcp" && l.Addr.Port() == o.Addr.Port() && l.Addr.Addr() != o.Addr.Addr() &&
				o.Addr.Addr().IsUnspecified() && o.Addr.Addr().Is4() && l.Addr.Addr().Is4() {
				c.add(l.Pos, "remove one", "listener %s: %s has this address already", l, o)
			}
		}
	}
}

func (c *checker) zones() {
	first := map[zoneIn]Pos{}
	for i, z := range c.plan.Zones {
		if len(z.Name) == 0 {
			c.add(z.Pos, "give the zone a name", "zone without a name")
			continue
		}
		c.zoneTwice(z, first)
		c.zoneFile(c.plan.At(fmt.Sprintf("zones[%d].file", i)), z)
	}
}

// zoneIn is a zone as one view sees it; without a view, as all do.
type zoneIn struct{ name, view string }

// zoneTwice: one view has one zone of a name. A zone of its own may stand in
// place of one that all views see. first has the zones so far.
func (c *checker) zoneTwice(z Zone, first map[zoneIn]Pos) {
	views := z.Views
	if len(views) == 0 {
		views = []string{""}
	}
	told := false
	for i, view := range views {
		key := zoneIn{string(z.Name.Fold()), view}
		pos, twice := first[key]
		switch {
		case !twice:
			first[key] = z.Pos
		case told || slices.Contains(views[:i], view):
		case view == "":
			c.add(z.Pos, "remove one", "zone %s is named twice, first at %s", z.Name, pos)
		default:
			c.add(z.Pos, "remove one, or give them different views", "zone %s is named twice for view %s, first at %s", z.Name, view, pos)
		}
		told = told || twice
	}
}

func (c *checker) zoneFile(pos Pos, z Zone) {
	if z.File == "" {
		c.add(pos, "name its master file", "zone %s has no file", z.Name)
		return
	}
	if trouble, mend := Unreadable(z.File); trouble != "" {
		c.file(pos, mend, "zone %s: %s", z.Name, trouble)
	}
}

// Unreadable tells why a file cannot be read, and the mend; trouble is empty where
// it can.
func Unreadable(file string) (trouble, mend string) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return fmt.Sprintf("cannot read %s: %v", file, reason(err)), "create it, or correct the path"
	case info.IsDir():
		return file + " is a folder", "name the file in it"
	case !info.Mode().IsRegular():
		// Opening a pipe would wait for its writer.
		return file + " is not a regular file", "name a regular file"
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Sprintf("cannot read %s: %v", file, reason(err)), "let the server's user read it"
	}
	_ = f.Close() // nothing was written
	return "", ""
}

// reason is what the system said, without the path that is named already.
func reason(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

func (c *checker) identity() {
	s := c.plan.Server
	if s.User != "" && !isID(s.User) {
		_, err := user.Lookup(s.User)
		if _, no := errors.AsType[user.UnknownUserError](err); no {
			c.add(c.plan.At("server.user"), "create it, or name one of this machine", "server.user: no user %q", s.User)
		}
	}
	if s.Group != "" && s.User == "" {
		c.add(c.plan.At("server.group"), "name server.user too, or leave the group out", "server.group: without a user it changes nothing")
	}
	if s.Group != "" && !isID(s.Group) {
		_, err := user.LookupGroup(s.Group)
		if _, no := errors.AsType[user.UnknownGroupError](err); no {
			c.add(c.plan.At("server.group"), "create it, or name one of this machine", "server.group: no group %q", s.Group)
		}
	}
	if len(s.ID) > maxText {
		c.add(c.plan.At("server.id"), "shorten it", "server.id: longer than %d octets", maxText)
	}
	if len(s.Version) > maxText {
		c.add(c.plan.At("server.version"), "shorten it", "server.version: longer than %d octets", maxText)
	}
}

// isID reports whether a user or group is given by number; it needs no name.
func isID(name string) bool {
	_, err := strconv.ParseUint(name, 10, 32)
	return err == nil
}

func (c *checker) log() {
	if levels := Levels(); !slices.Contains(levels, c.plan.Log.Level) {
		c.add(c.plan.At("log.level"), "write "+strings.Join(levels, ", "), "log.level: unknown level %q", c.plan.Log.Level)
	}
}

func (c *checker) metrics() {
	m := c.plan.Metrics
	if !m.Listen.IsValid() {
		return
	}
	if !m.Listen.Addr().IsLoopback() {
		c.add(m.Pos, "listen on 127.0.0.1 or [::1] and put a proxy that checks who asks in front of it",
			"metrics.listen: %s can be reached from other machines, and metrics ask for no password", m.Listen)
	}
	if m.Listen.Port() == 0 {
		c.add(m.Pos, "write a port, such as 9153", "metrics.listen: port 0 is no port")
		return
	}
	for _, l := range c.plan.Listen {
		if l.Scheme == "tcp" && sameSocket(l.Addr, m.Listen) {
			c.add(m.Pos, "choose another port", "metrics.listen: %s is taken by the listener at %s", m.Listen, l.Pos)
		}
	}
}

// sameSocket reports whether two TCP listeners would get in each other's way.
func sameSocket(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && (a.Addr() == b.Addr() || a.Addr().IsUnspecified() || b.Addr().IsUnspecified())
}

func (c *checker) control() {
	if n := len(c.plan.Control.Path); n > maxUnixPath {
		c.add(c.plan.Control.Pos, "choose a shorter path", "control.path: %d octets, and a socket's path holds %d", n, maxUnixPath)
	}
	if c.plan.Control.Path == "" {
		return
	}
	folder := filepath.Dir(c.plan.Control.Path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		c.add(c.plan.Control.Pos, "create it, owned by the user that the server runs as", "control.path: there is no folder %s", folder)
	}
}
