package sections

import (
	"slices"

	"github.com/waymark-dns/waymark/internal/plan"
)

var zoneStoreRow = row[plan.Plan]{
	key:     "zonestore",
	value:   under(zoneStoreRows, func(p *plan.Plan) *plan.ZoneStore { return &p.ZoneStore }),
	example: "{path: zones.db}",
	doc:     "Zones that are managed through the API, with their history. A zone under `zones` cannot be in it too.",
}

var zoneStoreRows = []row[plan.ZoneStore]{
	{
		key: "path", must: true, example: "zones.db",
		value: value[plan.ZoneStore]{want: "a path", read: func(r *reader, s spot, into *plan.ZoneStore) {
			into.Pos = s.node.Pos
			path(func(z *plan.ZoneStore) *string { return &z.Path }).read(r, s, into)
		}},
		doc: "File of the store. It is made where its folder is there.",
	},
	{
		key: "serial", preset: "increment", example: "date",
		value: one("increment or date", func(s string) (string, bool) { return s, slices.Contains([]string{"increment", "date"}, s) },
			func(z *plan.ZoneStore) *string { return &z.Serial }),
		doc: "How a serial grows that nobody states: by one, or to `YYYYMMDDnn`.",
	},
}

var keysRow = row[plan.Plan]{
	key:     "keys",
	value:   listOf(keyValue, func(p *plan.Plan) *[]plan.TSIGKey { return &p.Keys }),
	example: "{name: transfer.example, algorithm: hmac-sha256, secret: MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=}",
	doc:     "Keys that transfers are signed with (TSIG, RFC 8945).",
}

var keyValue = value[plan.TSIGKey]{
	want: "a key",
	keys: func(path string) []entry { return entries(path, keyRows) },
	read: func(r *reader, s spot, into *plan.TSIGKey) {
		into.Pos, into.Algorithm = s.node.Pos, "hmac-sha256"
		readRows(r, s, keyRows, into)
	},
}

var keyRows = []row[plan.TSIGKey]{
	{
		key: "name", value: text(func(k *plan.TSIGKey) *string { return &k.Name }), must: true, example: "transfer.example",
		doc: "Name of the key, the same on both sides.",
	},
	{
		key: "algorithm", preset: "hmac-sha256", example: "hmac-sha256",
		value: one("an algorithm", func(s string) (string, bool) {
			return s, slices.Contains([]string{"hmac-sha1", "hmac-sha224", "hmac-sha256", "hmac-sha384", "hmac-sha512"}, s)
		}, func(k *plan.TSIGKey) *string { return &k.Algorithm }),
		doc: "`hmac-sha1`, `hmac-sha224`, `hmac-sha256`, `hmac-sha384` or `hmac-sha512`.",
	},
	{
		key: "secret", must: true, example: "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=",
		value: value[plan.TSIGKey]{want: "a secret in base64", read: func(r *reader, s spot, into *plan.TSIGKey) {
			into.Secret = s.node.Text // plan.Check judges it, and no problem shows it
		}},
		doc: "The secret, in base64; not that of the example.",
	},
}
