package sections

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/wire"
)

const upstreamExample = "udp://9.9.9.9"

var forwardRow = row[plan.Plan]{
	key:     "forward",
	value:   value[plan.Plan]{want: "a group of upstreams", list: true, keys: groups.keys, read: readForward},
	example: upstreamExample,
	doc: "Servers to send queries to that the server's own data cannot answer, in groups. Of the groups that fit a query the one with the " +
		"longest name in `for` has it; then one with `clients`, then one with `views`, then the first. " +
		"`forward: [9.9.9.9, 1.1.1.1]`, addresses alone, is short for one group that has every query.",
}

var groups = listOf(
	value[plan.Forward]{
		want: "a group of upstreams",
		keys: func(path string) []entry { return entries(path, groupRows) },
		read: func(r *reader, s spot, into *plan.Forward) {
			*into = plan.DefaultForward()
			into.Pos = s.node.Pos
			readRows(r, s, groupRows, into)
		},
	},
	func(p *plan.Plan) *[]plan.Forward { return &p.Forward },
)

var groupRows = []row[plan.Forward]{
	{
		key: "to", value: upstreams, must: true, example: upstreamExample + "\ntcp://10.0.0.2:53",
		doc: "The servers of the group, IP addresses or URLs. The schemes are `udp`, which goes on to TCP for a truncated response, and `tcp`; " +
			"without one it is `udp`. The port is 53 unless written.",
	},
	{
		key: "for", example: "corp.example\n10.in-addr.arpa", none: "every name",
		value: filled(listOf(nameValue, func(f *plan.Forward) *[]wire.Name { return &f.For })),
		doc:   "Names that the group is for, each with all names below it.",
	},
	{
		key: "views", example: "office", none: "every view",
		value: filled(listOf(viewName, func(f *plan.Forward) *[]string { return &f.Views })),
		doc:   "Views that the group is for, by their names under `views`.",
	},
	{
		key: "clients", example: "10.1.0.0/16", none: "every client",
		value: filled(prefixes(func(f *plan.Forward) *[]netip.Prefix { return &f.Clients })),
		doc:   "Clients that the group is for: addresses, prefixes, `private` or `any`.",
	},
	{
		key: "select", value: value[plan.Forward]{want: "a way to choose", read: readSelect}, preset: "fastest", example: "fastest",
		doc: "Which server is asked first: the `fastest`, one at `random`, in `order` of writing; or `race`, which asks two at once, and `race:3` three.",
	},
	{
		key: "hedge", value: boolean(func(f *plan.Forward) *bool { return &f.Hedge }), preset: "true", example: "true",
		doc: "Ask a second server when the first is late, as long as few queries need it.",
	},
	{
		key: "timeout", value: duration(func(f *plan.Forward) *time.Duration { return &f.Timeout }), preset: "4s", example: "4s",
		doc: "How long a query may take, all tries together. Stub resolvers ask again after 5 seconds.",
	},
	{
		key: "mix-case", value: boolean(func(f *plan.Forward) *bool { return &f.MixCase }), preset: "false", example: "true",
		doc: "Send names with letters in random case and take responses that have the same: one more thing for a forger to guess.",
	},
	{
		key: "ecs", value: one("off or pass", parseECS, func(f *plan.Forward) *string { return &f.ECS }), preset: "off", example: "off",
		doc: "What becomes of the client's subnet (RFC 7871) in a query: `off` removes it, `pass` sends it on.",
	},
}

var upstreams = listOf(
	value[plan.Upstream]{want: "an upstream", read: readUpstream},
	func(f *plan.Forward) *[]plan.Upstream { return &f.To },
)

// readForward reads groups, or the short form: addresses alone.
func readForward(r *reader, s spot, into *plan.Plan) {
	lone := func(n *tree.Node) bool { return n.Kind == tree.Scalar }
	short := lone(s.node) || s.node.Kind == tree.List && len(s.node.Items) > 0 && !slices.ContainsFunc(s.node.Items, func(n *tree.Node) bool { return !lone(n) })
	if !short {
		groups.read(r, s, into)
		return
	}
	f := plan.DefaultForward()
	f.Pos = s.node.Pos
	upstreams.read(r, s, &f)
	into.Forward = append(into.Forward, f)
}

func readUpstream(r *reader, s spot, into *plan.Upstream) {
	into.Pos = s.node.Pos
	text, ok := r.text(s)
	if !ok {
		return
	}
	u, problem := ParseUpstream(s.node.Pos, text)
	if problem != nil {
		r.Problem(problem.Pos, problem.Mend, "%s: %s", s.name(), problem.Text)
	}
	*into = u
}

// ParseUpstream reads one upstream: an IP address, with or without a port, or a
// URL such as tcp://[2001:db8::1]:5300. With a problem the upstream has its
// position and nothing else.
func ParseUpstream(pos plan.Pos, text string) (plan.Upstream, *plan.Problem) {
	wrong := func(mend, what string) (plan.Upstream, *plan.Problem) {
		return plan.Upstream{Pos: pos}, &plan.Problem{Pos: pos, Text: tree.Quote(text) + ": " + what, Mend: mend}
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		return plan.Upstream{Pos: pos, Scheme: "udp", Addr: netip.AddrPortFrom(addr.Unmap(), port)}, nil
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "udp", text
	}
	switch {
	case slices.Contains(laterSchemes, scheme):
		return wrong("write udp:// or tcp://", scheme+" is not in this version yet")
	case scheme != "udp" && scheme != "tcp":
		return wrong("write udp:// or tcp://", "unknown scheme "+tree.Quote(scheme))
	case strings.ContainsAny(rest, "/?#"):
		return wrong("remove what stands behind the port", "an upstream has no path")
	}
	addr, mend := netip.AddrPort{}, "write the address of a server, such as 9.9.9.9"
	if rest != "" && !strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, "*") {
		addr, mend = hostPort(rest)
	}
	if mend != "" {
		return wrong(mend, "expected an IP address")
	}
	return plan.Upstream{Pos: pos, Scheme: scheme, Addr: addr}, nil
}

// readSelect takes a word, or race:N; which words there are, plan.Check knows.
func readSelect(r *reader, s spot, into *plan.Forward) {
	text, ok := r.text(s)
	if !ok {
		return
	}
	word, n, numbered := strings.Cut(text, ":")
	if numbered {
		race, err := strconv.Atoi(n)
		if err != nil || word != "race" {
			r.wrong(s)
			return
		}
		into.Race = race
	}
	into.Select = word
}

func parseECS(s string) (string, bool) {
	if on, ok := parseBool(s); ok && !on {
		return "off", true
	}
	return s, slices.Contains(plan.ECSModes(), s)
}
