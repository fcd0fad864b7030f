package sections

import (
	"errors"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/wire"
)

var zonesRow = row[plan.Plan]{
	key:     "zones",
	value:   listOf(zoneValue, func(p *plan.Plan) *[]plan.Zone { return &p.Zones }),
	example: "{name: example.org, file: example.org.zone}",
	doc:     "The zones that the server is authoritative for.",
}

var zoneRows = []row[plan.Zone]{
	{
		key:     "name",
		value:   value[plan.Zone]{want: "a name", read: readZoneName},
		must:    true,
		example: "example.org",
		doc:     "The name of the zone's apex, with or without its final dot.",
	},
	{
		key:     "file",
		value:   path(func(z *plan.Zone) *string { return &z.File }),
		must:    true,
		example: "example.org.zone",
		doc:     "The zone's master file (RFC 1035 §5).",
	},
	{
		key: "views", example: "office", none: "every view",
		value: filled(listOf(viewName, func(z *plan.Zone) *[]string { return &z.Views })),
		doc:   "Views that see the zone, by their names under `views`. A view's own zone stands in place of one of the same name that all see.",
	},
}

var zoneValue = value[plan.Zone]{
	want: "a zone",
	read: func(r *reader, s spot, into *plan.Zone) {
		into.Pos = s.node.Pos
		readRows(r, s, zoneRows, into)
	},
	keys: func(path string) []entry { return entries(path, zoneRows) },
}

func readZoneName(r *reader, s spot, into *plan.Zone) {
	// From here on a problem of the zone is one of its name.
	into.Pos = s.node.Pos
	nameValue.read(r, s, &into.Name)
}

// nameValue is a domain name.
var nameValue = value[wire.Name]{want: "a name", read: readName}

func readName(r *reader, s spot, into *wire.Name) {
	text, ok := r.text(s)
	if !ok {
		return
	}
	name, problem := ParseName(s.node.Pos, text)
	if problem != nil {
		r.Problem(problem.Pos, problem.Mend, "%s: %s", s.name(), problem.Text)
	}
	*into = name
}

// ParseName reads a domain name in presentation format and folds it to
// lower case. The final dot may be missing. With a problem the name is nil.
func ParseName(pos plan.Pos, text string) (wire.Name, *plan.Problem) {
	if text == "" {
		return nil, &plan.Problem{Pos: pos, Text: "the name is empty", Mend: "write . for the root"}
	}
	for _, c := range text {
		if c > 0x7f {
			return nil, &plan.Problem{Pos: pos, Text: tree.Quote(text) + " has letters outside of ASCII", Mend: "write the name in its xn-- form"}
		}
	}
	name, err := wire.ParseName(text)
	if err != nil {
		return nil, &plan.Problem{Pos: pos, Text: tree.Quote(text) + " is no name: " + reason(err), Mend: mendName(err)}
	}
	return name.Fold(), nil
}

// reason is the innermost part of an error, which says nothing of the text.
func reason(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

func mendName(err error) string {
	if errors.Is(err, wire.ErrEmptyLabel) {
		return "remove the dot in front, or one of two in a row"
	}
	if strings.Contains(reason(err), "longer") {
		return "shorten it"
	}
	return ""
}
