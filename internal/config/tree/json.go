package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/waymark-dns/waymark/internal/plan"
)

// jsonReader makes nodes of JSON.
type jsonReader struct {
	s      *Source
	places places
	dec    *json.Decoder
	last   int // behind the last token
}

// json is Parse for JSON. Empty text is nothing, as it is in YAML.
func (s *Source) json(text string) (root *Node, trouble *plan.Problem) {
	j := &jsonReader{s: s, places: newPlaces(s, text), dec: json.NewDecoder(strings.NewReader(text))}
	j.dec.UseNumber()
	if strings.TrimSpace(text) == "" {
		return &Node{Pos: s.Pos(1, 1)}, nil
	}
	root, err := j.value(0)
	if err == nil {
		if _, err = j.dec.Token(); errors.Is(err, io.EOF) {
			return root, nil
		}
		if err == nil {
			err = errors.New("more than one value")
		}
	}
	return nil, j.trouble(err)
}

// trouble makes a problem of an error of the decoder.
func (j *jsonReader) trouble(err error) *plan.Problem {
	at := int(j.dec.InputOffset())
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = int(syntax.Offset) - 1
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, err = len(j.places.text), errors.New("the text ends too early")
	}
	return &plan.Problem{Pos: j.places.at(at), Text: "cannot be read as JSON: " + err.Error()}
}

// token is the next token and where it starts.
func (j *jsonReader) token() (json.Token, plan.Pos, error) {
	tok, err := j.dec.Token()
	start := j.last + len(j.places.text[j.last:]) - len(strings.TrimLeft(j.places.text[j.last:], " \t\r\n,:"))
	j.last = int(j.dec.InputOffset())
	return tok, j.places.at(start), err
}

func (j *jsonReader) value(depth int) (*Node, error) {
	tok, pos, err := j.token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '[' {
			return j.list(pos, depth)
		}
		return j.mapping(pos, depth)
	case string:
		return &Node{Kind: Scalar, Pos: pos, Text: tok}, nil
	case nil:
		return &Node{Pos: pos}, nil
	default:
		return &Node{Kind: Scalar, Pos: pos, Text: fmt.Sprint(tok), Plain: true}, nil
	}
}

func (j *jsonReader) list(pos plan.Pos, depth int) (*Node, error) {
	l := &Node{Kind: List, Pos: pos}
	for j.dec.More() {
		item, err := j.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, item)
	}
	_, _, err := j.token()
	return l, err
}

func (j *jsonReader) mapping(pos plan.Pos, depth int) (*Node, error) {
	m := &Node{Kind: Mapping, Pos: pos}
	for j.dec.More() {
		tok, at, err := j.token()
		if err != nil {
			return nil, err
		}
		key, _ := tok.(string) // the decoder takes nothing else here
		value, err := j.value(depth + 1)
		if err != nil {
			return nil, err
		}
		m.Pairs = append(m.Pairs, Pair{Key: key, Pos: at, Value: value})
	}
	_, _, err := j.token()
	return m, err
}

// places turns offsets in a text into positions.
type places struct {
	s      *Source
	text   string
	starts []int // of lines
}

func newPlaces(s *Source, text string) places {
	p := places{s: s, text: text, starts: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			p.starts = append(p.starts, i+1)
		}
	}
	return p
}

func (p places) at(offset int) plan.Pos {
	offset = min(max(offset, 0), len(p.text))
	line := sort.SearchInts(p.starts, offset+1)
	return p.s.Pos(line, 1+utf8.RuneCountInString(p.text[p.starts[line-1]:offset]))
}
