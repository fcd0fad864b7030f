package sections

import (
	"slices"

	"github.com/waymark-dns/waymark/internal/plan"
)

var apiRow = row[plan.Plan]{
	key:     "api",
	value:   under(apiRows, func(p *plan.Plan) *plan.API { return &p.API }),
	example: "{listen: 127.0.0.1:8053, open: true}",
	doc:     "The HTTP API at `/api/v1`; docs/openapi.yaml describes it. Off unless written.",
}

var apiRows = []row[plan.API]{
	{
		key: "listen", must: true, example: "127.0.0.1:8053",
		value: value[plan.API]{want: "an address with a port", read: func(r *reader, s spot, into *plan.API) {
			into.Pos = s.node.Pos
			text(func(a *plan.API) *string { return &a.HTTP }).read(r, s, into)
		}},
		doc: "IP address and port.",
	},
	{
		key: "open", value: boolean(func(a *plan.API) *bool { return &a.Open }), preset: "false", example: "true",
		doc: "Clients on this machine need no token and may do everything.",
	},
	{
		key: "tokens", value: listOf(tokenValue, func(a *plan.API) *[]plan.APIToken { return &a.Tokens }), none: "none",
		example: "{name: grafana, scope: read, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}",
		doc:     "Tokens that clients may show as `Authorization: Bearer …`; `waymark token` makes one and prints what to write here.",
	},
	{
		key: "password", value: text(func(a *plan.API) *string { return &a.Password }), none: "none",
		example: "$2a$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW",
		doc:     "Hash of the password that people log in with, by bcrypt; `waymark password` makes it. Not that of the example.",
	},
	{
		key: "tls", value: under(apiTLSRows, func(a *plan.API) *plan.API { return a }), none: "plain HTTP",
		example: "",
		doc:     "A certificate: the API is then served over TLS.",
	},
	{
		key: "audit", value: path(func(a *plan.API) *string { return &a.Audit }), none: "in memory only", example: "audit.jsonl",
		doc: "File of the audit trail: a line of JSON for each change and each attempt at one. Its folder must exist.",
	},
}

var apiTLSRows = []row[plan.API]{
	{
		key: "cert", value: path(func(a *plan.API) *string { return &a.Cert }), must: true, example: "api.crt",
		doc: "Certificate and those between it and the root, in PEM. A file that changes is read anew.",
	},
	{
		key: "key", value: path(func(a *plan.API) *string { return &a.Key }), must: true, example: "api.key",
		doc: "Its private key, in PEM.",
	},
}

var tokenValue = value[plan.APIToken]{
	want: "a token",
	keys: func(path string) []entry { return entries(path, tokenRows) },
	read: func(r *reader, s spot, into *plan.APIToken) {
		into.Pos = s.node.Pos
		readRows(r, s, tokenRows, into)
	},
}

var tokenRows = []row[plan.APIToken]{
	{
		key: "name", value: text(func(t *plan.APIToken) *string { return &t.Name }), must: true, example: "grafana",
		doc: "What the audit trail calls who shows it.",
	},
	{
		key: "scope", value: one("read, operate or admin", func(s string) (string, bool) {
			return s, slices.Contains([]string{"read", "operate", "admin"}, s)
		}, func(t *plan.APIToken) *string { return &t.Scope }), must: true, example: "read",
		doc: "`read` looks, `operate` changes zones, caches, sets and upstreams too, `admin` may do everything.",
	},
	{
		key: "sha256", value: text(func(t *plan.APIToken) *string { return &t.SHA256 }), must: true,
		example: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		doc:     "SHA-256 of the token.",
	},
}
