package history

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

// secretWords make a key one whose values are secret, wherever in its name they stand.
var secretWords = []string{"secret", "token", "password", "passwd", "passphrase", "sha256", "credential", "apikey", "private", "psk"}

// openWords are keys among secret ones whose values are not.
var openWords = []string{"name", "scope", "scopes", "role", "comment", "expires", "algorithm"}

var (
	// inComment is a secret in a line that is commented out.
	inComment = regexp.MustCompile(`(?im)(#[^\n]*(?:` + strings.Join(secretWords, "|") + `)[\w-]*["']?\s*[:=]\s*)\S[^\n]*`)
	// inURL is the name and the password in front of an address.
	inURL = regexp.MustCompile(`[^\s"'/@:,\[\]{}]+:[^\s"'/@,\[\]{}]*@`)
)

// hidden is what stands in place of a secret.
const hidden = "***"

// Mask is a text of a configuration without its secrets: values of keys that are
// called secret, token, password and the like, passwords in URLs, and such in
// comments. Lines stay where they are, mostly. The file's name tells the format. A text
// that cannot be read whole is an error, ErrUnmasked: what is secret in it is not known.
func Mask(file string, text []byte) (string, error) {
	src := &tree.Source{File: file, Loose: true}
	roots, whole := src.Parse(text)
	if !whole {
		return "", ErrUnmasked
	}
	f := &finder{}
	for _, root := range roots {
		f.walk(root, false)
	}
	s := strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n")
	s = f.cover([]rune(s))
	for _, n := range f.secrets {
		// An alias, or another place: too short a word would take half of the text along.
		if len(n.Text) >= 4 {
			s = strings.ReplaceAll(s, n.Text, hidden)
		}
	}
	s = inComment.ReplaceAllString(s, "${1}"+hidden)
	return inURL.ReplaceAllString(s, hidden+"@"), nil
}

// finder finds the places of secrets.
type finder struct {
	starts  []plan.Pos // of everything: a value ends before the next
	secrets []*tree.Node
}

func (f *finder) walk(n *tree.Node, secret bool) {
	f.starts = append(f.starts, n.Pos)
	if secret && n.Kind == tree.Scalar {
		f.secrets = append(f.secrets, n)
	}
	for _, item := range n.Items {
		f.walk(item, secret)
	}
	for _, p := range n.Pairs {
		f.starts = append(f.starts, p.Pos)
		f.walk(p.Value, isSecret(p.Key) || secret && !slices.Contains(openWords, strings.ToLower(p.Key)))
	}
}

// isSecret tells whether values of a key are secret.
func isSecret(key string) bool {
	key = strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(key))
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(key, w) })
}

// cover covers the secrets in a text.
func (f *finder) cover(text []rune) string {
	begins := []int{0}
	for i, r := range text {
		if r == '\n' {
			begins = append(begins, i+1)
		}
	}
	offset := func(p plan.Pos) int {
		return min(begins[min(max(p.Line, 1), len(begins))-1]+max(p.Column, 1)-1, len(text))
	}
	starts := make([]int, len(f.starts))
	for i, p := range f.starts {
		starts[i] = offset(p)
	}
	slices.Sort(starts)
	secrets := slices.Clone(f.secrets)
	// From the end, so that what is in front keeps its place.
	slices.SortFunc(secrets, func(a, b *tree.Node) int { return cmp.Compare(offset(b.Pos), offset(a.Pos)) })
	secrets = slices.Compact(secrets) // aliases share a node
	for _, n := range secrets {
		from := offset(n.Pos)
		to := len(text)
		if i, _ := slices.BinarySearch(starts, from+1); i < len(starts) {
			to = min(starts[i], to)
		}
		if from < to {
			length := token(text[from:to], n)
			text = slices.Concat(text[:from], []rune(`"`+hidden+`"`), text[from+length:])
		}
	}
	return string(text)
}

// token is how long the text of a value is that begins at text. Where its end is not
// known for sure it is all of text but white space at the end.
func token(text []rune, n *tree.Node) int {
	switch quote := text[0]; {
	case quote == '"' || quote == '\'':
		if end := closing(text, quote); end > 0 {
			return end
		}
	case n.Plain && n.Text != "" && strings.HasPrefix(string(text), n.Text):
		return len([]rune(n.Text))
	}
	end := len(text)
	for end > 1 && strings.ContainsRune(" \n", text[end-1]) {
		end--
	}
	return end
}

// closing is the place behind the quote that ends a text; 0 where it is not sure, as
// with three quotes in a row.
func closing(text []rune, quote rune) int {
	if len(text) > 2 && text[1] == quote && text[2] == quote {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return 0
}
