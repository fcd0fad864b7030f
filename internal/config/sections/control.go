package sections

import "github.com/waymark-dns/waymark/internal/plan"

var controlRow = row[plan.Plan]{
	key:     "control",
	value:   under(controlRows, func(p *plan.Plan) *plan.Control { return &p.Control }),
	example: "{path: /run/waymark.sock}",
	doc:     "The socket through which the command line speaks to a running server.",
}

var controlRows = []row[plan.Control]{
	{
		key: "path", example: "/run/waymark.sock",
		value: value[plan.Control]{want: "a path", read: func(r *reader, s spot, into *plan.Control) {
			into.Pos = s.node.Pos
			path(func(c *plan.Control) *string { return &c.Path }).read(r, s, into)
		}},
		doc: "Path of the socket.",
	},
}
