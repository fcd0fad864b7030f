package tree

import (
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// colons puts plain text with colons in it together again. In a list that
// stands inside braces, {to: [udp://192.0.2.1:53, fe80::1]}, the YAML library
// takes any colon for one behind a key; in YAML it is one only with a space
// behind it.
func colons(tokens token.Tokens) token.Tokens {
	var out token.Tokens
	var open []token.Type
	for i := 0; i < len(tokens); i++ {
		tok := tokens[i]
		switch tok.Type {
		case token.MappingStartType, token.SequenceStartType:
			open = append(open, tok.Type)
		case token.MappingEndType, token.SequenceEndType:
			open = open[:max(len(open)-1, 0)]
		case token.MappingValueType:
			if len(open) == 0 || open[len(open)-1] != token.SequenceStartType || i+1 == len(tokens) || !adjoin(tok, tokens[i+1]) {
				break
			}
			head := len(out) - 1 // never first: the bracket stands in front
			switch last := out[head]; {
			case plain(last) && adjoin(last, tok):
				out, tok = out[:head], together(last, tok)
			case last.Type != token.SequenceStartType && last.Type != token.CollectEntryType:
				out.Add(tok) // a key in quotes needs no space, as in JSON
				continue
			}
			i++
			tok = together(tok, tokens[i])
		}
		out.Add(tok)
	}
	return out
}

// adjoin reports whether b is text that stands right behind a.
func adjoin(a, b *token.Token) bool {
	return a.Position.Line == b.Position.Line && a.Position.Column+utf8.RuneCountInString(a.Value) == b.Position.Column &&
		(plain(b) || b.Type == token.MappingValueType)
}

// plain reports whether a token is a value without quotes.
func plain(tok *token.Token) bool {
	return tok.CharacterType == token.CharacterTypeMiscellaneous && tok.Indicator == token.NotIndicator
}

func together(a, b *token.Token) *token.Token {
	return token.String(a.Value+b.Value, a.Origin+b.Origin, a.Position)
}
