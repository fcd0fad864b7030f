package nameset

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// maxSuffixes limits the suffixes of one regular expression, and maxClass the
// octets of a class that are told apart: beyond, running the expression costs
// less than filing it.
const (
	maxSuffixes = 32
	maxClass    = 4
)

// Marks within suffixes for both ends of the text, which holds no such octets.
const (
	begin = "\x00"
	end   = "\x01"
)

// suffix is what a match of an expression may end in. Where it is exact it is all
// that the match can be.
type suffix struct {
	text  string
	exact bool
}

// unknown is of what may end in anything.
func unknown() []suffix { return []suffix{{}} }

// suffixes lists what the matches of re end in, all of them, over texts as
// appendText makes them.
func suffixes(re *syntax.Regexp) []suffix {
	switch re.Op {
	case syntax.OpLiteral:
		if text, ok := literal(re); ok {
			return []suffix{{text, true}}
		}
	case syntax.OpCharClass:
		return classSuffixes(re.Rune)
	case syntax.OpBeginText, syntax.OpBeginLine: // a name's text is one line
		return []suffix{{begin, true}}
	case syntax.OpEndText, syntax.OpEndLine:
		return []suffix{{end, true}}
	case syntax.OpEmptyMatch:
		return []suffix{{"", true}}
	case syntax.OpCapture:
		return suffixes(re.Sub[0])
	case syntax.OpPlus:
		return inexact(suffixes(re.Sub[0]))
	case syntax.OpQuest:
		return limited(append(suffixes(re.Sub[0]), suffix{"", true}))
	case syntax.OpAlternate:
		var all []suffix
		for _, sub := range re.Sub {
			all = append(all, suffixes(sub)...)
		}
		return limited(all)
	case syntax.OpConcat:
		return concat(re.Sub)
	}
	return unknown()
}

// concat goes from the last part to the first, for as long as there are suffixes
// that can grow.
func concat(parts []*syntax.Regexp) []suffix {
	all := []suffix{{"", true}}
	for _, part := range slices.Backward(parts) {
		longer := cross(suffixes(part), all)
		if len(longer) > maxSuffixes {
			return inexact(all)
		}
		all = longer
		if !slices.ContainsFunc(all, func(s suffix) bool { return s.exact }) {
			break
		}
	}
	return all
}

// cross puts each of heads before each of tails that is exact.
func cross(heads, tails []suffix) []suffix {
	var all []suffix
	for _, t := range tails {
		if !t.exact {
			all = append(all, t)
			continue
		}
		for _, h := range heads {
			all = append(all, suffix{h.text + t.text, h.exact})
		}
	}
	return all
}

func inexact(list []suffix) []suffix {
	for i := range list {
		list[i].exact = false
	}
	return list
}

func limited(list []suffix) []suffix {
	if len(list) > maxSuffixes {
		return unknown()
	}
	return list
}

// literal is the text that a literal matches. It has none where the literal holds
// what no text holds.
func literal(re *syntax.Regexp) (text string, ok bool) {
	b := make([]byte, 0, len(re.Rune))
	for _, r := range re.Rune {
		if re.Flags&syntax.FoldCase != 0 && r >= 'A' && r <= 'Z' {
			r |= 0x20
		}
		if !isText(r) {
			return "", false
		}
		b = append(b, byte(r))
	}
	return string(b), true
}

// isText tells whether r can stand in the text of a name.
func isText(r rune) bool { return r >= ' ' && r <= '~' && (r < 'A' || r > 'Z') }

// classSuffixes lists the members of a class, given as pairs of first and last,
// that can stand in a text.
func classSuffixes(pairs []rune) []suffix {
	var all []suffix
	for i := 0; i+1 < len(pairs); i += 2 {
		for r := max(pairs[i], ' '); r <= min(pairs[i+1], '~'); r++ {
			if isText(r) {
				all = append(all, suffix{string(r), true})
			}
			if len(all) > maxClass {
				return unknown()
			}
		}
	}
	if all == nil {
		return unknown()
	}
	return all
}

// required lists texts that each match of re is sure to hold.
func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if text, ok := literal(re); ok {
			return []string{text}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		var all []string
		for _, sub := range re.Sub {
			all = append(all, required(sub)...)
		}
		return all
	}
	return nil
}

// tail is what the text of a name must end in, so that an expression can match it.
type tail struct {
	text  string // "" of an expression that can match any name
	whole bool   // it must be all of the text
	exact bool   // then it does match
}

// tailsOf turns the suffixes of a whole expression into tails.
func tailsOf(re *syntax.Regexp) []tail {
	var all []tail
	for _, s := range suffixes(re) {
		text := strings.TrimRight(s.text, end)
		anchored := text != s.text
		t := tail{exact: s.exact, text: strings.TrimLeft(text, begin)}
		t.whole = t.text != text
		if i := lastEscaped(t.text); i >= 0 { // an escape is several octets of text and one of a name
			t = tail{text: t.text[i+1:]}
		}
		if !anchored || strings.ContainsAny(t.text, begin+end) || t.text == "" && !t.whole {
			return []tail{{}}
		}
		all = append(all, t)
	}
	return all
}

// lastEscaped is the place of the last octet in text that can only belong to an
// escape, or -1.
func lastEscaped(text string) int {
	for i := len(text) - 1; i >= 0; i-- {
		if c := text[i]; odd[c] && c != '.' && c > end[0] {
			return i
		}
	}
	return -1
}

// labels is the part of the tail that is whole labels, in presentation format.
func (t *tail) labels() string {
	if t.whole {
		return t.text
	}
	_, rest, _ := strings.Cut(t.text, ".")
	return rest
}
