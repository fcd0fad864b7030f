package sections

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

// one reads a value that is a single word or text. parse is false for a text
// that is not what is wanted.
func one[T, V any](want string, parse func(string) (V, bool), get func(*T) *V) value[T] {
	return value[T]{want: want, read: func(r *reader, s spot, into *T) {
		text, ok := r.text(s)
		if !ok {
			return
		}
		v, ok := parse(text)
		if !ok {
			r.wrong(s)
			return
		}
		*get(into) = v
	}}
}

// text is the text of a value that must be one line.
func (r *reader) text(s spot) (string, bool) {
	switch {
	case s.node.Kind == tree.Broken:
		return "", false
	case s.node.Kind == tree.Null:
		r.Problem(s.node.Pos, "write a value such as "+s.example+", or remove the key", "%s has no value", s.name())
		return "", false
	case s.node.Kind != tree.Scalar:
		r.wrong(s)
		return "", false
	case strings.ContainsFunc(s.node.Text, unicode.IsControl):
		r.Problem(s.node.Pos, "write it on one line", "%s: %s has a line break or a control character", s.name(), s.node.Describe())
		return "", false
	}
	return s.node.Text, true
}

func text[T any](get func(*T) *string) value[T] {
	return one("text", func(s string) (string, bool) { return s, true }, get)
}

func number[T any](get func(*T) *int) value[T] {
	return one("a whole number", parseNumber, get)
}

func boolean[T any](get func(*T) *bool) value[T] {
	return one("true or false", parseBool, get)
}

func duration[T any](get func(*T) *time.Duration) value[T] {
	return one("a duration", parseDuration, get)
}

// path is the name of a file or a socket, relative to the folder that the
// configuration is in.
func path[T any](get func(*T) *string) value[T] {
	return value[T]{want: "a path", read: func(r *reader, s spot, into *T) {
		text, ok := r.text(s)
		if !ok {
			return
		}
		if text == "" {
			r.wrong(s)
			return
		}
		if !filepath.IsAbs(text) {
			text = filepath.Join(r.dir, text)
		}
		*get(into) = text
	}}
}

// under is a mapping with a table of its own.
func under[T, U any](rows []row[U], get func(*T) *U) value[T] {
	return value[T]{
		want: "keys and values",
		read: func(r *reader, s spot, into *T) { readRows(r, s, rows, get(into)) },
		keys: func(path string) []entry { return entries(path, rows) },
	}
}

// switched is a mapping that may also be written on or off in one word; set
// is called with which it is before the keys are read.
func switched[T, U any](rows []row[U], get func(*T) *U, set func(v *U, pos plan.Pos, on bool)) value[T] {
	return value[T]{
		want: "keys and values, or off",
		keys: func(path string) []entry { return entries(path, rows) },
		read: func(r *reader, s spot, into *T) {
			pos := r.where[s.path]
			on := true
			if s.node.Kind == tree.Scalar {
				var ok bool
				if on, ok = parseBool(s.node.Text); !ok {
					// The value is not shown: among the keys may be a secret.
					r.Problem(s.node.Pos, "write for example "+inline(rows)+", or off", "%s: expected keys and values, or off", s.name())
					return
				}
				s.node = &tree.Node{Pos: s.node.Pos}
			}
			set(get(into), pos, on)
			if on {
				readRows(r, s, rows, get(into))
			}
		},
	}
}

func parseNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil
}

func parseBool(s string) (v, ok bool) {
	switch strings.ToLower(s) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// parseDuration takes what time.ParseDuration takes, and days in front of it:
// 1d, 1d12h.
func parseDuration(s string) (time.Duration, bool) {
	const day = 24 * time.Hour
	var days time.Duration
	if head, tail, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(head, 10, 16)
		if err != nil {
			return 0, false
		}
		if days = time.Duration(n) * day; tail == "" {
			return days, true
		}
		s = tail
	}
	d, err := time.ParseDuration(s)
	return days + d, err == nil && d >= 0
}
