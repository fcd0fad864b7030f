package sections

import (
	"net/netip"

	"github.com/waymark-dns/waymark/internal/plan"
)

const allowDoc = "addresses, prefixes, `any` or `private` (loopback, link-local and private networks)."

var accessRow = row[plan.Plan]{
	key:     "access",
	value:   under(accessRows, func(p *plan.Plan) *plan.Access { return &p.Access }),
	example: "{allow: [private, 192.0.2.0/24]}",
	doc: "Who may ask. The zones of the server are for everyone who is not denied; forwarding and cache are for those who are allowed. " +
		"Where a client is in both lists the longer prefix decides, and `deny` between equal ones.",
}

var accessRows = []row[plan.Access]{
	{
		key: "allow", value: prefixes(func(a *plan.Access) *[]netip.Prefix { return &a.Allow }), none: "`private`",
		example: "private\n192.0.2.0/24",
		doc:     "Who may use forwarding and cache: " + allowDoc,
	},
	{
		key: "deny", value: prefixes(func(a *plan.Access) *[]netip.Prefix { return &a.Deny }), none: "nobody", example: "192.0.2.66",
		doc: "Who gets no answer but REFUSED, not even from the zones.",
	},
	{
		key:     "listeners",
		value:   listOf(listenerAccess, func(a *plan.Access) *[]plan.ListenerAccess { return &a.Listeners }),
		example: "{listen: udp://127.0.0.1:53, allow: any}",
		doc:     "Listeners that have lists of their own in place of the two above.",
	},
}

var listenerAccess = value[plan.ListenerAccess]{
	want: "a listener with its lists",
	keys: func(path string) []entry { return entries(path, listenerRows) },
	read: func(r *reader, s spot, into *plan.ListenerAccess) {
		into.Pos = s.node.Pos
		readRows(r, s, listenerRows, into)
	},
}

var listenerRows = []row[plan.ListenerAccess]{
	{
		key: "listen", must: true, example: "udp://127.0.0.1:53",
		value: value[plan.ListenerAccess]{want: "a listener", read: func(r *reader, s spot, into *plan.ListenerAccess) {
			// From here on a problem of the entry is one of its listener.
			into.Pos = s.node.Pos
			readListen(r, s, &into.Listen)
		}},
		doc: "One of the addresses under `listen`.",
	},
	{
		key: "allow", value: prefixes(func(l *plan.ListenerAccess) *[]netip.Prefix { return &l.Allow }), none: "`private`", example: "any",
		doc: "Who may use forwarding and cache here: " + allowDoc,
	},
	{
		key: "deny", value: prefixes(func(l *plan.ListenerAccess) *[]netip.Prefix { return &l.Deny }), none: "nobody", example: "192.0.2.66",
		doc: "Who gets no answer but REFUSED here.",
	},
}
