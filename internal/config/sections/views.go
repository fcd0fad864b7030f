package sections

import (
	"net/netip"

	"github.com/waymark-dns/waymark/internal/plan"
)

var viewsRow = row[plan.Plan]{
	key:     "views",
	value:   listOf(viewValue, func(p *plan.Plan) *[]plan.View { return &p.Views }),
	example: "{name: office, clients: 10.0.0.0/8}",
	doc: "Ways to see the server, by who asks and where. The first view that fits has a query; it sees the zones and groups of upstreams that name it " +
		"and those that name none, and has a cache of its own. A query that fits none sees those that name none.",
}

var viewRows = []row[plan.View]{
	{
		key: "name", must: true, example: "office",
		value: value[plan.View]{want: viewName.want, read: func(r *reader, s spot, into *plan.View) {
			// From here on a problem of the view is one of its name.
			into.Pos = s.node.Pos
			viewName.read(r, s, &into.Name)
		}},
		doc: "What zones and groups of upstreams call it: at most 64 letters, digits, `-` and `_`.",
	},
	{
		key: "clients", example: "10.0.0.0/8", none: "every client",
		value: filled(prefixes(func(v *plan.View) *[]netip.Prefix { return &v.Clients })),
		doc:   "Clients that it is for: addresses, prefixes, `private` or `any`.",
	},
	{
		key: "listen", example: "udp://127.0.0.1:53", none: "every listener",
		value: filled(listOf(listenValue, func(v *plan.View) *[]plan.Listen { return &v.Listen })),
		doc:   "Listeners that it is for, each one of the addresses under `listen`.",
	},
}

var viewValue = value[plan.View]{
	want: "a view",
	keys: func(path string) []entry { return entries(path, viewRows) },
	read: func(r *reader, s spot, into *plan.View) {
		into.Pos = s.node.Pos
		readRows(r, s, viewRows, into)
	},
}

// viewName is any text: which names there may be and are, plan.Check knows.
var viewName = one("a view's name", func(s string) (string, bool) { return s, true }, func(name *string) *string { return name })
