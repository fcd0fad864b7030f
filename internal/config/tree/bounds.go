package tree

import (
	"fmt"

	"github.com/goccy/go-yaml/token"

	"github.com/waymark-dns/waymark/internal/plan"
)

// What the YAML library may be given. It calls itself for each level and for
// each key of a mapping, and copies the path each time: a file made for it
// would exhaust the stack or take hours.
const (
	maxDepth = 64   // the deepest key of level 1 is at depth 4
	maxKeys  = 1000 // of one mapping; the largest table has a dozen
	maxMarks = 16   // anchors and tags in front of one value
)

// level is one open list or mapping.
type level struct {
	column int // of its entries; 0 inside brackets
	keys   int
}

// walk follows the nesting of a text by its tokens alone.
type walk struct {
	levels []level
	first  *token.Token // first token on the line that is no dash
	marks  int          // anchors and tags since the last value

	heads, ends int // marks of a document
}

// bounds refuses a text that the YAML library should not be given.
func (t *yaml) bounds(tokens token.Tokens) *plan.Problem {
	w := &walk{}
	for _, tok := range tokens {
		if text, mend := w.next(tok); text != "" {
			return &plan.Problem{Pos: t.pos(tok), Text: text, Mend: mend}
		}
	}
	return nil
}

// next takes one token; text is what is wrong with it.
func (w *walk) next(tok *token.Token) (text, mend string) {
	if w.first == nil || w.first.Position.Line != tok.Position.Line || w.first.Type == token.SequenceEntryType {
		w.first = tok
	}
	marks := 0
	if tok.Prev != nil && tok.Prev.Type == token.AnchorType {
		marks = w.marks // the anchor's name
	}
	switch tok.Type {
	case token.AnchorType, token.TagType:
		marks = w.marks + 1
	case token.MappingStartType, token.SequenceStartType:
		w.levels = append(w.levels, level{})
	case token.MappingEndType, token.SequenceEndType:
		w.close()
	case token.SequenceEntryType, token.MappingKeyType:
		w.open(tok.Position.Column)
	case token.MappingValueType:
		w.key()
	case token.DirectiveType:
		return "YAML directives have no meaning here", "remove the line; put a value that starts with % in quotes"
	case token.DocumentHeaderType:
		w.heads++
	case token.DocumentEndType:
		w.ends++
	}
	w.marks = marks
	switch top := len(w.levels) - 1; {
	case w.heads > 1, w.ends > 1:
		return "a second YAML document", "keep one document in one file"
	case len(w.levels) > maxDepth:
		return fmt.Sprintf("lists and mappings are nested deeper than %d", maxDepth), "close the brackets, or indent less"
	case top >= 0 && w.levels[top].keys > maxKeys:
		return fmt.Sprintf("more than %d keys in one mapping", maxKeys), "is it the right file?"
	case w.marks > maxMarks:
		return "too many anchors and tags in front of one value", "remove them"
	}
	return "", ""
}

// close ends the innermost brackets.
func (w *walk) close() {
	for i := len(w.levels) - 1; i >= 0; i-- {
		if w.levels[i].column == 0 {
			w.levels = w.levels[:i]
			return
		}
	}
}

// open notes a list entry or key at column. Outside brackets it ends whatever
// was indented further.
func (w *walk) open(column int) {
	for len(w.levels) > 0 && w.levels[len(w.levels)-1].column > column {
		w.levels = w.levels[:len(w.levels)-1]
	}
	if top := len(w.levels) - 1; top < 0 || w.levels[top].column != 0 && w.levels[top].column < column {
		w.levels = append(w.levels, level{column: column})
	}
}

// key notes the colon behind a key.
func (w *walk) key() {
	w.open(w.first.Position.Column)
	w.levels[len(w.levels)-1].keys++
}
