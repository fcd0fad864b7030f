package sections

import (
	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
)

var setsRow = row[plan.Plan]{
	key:     "sets",
	value:   listOf(setValue, func(p *plan.Plan) *[]plan.Object { return &p.Objects }),
	example: "{name: ads, domains: [domain:ads.example, keyword:track], files: ads.txt}\n{name: lan, addresses: 10.0.0.0/8}",
	doc: "Sets of names and sets of addresses, which rules refer to as `$` and the name. A file has one entry a line; what stands behind `#` is not looked at. " +
		"An expression is a kind, a colon and a pattern: `full:` is that name alone, `domain:` the name and all below it, `keyword:` names that have the text in them, " +
		"and `regexp:` those that match it. Without a kind it is `domain:`.",
}

// The types of sets, as they are written.
const ofDomains, ofAddresses = "domains", "addresses"

// The types of the objects that they become.
const domainSet, ipSet = "domain_set", "ip_set"

// set is an entry of sets, before it is an object.
type set struct {
	pos                       plan.Pos
	name, of                  string
	domains, addresses, files []string
}

var setRows = []row[set]{
	{
		key: "name", must: true, example: "ads",
		value: value[set]{want: setName.want, read: func(r *reader, s spot, into *set) {
			// From here on a problem of the set is one of its name.
			into.pos = s.node.Pos
			setName.read(r, s, &into.name)
		}},
		doc: "What rules call it: at most 64 letters, digits, `-` and `_`.",
	},
	{
		key: "type", example: "domains", none: "what is written tells",
		value: one("domains or addresses", func(s string) (string, bool) { return s, s == ofDomains || s == ofAddresses }, func(s *set) *string { return &s.of }),
		doc:   "`domains` or `addresses`: needed where there are only files.",
	},
	{
		key: "domains", example: "domain:ads.example\nkeyword:track", none: "none",
		value: filled(listOf(entryValue("an expression"), func(s *set) *[]string { return &s.domains })),
		doc:   "Expressions of names.",
	},
	{
		key: "addresses", example: "10.0.0.0/8", none: "none",
		value: filled(listOf(entryValue("an address or prefix"), func(s *set) *[]string { return &s.addresses })),
		doc:   "Addresses and prefixes.",
	},
	{
		key: "files", example: "ads.txt", none: "none",
		value: filled(listOf(path(func(file *string) *string { return file }), func(s *set) *[]string { return &s.files })),
		doc:   "Files of more of them.",
	},
}

// setName is any text, as viewName is.
var setName = one("a set's name", func(s string) (string, bool) { return s, true }, func(name *string) *string { return name })

// entryValue is one entry of a set. What it means is known to the set.
func entryValue(want string) value[string] {
	return one(want, func(s string) (string, bool) { return s, s != "" }, func(s *string) *string { return s })
}

var setValue = value[plan.Object]{
	want: "a set",
	keys: func(path string) []entry { return entries(path, setRows) },
	read: func(r *reader, s spot, into *plan.Object) {
		var all set
		all.pos = s.node.Pos
		readRows(r, s, setRows, &all)
		*into = r.object(s, &all)
	},
}

// object is what rules refer to. An entry that could not be read is empty.
func (r *reader) object(s spot, all *set) plan.Object {
	o := plan.Object{Pos: all.pos, Tag: all.name}
	switch all.kind(r, s) {
	case ofDomains:
		o.Type, o.Args = domainSet, &act.DomainSetArgs{Exps: all.domains, Files: all.files}
	case ofAddresses:
		o.Type, o.Args = ipSet, &act.IPSetArgs{IPs: all.addresses, Files: all.files}
	}
	return o
}

// kind is what it is a set of; empty where that is not told.
func (v *set) kind(r *reader, s spot) string {
	has := map[string]plan.Pos{}
	for _, p := range s.node.Pairs {
		if (p.Key == ofDomains || p.Key == ofAddresses) && p.Value.Kind != tree.Null {
			has[p.Key] = p.Pos
		}
	}
	_, domains := has[ofDomains]
	pos, addresses := has[ofAddresses]
	switch {
	case domains && addresses:
		r.Problem(pos, "make two sets of it", "sets: a set has domains or addresses, not both")
		return ofDomains
	case v.of == ofDomains && addresses, v.of == ofAddresses && domains:
		r.Problem(r.where[s.path+".type"], "remove it", "sets.type: %s, and the entries of the set are none", v.of)
	}
	switch {
	case domains:
		return ofDomains
	case addresses:
		return ofAddresses
	}
	return v.of
}
