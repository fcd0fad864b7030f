package sections

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
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
	case s.node.kind == broken:
		return "", false
	case s.node.kind == null:
		r.problem(s.node.pos, "write a value such as "+s.example+", or remove the key", "%s has no value", s.name())
		return "", false
	case s.node.kind != scalar:
		r.wrong(s)
		return "", false
	case strings.ContainsFunc(s.node.text, unicode.IsControl):
		r.problem(s.node.pos, "write it on one line", "%s: %s has a line break or a control character", s.name(), s.node.describe())
		return "", false
	}
	return s.node.text, true
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

// listOf is a list; a lone value is a list of one. read is called for each
// entry, also for one that turns out to be wrong.
func listOf[T, E any](element value[E], get func(*T) *[]E) value[T] {
	return value[T]{
		want: element.want,
		list: true,
		keys: element.keys,
		read: func(r *reader, s spot, into *T) {
			items := s.node.items
			switch s.node.kind {
			case null, broken:
				return
			case list:
			default:
				items = []*node{s.node}
			}
			for i, item := range items {
				var e E
				at := s
				at.path, at.node = fmt.Sprintf("%s[%d]", s.path, i), item
				r.where[at.path] = item.pos
				element.read(r, at, &e)
				*get(into) = append(*get(into), e)
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
