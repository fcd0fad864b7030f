package sections

import (
	"net/netip"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

var limitsRow = row[plan.Plan]{
	key: "limits",
	value: value[plan.Plan]{want: "keys and values", keys: func(path string) []entry { return entries(path, limitsRows) },
		read: func(r *reader, s spot, into *plan.Plan) {
			into.Limits.Pos = r.where[s.path]
			readRows(r, s, limitsRows, &into.Limits)
		}},
	example: "{exempt: [private]}",
	doc:     "What one client may ask for, and what the server may be used for against others.",
}

var limitsRows = []row[plan.Limits]{
	{
		key: "rate", example: "{queries-per-second: 1000}",
		value: switched(rateRows, func(l *plan.Limits) *plan.Rate { return &l.Rate }, func(r *plan.Rate, pos plan.Pos, on bool) {
			r.Pos, r.Set = pos, true
			if !on {
				r.PerSecond = 0
			}
		}),
		doc: "Queries that are answered per client; `rate: off` is no limit. Unless the key is written the defaults hold for listeners on public addresses only.",
	},
	{
		key: "rrl", example: "{responses-per-second: 20}",
		value: switched(rrlRows, func(l *plan.Limits) *plan.RRL { return &l.RRL }, func(r *plan.RRL, pos plan.Pos, on bool) {
			r.Pos = pos
			if !on {
				r.PerSecond = 0
			}
		}),
		doc: "Response rate limiting over UDP, against queries with a forged source. Off unless written.",
	},
	{
		key: "cookies", example: "{enabled: true}",
		value: switched(cookieRows, func(l *plan.Limits) *plan.Cookies { return &l.Cookies }, func(c *plan.Cookies, _ plan.Pos, on bool) { c.On = on }),
		doc:   "DNS cookies (RFC 7873); `cookies: off` has none. A client with a good one is known not to be forged, and passes both limits above.",
	},
	{
		key: "exempt", value: prefixes(func(l *plan.Limits) *[]netip.Prefix { return &l.Exempt }), none: "nobody", example: "private\n192.0.2.7",
		doc: "Clients without limits: addresses, prefixes, `private` or `any`.",
	},
}

var rateRows = []row[plan.Rate]{
	{
		key: "queries-per-second", value: number(func(r *plan.Rate) *int { return &r.PerSecond }), preset: "1000", example: "1000",
		doc: "Queries per second of one client; 0 is no limit.",
	},
	{
		key: "burst", value: number(func(r *plan.Rate) *int { return &r.Burst }), preset: "5000", example: "5000",
		doc: "Queries that a client that was quiet may send at once.",
	},
	{
		key: "ipv4-prefix", value: number(func(r *plan.Rate) *int { return &r.IPv4 }), preset: "24", example: "24",
		doc: "Length of the IPv4 prefix that counts as one client.",
	},
	{
		key: "ipv6-prefix", value: number(func(r *plan.Rate) *int { return &r.IPv6 }), preset: "56", example: "56",
		doc: "Length of the IPv6 prefix that counts as one client.",
	},
	{
		key: "action", value: one("truncate or drop", parseAction, func(r *plan.Rate) *bool { return &r.Truncate }), preset: "truncate", example: "truncate",
		doc: "What becomes of a query over the limit: `truncate` tells the client to come over TCP, which forged ones cannot; `drop` tells nothing.",
	},
}

var rrlRows = []row[plan.RRL]{
	{
		key: "responses-per-second", value: number(func(r *plan.RRL) *int { return &r.PerSecond }), must: true, example: "20",
		doc: "Responses of one kind per second to one client; 0 is no limit.",
	},
	{
		key: "slip", value: number(func(r *plan.RRL) *int { return &r.Slip }), preset: "2", example: "2",
		doc: "Every so manieth response over the limit goes out truncated, so that a client whose address is forged gets through over TCP. 0 is none, 1 all of them.",
	},
	{
		key: "ipv4-prefix", value: number(func(r *plan.RRL) *int { return &r.IPv4 }), preset: "24", example: "24",
		doc: "Length of the IPv4 prefix that counts as one client.",
	},
	{
		key: "ipv6-prefix", value: number(func(r *plan.RRL) *int { return &r.IPv6 }), preset: "56", example: "56",
		doc: "Length of the IPv6 prefix that counts as one client.",
	},
}

var cookieRows = []row[plan.Cookies]{
	{
		key: "enabled", value: boolean(func(c *plan.Cookies) *bool { return &c.On }), preset: "true", example: "true",
		doc: "Whether clients get cookies.",
	},
	{
		key: "secret", value: value[plan.Cookies]{want: "a secret", read: readSecret}, none: "made at the start",
		example: "00112233445566778899aabbccddeeff",
		doc: "32 hexadecimal digits that the servers behind one address share (RFC 9018 §5); not those of the example, " +
			"make your own with `openssl rand -hex 16`.",
	},
}

func parseAction(s string) (truncate, ok bool) {
	return s == "truncate", s == "truncate" || s == "drop"
}

const mendSecret = "remove the key, or make one with: openssl rand -hex 16"

// readSecret takes any text: plan.Check judges it, and no problem shows it.
func readSecret(r *reader, s spot, into *plan.Cookies) {
	if s.node.Kind == tree.Scalar {
		into.Secret = s.node.Text
		if s.node.Text == "" {
			r.Problem(s.node.Pos, mendSecret, "%s is empty", s.name())
		}
		return
	}
	if s.node.Kind != tree.Broken {
		r.Problem(s.node.Pos, mendSecret, "%s: expected a secret", s.name())
	}
}
