package tree

import (
	"errors"
	"fmt"
	"regexp"
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

// section matches the first line of a top-level section.
var section = regexp.MustCompile(`^["']?[A-Za-z][A-Za-z0-9_-]*["']?[ ]*:`)

// yaml makes nodes out of what the YAML library parses.
type yaml struct {
	s        *Source
	anchors  map[string]*Node // nil while the anchor's own value is being read
	lines    int              // in front of the text that is parsed
	repeated int              // values that aliases have repeated so far
	partial  bool             // parts are missing, perhaps with anchors
}

// yaml is Parse for YAML.
func (s *Source) yaml() (roots []*Node, whole bool) {
	if bad := s.refused(true); len(bad) > 0 {
		roots, _ = s.parts(bad)
		return roots, false
	}
	for i, line := range s.lines {
		if strings.Contains(line, "\t") && strings.Trim(line, " \t") == "" {
			s.lines[i] = "" // the library takes a lone tab for indentation
		}
	}
	t := &yaml{s: s, anchors: map[string]*Node{}}
	root, trouble := t.parse(strings.Join(s.lines, "\n"), 0)
	if trouble == nil {
		if s.keyed(root) {
			roots = []*Node{root}
		}
		return roots, len(roots) == 1 || root.Kind == Null
	}
	roots, told := s.parts(nil)
	if !told {
		s.problems = append(s.problems, *trouble)
	}
	return roots, false
}

// parts parses section by section. told is whether one of them had trouble of
// its own.
func (s *Source) parts(bad map[int]bool) (roots []*Node, told bool) {
	t := &yaml{s: s, anchors: map[string]*Node{}, partial: true}
	for start := 0; start < len(s.lines) && !s.Full(); {
		end := start + 1
		for end < len(s.lines) && !section.MatchString(s.lines[end]) {
			end++
		}
		root, trouble := t.part(start, end, bad)
		switch {
		case trouble != nil:
			told = true
			s.problems = append(s.problems, *trouble)
		case s.keyed(root):
			roots = append(roots, root)
		}
		start = end
	}
	return roots, told
}

// part parses the lines from start to end alone; one that holds a line that
// was refused already is nothing.
func (t *yaml) part(start, end int, bad map[int]bool) (root *Node, trouble *plan.Problem) {
	for line := start; line < end; line++ {
		if bad[line] {
			return &Node{Kind: Broken}, nil
		}
	}
	return t.parse(strings.Join(t.s.lines[start:end], "\n")+"\n", start)
}

// parse reads text, which stands behind the given number of lines. trouble is
// what keeps it from being YAML.
func (t *yaml) parse(text string, lines int) (root *Node, trouble *plan.Problem) {
	t.lines = lines
	// The library is known to panic on broken input; to the reader of a
	// configuration that is broken input as well.
	defer func() {
		if recover() != nil {
			trouble = &plan.Problem{Pos: t.s.Pos(lines+1, 1), Text: "cannot be read as YAML"}
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

func (t *yaml) pos(tok *token.Token) plan.Pos {
	if tok == nil || tok.Position == nil {
		return t.s.Pos(t.lines+1, 1)
	}
	return t.s.Pos(t.lines+tok.Position.Line, tok.Position.Column)
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
func (t *yaml) syntax(err error) *plan.Problem {
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
func (t *yaml) node(n ast.Node) *Node {
	switch n := n.(type) {
	case nil:
		return &Node{Pos: t.pos(nil), size: 1}
	case *ast.NullNode:
		return &Node{Pos: t.pos(n.GetToken()), size: 1}
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
		return t.tagged(n)
	case *ast.LiteralNode:
		return &Node{Kind: Scalar, Pos: t.pos(n.Start), Text: n.Value.Value, size: 1}
	case *ast.StringNode:
		return &Node{Kind: Scalar, Pos: t.pos(n.Token), Text: n.Value, Plain: plain(n.Token), size: 1}
	case ast.ScalarNode:
		return &Node{Kind: Scalar, Pos: t.pos(n.GetToken()), Text: n.GetToken().Value, Plain: true, size: 1}
	default:
		t.s.Problem(t.pos(n.GetToken()), "", "unexpected %s", strings.ToLower(n.Type().String()))
		return &Node{Kind: Broken, Pos: t.pos(n.GetToken()), size: 1}
	}
}

// tagged is a value behind a tag, such as !!str.
func (t *yaml) tagged(n *ast.TagNode) *Node {
	value := t.node(n.Value)
	switch name := n.Start.Value; {
	case !t.s.Loose:
		t.s.Problem(t.pos(n.Start), "remove it", "tag %s has no meaning here", name)
	case !strings.HasPrefix(name, "!!"):
		t.s.Problem(t.pos(n.Start), "put a value that starts with ! in quotes", "tag %s has no meaning here", name)
		return &Node{Kind: Broken, Pos: t.pos(n.Start), size: 1}
	case name == "!!str" && value.Kind == Scalar:
		text := *value
		text.Plain = false
		return &text
	}
	return value
}

func (t *yaml) mapping(start plan.Pos, flow bool, values []*ast.MappingValueNode) *Node {
	m := &Node{Kind: Mapping, Pos: start, size: 1}
	var merged []*Node
	for i, v := range values {
		p := Pair{Value: t.node(v.Value)}
		var ok bool
		p.Key, p.Pos, ok = t.key(v.Key)
		if i == 0 && !flow {
			m.Pos = p.Pos // the library names the colon behind it
		}
		m.size += p.Value.size
		switch _, merge := v.Key.(*ast.MergeKeyNode); {
		case merge && t.s.Loose:
			merged = append(merged, p.Value)
		case merge:
			t.s.Problem(p.Pos, "write the keys out, or name a whole value with an alias", "<< does not merge here")
		case ok:
			m.Pairs = append(m.Pairs, p)
		}
	}
	for _, from := range merged {
		t.merge(m, from)
	}
	return m
}

// merge adds the keys of one mapping, or of a list of them, that m does not have.
func (t *yaml) merge(m, from *Node) {
	if from.Kind == List {
		for _, item := range from.Items {
			t.merge(m, item)
		}
		return
	}
	if from.Kind == Scalar {
		t.s.Problem(from.Pos, "write an alias, such as *name", "<< merges keys and values, got %s", from.Describe())
	}
	has := map[string]bool{}
	for _, p := range m.Pairs {
		has[strings.ToLower(p.Key)] = true
	}
	for _, p := range from.Pairs {
		if !has[strings.ToLower(p.Key)] {
			m.Pairs = append(m.Pairs, p)
		}
	}
}

// key is the text of a key; ok is false for one that is not plain text.
func (t *yaml) key(k ast.MapKeyNode) (text string, pos plan.Pos, ok bool) {
	pos = t.pos(k.GetToken())
	switch k := k.(type) {
	case *ast.MergeKeyNode:
		return "<<", pos, false
	case *ast.MappingKeyNode:
		if s, ok := k.Value.(*ast.StringNode); ok {
			return s.Value, t.pos(s.Token), true
		}
	case *ast.StringNode:
		return k.Value, pos, true
	case ast.ScalarNode:
		return k.GetToken().Value, pos, true
	}
	t.s.Problem(pos, "write a plain word", "a key must be text")
	return "", pos, false
}

func (t *yaml) list(n *ast.SequenceNode) *Node {
	l := &Node{Kind: List, Pos: t.pos(n.Start), size: 1}
	for _, v := range n.Values {
		item := t.node(v)
		l.size += item.size
		l.Items = append(l.Items, item)
	}
	return l
}

func (t *yaml) anchor(n *ast.AnchorNode) *Node {
	name := nameOf(n.Name)
	t.anchors[name] = nil
	value := t.node(n.Value)
	t.anchors[name] = value
	return value
}

// alias shares the node of its anchor.
func (t *yaml) alias(n *ast.AliasNode) *Node {
	pos := t.pos(n.Start)
	nothing := &Node{Kind: Broken, Pos: pos, size: 1}
	value, known := t.anchors[nameOf(n.Value)]
	switch {
	case !known && t.partial:
		return nothing
	case !known:
		t.s.Problem(pos, fmt.Sprintf("put &%s in front of a value further up", nameOf(n.Value)), "alias *%s has no anchor", nameOf(n.Value))
		return nothing
	case value == nil:
		t.s.Problem(pos, "write the value out", "alias *%s stands inside its own anchor", nameOf(n.Value))
		return nothing
	}
	before := t.repeated
	t.repeated += min(value.size, maxRepeated+1)
	if t.repeated > maxRepeated {
		if before <= maxRepeated {
			t.s.Problem(pos, "write the values out", "aliases repeat more than %d values", maxRepeated)
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
