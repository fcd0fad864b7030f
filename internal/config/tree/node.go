package tree

import (
	"fmt"

	"github.com/waymark-dns/waymark/internal/plan"
)

// Kind is what a node is.
type Kind uint8

// The kinds of nodes.
const (
	Null    Kind = iota
	Broken       // has a problem already, say no more about it
	Scalar       // one word or text
	List         //
	Mapping      //
)

// Node is a value as it is written, aliases followed. Nodes may be shared and
// are not changed once made.
type Node struct {
	Kind  Kind
	Pos   plan.Pos
	Text  string // of a Scalar
	Plain bool   // of a Scalar: without quotes, so that it may be a number
	Items []*Node
	Pairs []Pair
	size  int // nodes in it, itself counted, aliases followed
}

// Pair is one key of a mapping.
type Pair struct {
	Key   string
	Pos   plan.Pos
	Value *Node
}

// Describe names a node in a problem.
func (n *Node) Describe() string {
	switch n.Kind {
	case Null:
		return "nothing"
	case List:
		return "a list"
	case Mapping:
		return "keys and values"
	default:
		return Quote(n.Text)
	}
}

// Quote is text for a problem: in quotes, on one line, and not too long.
func Quote(text string) string {
	const longest = 60
	if runes := []rune(text[:min(len(text), 4*longest)]); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
