package sections

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/waymark-dns/waymark/internal/plan"
)

// maxRepeated bounds the values that aliases repeat. Aliases of aliases grow
// without end in a few lines; a hand-written file repeats dozens.
const maxRepeated = 100_000

// kind is what a node of the tree is.
type kind uint8

const (
	null   kind = iota
	broken      // has a problem already, say no more about it
	scalar
	list
	mapping
)

// node is a value as it is written, aliases followed. Nodes may be shared and
// are not changed once made.
type node struct {
	kind  kind
	pos   plan.Pos
	text  string // scalar
	items []*node
	pairs []pair
	size  int // nodes in it, itself counted, aliases followed
}

// pair is one key of a mapping.
type pair struct {
	key   string
	pos   plan.Pos
	value *node
}

// tree makes nodes out of what the YAML library parses.
type tree struct {
	r        *reader
	anchors  map[string]*node // nil while the anchor's own value is being read
	lines    int              // in front of the text that is parsed
	repeated int              // values that aliases have repeated so far
	partial  bool             // parts are missing, perhaps with anchors
}

// parse reads text, which stands behind the given number of lines. trouble is
// what keeps it from being YAML.
func (t *tree) parse(text string, lines int) (root *node, trouble *plan.Problem) {
	t.lines = lines
	// The library is known to panic on broken input; to the reader of a
	// configuration that is broken input as well.
	defer func() {
		if recover() != nil {
			trouble = &plan.Problem{Pos: t.r.pos(lines+1, 1), Text: "cannot be read as YAML"}
		}
	}()
	tokens := lexer.Tokenize(text)
	if trouble := t.bounds(tokens); trouble != nil {
		return nil, trouble
	}
	file, err := parser.Parse(colons(tokens), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, t.syntax(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, &plan.Problem{Pos: t.pos(doc.Body.GetToken()), Text: "a second YAML document", Mend: "keep one document in one file"}
		}
		body = doc.Body
	}
	return t.node(body), nil
}

// sections reports whether the root can hold sections.
func (t *tree) sections(root *node) bool {
	if root.kind == scalar || root.kind == list {
		t.r.problem(root.pos, "begin with a section, such as listen:", "expected sections, got %s", root.describe())
	}
	return root.kind == mapping
}

func (t *tree) pos(tok *token.Token) plan.Pos {
	if tok == nil || tok.Position == nil {
		return t.r.pos(t.lines+1, 1)
	}
	return t.r.pos(t.lines+tok.Position.Line, tok.Position.Column)
}

// mends has an advice for what the YAML library says most often.
var mends = []struct{ says, mend string }{
	{"mapping value is not allowed", `put a value that holds ": " in quotes, or correct the indentation`},
	{"end character", "close the quotes"},
	{"end token", "close the bracket"},
	{"must be specified", "close the bracket; a value with a bracket in it stands in quotes"},
	{"corresponding to", "remove the bracket, or put the value in quotes"},
	{"reserved character", "put the value in quotes"},
	{"directive", "put a value that starts with % in quotes"},
	{"escape character", "put the value in single quotes"},
	{"invalid key", "a key must be a plain word"},
	{"non-map value", "write key: value, with a space behind the colon"},
	{"unexpected key name", "write key: value, with a space behind the colon"},
	{"value is not allowed", "correct the indentation"},
	{"undefined alias", "put a value that starts with * in quotes"},
	{"undefined anchor", "put a value that starts with & in quotes"},
}

// syntax makes a problem of an error of the YAML library.
func (t *tree) syntax(err error) *plan.Problem {
	p := &plan.Problem{Pos: t.pos(nil), Text: "cannot be read as YAML"}
	var at interface {
		error
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &at) {
		return p
	}
	p.Pos = t.pos(at.GetToken())
	p.Text = "cannot be read as YAML: " + at.GetMessage()
	for _, m := range mends {
		if strings.Contains(at.GetMessage(), m.says) {
			p.Mend = m.mend
			break
		}
	}
	return p
}

