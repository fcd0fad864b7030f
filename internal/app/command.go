package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/control"
	"github.com/waymark-dns/waymark/internal/wire"
)

// command does what the control socket asks for.
func (s *Server) command(ctx context.Context, r control.Request) control.Response {
	var text string
	var err error
	switch r.Command {
	case "reload":
		text, err = s.reload(ctx)
	case "status":
		text = s.world.Load().summary()
	case "cache":
		text, err = s.cacheCommand(r.Args)
	case "sets":
		text, err = s.setsCommand(ctx, r.Args)
	case "config":
		text, err = s.configCommand(r.Args)
	case "explain":
		text, err = s.explainCommand(ctx, r.Args)
	default:
		err = fmt.Errorf("no command %q: there are reload, status, cache, sets, config and explain", r.Command)
	}
	resp := control.Response{Text: text}
	if err != nil {
		resp.Error = err.Error()
	}
	return resp
}

// errNoCache is told where there is no cache.
var errNoCache = errors.New("there is no cache: add cache: to the configuration")

// cacheCommand looks into the cache or takes something out of it. The first of
// args says what.
func (s *Server) cacheCommand(args []string) (string, error) {
	c := s.world.Load().engines.cache
	if c == nil {
		return "", errNoCache
	}
	if len(args) == 0 {
		return "", errors.New("cache needs to know what to do")
	}
	what, args := args[0], args[1:]
	switch {
	case what == "stats" && len(args) == 0:
		return s.cacheStats(c), nil
	case what == "flush-all" && len(args) == 0:
		c.FlushAll()
		return "the cache is empty", nil
	case what == "list" && len(args) <= 2:
		return s.cacheList(c, args)
	case len(args) != 1:
		return "", fmt.Errorf("cache %s: wrong number of arguments", what)
	}
	name, err := wire.ParseName(args[0])
	if err != nil {
		return "", fmt.Errorf("reading name: %w", err)
	}
	switch what {
	case "get":
		return s.cacheTable(c, 0, func(e *cache.Entry) bool { return wire.EqualFold(e.Name, name) })
	case "flush":
		return fmt.Sprintf("%d entries flushed", c.Flush(name)), nil
	case "flush-tree":
		return fmt.Sprintf("%d entries flushed", c.FlushTree(name)), nil
	}
	return "", fmt.Errorf("no command cache %q: there are list, get, flush, flush-tree, flush-all and stats", what)
}

// cacheList lists entries: so many, below a name where one is given.
func (s *Server) cacheList(c *cache.Cache, args []string) (string, error) {
	most := 100
	var below wire.Name
	for _, a := range args {
		if n, err := strconv.Atoi(a); err == nil && n > 0 {
			most = n
			continue
		}
		name, err := wire.ParseName(a)
		if err != nil {
			return "", fmt.Errorf("reading name: %w", err)
		}
		below = name
	}
	return s.cacheTable(c, most, func(e *cache.Entry) bool { return below == nil || e.Name.Under(below) })
}

// maxListed bounds what is listed, so that an answer fits the control socket.
const maxListed = 2000

// cacheTable is the entries that want asks for, one a line.
func (s *Server) cacheTable(c *cache.Cache, most int, want func(*cache.Entry) bool) (string, error) {
	if most == 0 || most > maxListed {
		most = maxListed
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NAME\tTYPE\tRCODE\tTTL\tOCTETS\tNOTES")
	n, more := 0, false
	c.Each(s.now(), func(e cache.Entry) bool {
		if !want(&e) {
			return true
		}
		if more = n == most; more {
			return false
		}
		n++
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\n", e.Name, wire.TypeString(e.Type), e.Rcode, int(e.Left.Seconds()), e.Size, s.notes(&e))
		return true
	})
	_ = t.Flush()
	switch {
	case n == 0:
		return "nothing", nil
	case more:
		fmt.Fprintf(&b, "and more: the first %d are listed", most)
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

// notes is what is special about an entry.
func (s *Server) notes(e *cache.Entry) string {
	var words []string
	if e.Left <= 0 {
		words = append(words, "stale")
	}
	if e.CD {
		words = append(words, "CD")
	}
	if e.View != 0 {
		words = append(words, s.owner(e.View))
	}
	if e.Scope.IsValid() {
		words = append(words, e.Scope.String())
	}
	return strings.Join(words, ", ")
}

// owner names the view, and the group for certain clients, that an entry belongs
// to.
func (s *Server) owner(key uint32) string {
	p := s.world.Load().plan
	views, groups := map[uint32]string{0: ""}, map[uint32]string{0: ""}
	for _, v := range p.Views {
		views[keyOf("view", v.Name)] = "view " + v.Name
	}
	for i, f := range p.Forward {
		if len(f.Clients) > 0 {
			groups[keyOf("group", forwardText(f), f.Clients)] = "group " + groupName(i, p)
		}
	}
	key &= 1<<31 - 1 // the rest is of client subnets
	for v, view := range views {
		if group, ok := groups[key^v]; ok {
			return strings.TrimSpace(view + " " + group)
		}
	}
	return "of an earlier configuration"
}
