package sections

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
	"github.com/waymark-dns/waymark/internal/policy/match"
)

var rulesRow = row[plan.Plan]{
	key:     "rules",
	value:   listOf(ruleValue, func(p *plan.Plan) *[]plan.Rule { return &p.Rules }),
	example: "{if: qname $ads, do: reject NXDOMAIN}\n{if: [client_ip $lan, \"!qtype 28\"], do: black_hole 192.0.2.1}\n{do: mark 1}",
	doc: "The site's own rules, in their order: where all of `if` match, `do` is done. They see what the zones do not answer, of clients that may use forwarding; " +
		"where nothing is forwarded, of every client. A response that a rule has made goes past the rules behind it too, which may change it, and then to the client: " +
		"the cache and the upstreams are asked only where there is none. `reject` and `accept` end the way at once; `black_hole` leaves questions alone for whose type it has no address.",
}

var ruleRows = []row[plan.Rule]{
	{
		key: "if", example: "qname $ads", none: "always",
		value: filled(listOf(matcherValue, func(r *plan.Rule) *[]plan.Term { return &r.If })),
		doc:   "Conditions, each a matcher and its arguments, with `!` in front where it must not match. `$` and the name of a set alone stand for `qname` or `client_ip` with that set.",
	},
	{
		key: "do", must: true, example: "reject NXDOMAIN",
		value: value[plan.Rule]{want: "an action", read: readAction},
		doc:   "An action and its arguments.",
	},
}

var ruleValue = value[plan.Rule]{
	want: "a rule",
	keys: func(path string) []entry { return entries(path, ruleRows) },
	read: func(r *reader, s spot, into *plan.Rule) {
		into.Pos = s.node.Pos
		readRows(r, s, ruleRows, into)
	},
}

var matcherValue = value[plan.Term]{want: "a matcher", read: readMatcher}

// term reads a term. One that has a problem has no name.
func (r *reader) term(s spot, matcher bool) (t plan.Term, ok bool) {
	text, ok := r.text(s)
	if !ok {
		return t, false
	}
	t = plan.ParseTerm(s.node.Pos, text, matcher)
	if t.Name == "" || t.Name == "$" {
		r.wrong(s)
		return plan.Term{}, false
	}
	return t, true
}

func readMatcher(r *reader, s spot, into *plan.Term) {
	t, ok := r.term(s, true)
	if !ok {
		return
	}
	known := matchers()
	isSet := strings.HasPrefix(t.Name, "$")
	switch {
	case isSet && t.Args != "":
		r.Problem(t.Pos, "write "+t.Name+" alone, or a matcher in front of it", "%s: behind a set there are no arguments", s.name())
	case !isSet && !slices.Contains(known, t.Name):
		r.Problem(t.Pos, mendWord(t.Name, known), "%s: unknown matcher %s", s.name(), tree.Quote(t.Name))
	default:
		t.Args = r.beside(s, t)
		*into = t
	}
}

// beside is the arguments of a matcher, with the files among them in the folder of the
// configuration.
func (r *reader) beside(s spot, t plan.Term) string {
	if !t.NamesSets() || !strings.Contains(t.Args, "&") {
		return t.Args
	}
	words := strings.Fields(t.Args)
	for i, w := range words {
		file, isFile := strings.CutPrefix(w, "&")
		if !isFile || filepath.IsAbs(file) {
			continue
		}
		file = filepath.Join(r.dir, file)
		if strings.ContainsFunc(file, unicode.IsSpace) {
			r.Problem(t.Pos, "make a set of the file", "%s: there is a space in the path %s", s.name(), tree.Quote(file))
		}
		words[i] = "&" + file
	}
	return strings.Join(words, " ")
}

func readAction(r *reader, s spot, into *plan.Rule) {
	t, ok := r.term(s, false)
	if !ok {
		return
	}
	known := actions()
	if why, ok := elsewhere[t.Name]; ok {
		r.Problem(t.Pos, why, "%s: %s cannot stand here", s.name(), t.Name)
		return
	}
	switch {
	case strings.HasPrefix(t.Name, "$"):
		r.Problem(t.Pos, "write an action, such as "+s.example, "%s: %s is a set, which no rule can do", s.name(), tree.Quote(t.Name))
	case !slices.Contains(known, t.Name):
		r.Problem(t.Pos, mendWord(t.Name, known), "%s: unknown action %s", s.name(), tree.Quote(t.Name))
	default:
		into.Do = t
	}
}

// mendWord is the mend for a word that is none of those that are known.
func mendWord(word string, known []string) string {
	if near := plan.Nearest(word, known); near != "" {
		return "write " + near
	}
	return "known are " + strings.Join(known, ", ")
}

// Why actions cannot stand in rules of level 1.
const (
	placed    = "remove it: it has its place among the sections"
	ofPlugins = "it needs a file of plugins"
)

// elsewhere are the actions that rules of level 1 cannot have, each with what to do
// in its place: those that the program has at their own places, and those that
// work only with the plugins of level 2.
var elsewhere = map[string]string{
	"access": placed, "limits": placed, "zone": placed, "chaos": placed, "route": placed, "cache": placed, "local": placed, "forward": placed,
	"refuse": "write reject REFUSED",
	"return": "write accept", "jump": ofPlugins, "goto": ofPlugins,
	"ipset": ofPlugins, "nftset": ofPlugins, "ecs": ofPlugins, "forward_edns0opt": ofPlugins,
}

// control are the actions that the engine of the policy has itself.
func control() []act.Kind {
	return []act.Kind{
		{Name: "accept", Doc: "ends the way: the response goes to the client as it is"},
		{Name: "mark", Args: "numbers", Doc: "sets marks, which the matcher of that name sees"},
	}
}

// actionKinds are the actions that rules can have.
func actionKinds() []act.Kind {
	return slices.DeleteFunc(slices.Concat(control(), act.Kinds()), func(k act.Kind) bool { return elsewhere[k.Name] != "" })
}

func actions() []string {
	var names []string
	for _, k := range actionKinds() {
		names = append(names, k.Name)
	}
	return names
}

func matchers() []string {
	var names []string
	for _, k := range match.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// words is the part of the manual about what rules are made of.
func words() string {
	var b strings.Builder
	line := func(name, args, doc string) { b.WriteString("| `" + name + "` | " + args + " | " + doc + " |\n") }
	b.WriteString("\n| matcher | arguments | it matches where |\n|---|---|---|\n")
	for _, k := range match.Kinds() {
		line(k.Name, k.Args, k.Doc)
	}
	b.WriteString("\n| action | arguments | what it does |\n|---|---|---|\n")
	for _, k := range actionKinds() {
		line(k.Name, k.Args, k.Doc)
	}
	return b.String()
}
