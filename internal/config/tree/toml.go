package tree

import (
	"errors"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/waymark-dns/waymark/internal/plan"
)

// tomlReader makes nodes of TOML. The library's decoder judges the text as a
// whole; its parser below that, which keeps places, gives the nodes.
type tomlReader struct {
	s      *Source
	places places
	parser unstable.Parser
	root   *Node
	table  *Node // of the last header
	deep   bool
}

// toml is Parse for TOML.
func (s *Source) toml(text string) (root *Node, trouble *plan.Problem) {
	defer func() {
		if recover() != nil { // a text that the library cannot take is no TOML
			trouble = &plan.Problem{Pos: s.Pos(1, 1), Text: "cannot be read as TOML"}
		}
	}()
	var all map[string]any
	if err := toml.Unmarshal([]byte(text), &all); err != nil {
		pos := s.Pos(1, 1)
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			pos = s.Pos(at.Position())
		}
		return nil, &plan.Problem{Pos: pos, Text: "cannot be read as TOML: " + err.Error()}
	}
	t := &tomlReader{s: s, places: newPlaces(s, text), root: &Node{Kind: Mapping, Pos: s.Pos(1, 1)}}
	t.table = t.root
	t.parser.Reset([]byte(text))
	for t.parser.NextExpression() {
		t.expression(t.parser.Expression())
	}
	if err := t.parser.Error(); err != nil || t.deep {
		return nil, &plan.Problem{Pos: s.Pos(1, 1), Text: "cannot be read as TOML: nested too deep"}
	}
	if len(t.root.Pairs) == 0 {
		return &Node{Pos: s.Pos(1, 1)}, nil
	}
	return t.root, nil
}

func (t *tomlReader) expression(n *unstable.Node) {
	switch n.Kind {
	case unstable.KeyValue:
		t.pair(t.table, n, 0)
	case unstable.Table:
		t.table = t.below(t.root, n.Key(), false)
	case unstable.ArrayTable:
		t.table = t.below(t.root, n.Key(), true)
	}
}

// below finds the mapping that a dotted key leads to, or makes it. With entry
// the last part is a list and gets a new mapping.
func (t *tomlReader) below(m *Node, key unstable.Iterator, entry bool) *Node {
	for key.Next() {
		part := key.Node()
		pos := t.at(part)
		last := entry && key.IsLast()
		m = t.step(m, string(part.Data), pos, last)
	}
	return m
}

// step goes one part of a dotted key down from m.
func (t *tomlReader) step(m *Node, name string, pos plan.Pos, entry bool) *Node {
	next := m.find(name)
	if next == nil {
		next = &Node{Kind: Mapping, Pos: pos}
		if entry {
			next.Kind = List
		}
		m.Pairs = append(m.Pairs, Pair{Key: name, Pos: pos, Value: next})
	}
	if entry {
		next.Items = append(next.Items, &Node{Kind: Mapping, Pos: pos})
	}
	if next.Kind == List && len(next.Items) > 0 {
		return next.Items[len(next.Items)-1]
	}
	return next
}

// find is the value of a key, or nil.
func (n *Node) find(key string) *Node {
	for _, p := range n.Pairs {
		if p.Key == key {
			return p.Value
		}
	}
	return nil
}

// pair adds one key and its value to m.
func (t *tomlReader) pair(m *Node, n *unstable.Node, depth int) {
	key := n.Key()
	for key.Next() {
		part := key.Node()
		name, pos := string(part.Data), t.at(part)
		if !key.IsLast() {
			m = t.step(m, name, pos, false)
			continue
		}
		m.Pairs = append(m.Pairs, Pair{Key: name, Pos: pos, Value: t.value(n.Value(), pos, depth)})
	}
}

// value makes a node; near is the position of what stands in front.
func (t *tomlReader) value(n *unstable.Node, near plan.Pos, depth int) *Node {
	if depth > maxDepth {
		t.deep = true
		return &Node{Kind: Broken, Pos: near}
	}
	switch n.Kind {
	case unstable.Array:
		l := &Node{Kind: List, Pos: near}
		for items := n.Children(); items.Next(); {
			l.Items = append(l.Items, t.value(items.Node(), near, depth+1))
		}
		return l
	case unstable.InlineTable:
		m := &Node{Kind: Mapping, Pos: t.at(n)}
		for pairs := n.Children(); pairs.Next(); {
			t.pair(m, pairs.Node(), depth+1)
		}
		return m
	}
	pos := near
	if n.Raw.Length > 0 {
		pos = t.at(n)
	}
	plain := n.Kind == unstable.Integer || n.Kind == unstable.Float || n.Kind == unstable.Bool
	return &Node{Kind: Scalar, Pos: pos, Text: string(n.Data), Plain: plain}
}

func (t *tomlReader) at(n *unstable.Node) plan.Pos { return t.places.at(int(n.Raw.Offset)) }