// node follows what the library parsed. Its depth is bounded by t.bounds.
func (t *tree) node(n ast.Node) *node {
	switch n := n.(type) {
	case nil:
		return &node{pos: t.pos(nil), size: 1}
	case *ast.NullNode:
		return &node{pos: t.pos(n.GetToken()), size: 1}
	case *ast.MappingNode:
		return t.mapping(t.pos(n.Start), n.IsFlowStyle, n.Values)
	case *ast.MappingValueNode:
		return t.mapping(t.pos(n.Start), false, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		return t.list(n)
	case *ast.AnchorNode:
		return t.anchor(n)
	case *ast.AliasNode:
		return t.alias(n)
	case *ast.TagNode:
		t.r.problem(t.pos(n.Start), "remove it", "tag %s has no meaning here", n.Start.Value)
		return t.node(n.Value)
	case *ast.LiteralNode:
		return &node{kind: scalar, pos: t.pos(n.Start), text: n.Value.Value, size: 1}
	case *ast.StringNode:
		return &node{kind: scalar, pos: t.pos(n.Token), text: n.Value, size: 1}
	case ast.ScalarNode:
		return &node{kind: scalar, pos: t.pos(n.GetToken()), text: n.GetToken().Value, size: 1}
	default:
		t.r.problem(t.pos(n.GetToken()), "", "unexpected %s", strings.ToLower(n.Type().String()))
		return &node{kind: broken, pos: t.pos(n.GetToken()), size: 1}
	}
}

func (t *tree) mapping(start plan.Pos, flow bool, values []*ast.MappingValueNode) *node {
	m := &node{kind: mapping, pos: start, size: 1}
	for i, v := range values {
		p := pair{value: t.node(v.Value)}
		var ok bool
		p.key, p.pos, ok = t.key(v.Key)
		if i == 0 && !flow {
			m.pos = p.pos // the library names the colon behind it
		}
		m.size += p.value.size
		if ok {
			m.pairs = append(m.pairs, p)
		}
	}
	return m
}

// key is the text of a key; ok is false for one that is not plain text.
func (t *tree) key(k ast.MapKeyNode) (text string, pos plan.Pos, ok bool) {
	pos = t.pos(k.GetToken())
	switch k := k.(type) {
	case *ast.MergeKeyNode:
		t.r.problem(pos, "write the keys out, or name a whole value with an alias", "<< does not merge here")
		return "", pos, false
	case *ast.MappingKeyNode:
		if s, ok := k.Value.(*ast.StringNode); ok {
			return s.Value, t.pos(s.Token), true
		}
	case *ast.StringNode:
		return k.Value, pos, true
	case ast.ScalarNode:
		return k.GetToken().Value, pos, true
	}
	t.r.problem(pos, "write a plain word", "a key must be text")
	return "", pos, false
}

func (t *tree) list(n *ast.SequenceNode) *node {
	l := &node{kind: list, pos: t.pos(n.Start), size: 1}
	for _, v := range n.Values {
		item := t.node(v)
		l.size += item.size
		l.items = append(l.items, item)
	}
	return l
}

func (t *tree) anchor(n *ast.AnchorNode) *node {
	name := nameOf(n.Name)
	t.anchors[name] = nil
	value := t.node(n.Value)
	t.anchors[name] = value
	return value
}

// alias shares the node of its anchor.
func (t *tree) alias(n *ast.AliasNode) *node {
	pos := t.pos(n.Start)
	nothing := &node{kind: broken, pos: pos, size: 1}
	value, known := t.anchors[nameOf(n.Value)]
	switch {
	case !known && t.partial:
		return nothing
	case !known:
		t.r.problem(pos, fmt.Sprintf("put &%s in front of a value further up", nameOf(n.Value)), "alias *%s has no anchor", nameOf(n.Value))
		return nothing
	case value == nil:
		t.r.problem(pos, "write the value out", "alias *%s stands inside its own anchor", nameOf(n.Value))
		return nothing
	}
	before := t.repeated
	t.repeated += min(value.size, maxRepeated+1)
	if t.repeated > maxRepeated {
		if before <= maxRepeated {
			t.r.problem(pos, "write the values out", "aliases repeat more than %d values", maxRepeated)
		}
		return nothing
	}
	return value
}

func nameOf(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

// describe names a node in a problem.
func (n *node) describe() string {
	switch n.kind {
	case null:
		return "nothing"
	case list:
		return "a list"
	case mapping:
		return "keys and values"
	default:
		return quote(n.text)
	}
}

// quote is text for a problem: in quotes, on one line, and not too long.
func quote(text string) string {
	const longest = 60
	if runes := []rune(text[:min(len(text), 4*longest)]); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
