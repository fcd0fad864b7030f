package sections

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/config/tree"
)

// each calls do for the entries of a list; a lone value is a list of one.
func (r *reader) each(s spot, do func(spot)) {
	items := s.node.Items
	switch s.node.Kind {
	case tree.Null, tree.Broken:
		return
	case tree.List:
	default:
		items = []*tree.Node{s.node}
	}
	for i, item := range items {
		at := s
		at.path, at.node = fmt.Sprintf("%s[%d]", s.path, i), item
		do(at)
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
			r.each(s, func(at spot) {
				var e E
				r.where[at.path] = at.node.Pos
				element.read(r, at, &e)
				*get(into) = append(*get(into), e)
			})
		},
	}
}

// filled is a list that means something else, or nothing, when it is empty:
// then it must not be written.
func filled[T any](v value[T]) value[T] {
	read := v.read
	v.read = func(r *reader, s spot, into *T) {
		if s.node.Kind == tree.Null || s.node.Kind == tree.List && len(s.node.Items) == 0 {
			r.Problem(r.where[s.path], "write a value such as "+s.example+", or remove the key", "%s: the list is empty", s.name())
			return
		}
		read(r, s, into)
	}
	return v
}

// prefixes is a list of addresses, prefixes and words that stand for some. An
// empty list is not nil.
func prefixes[T any](get func(*T) *[]netip.Prefix) value[T] {
	return value[T]{want: "an address or prefix", list: true, read: func(r *reader, s spot, into *T) {
		if s.node.Kind == tree.Null {
			r.Problem(s.node.Pos, "write [] for none, or remove the key", "%s has no value", s.name())
			return
		}
		all := get(into)
		*all = []netip.Prefix{}
		r.each(s, func(at spot) {
			for _, p := range r.prefixes(at) {
				r.where[fmt.Sprintf("%s[%d]", s.path, len(*all))] = at.node.Pos
				*all = append(*all, p)
			}
		})
	}}
}

// prefixes reads one entry. One that is wrong leaves an invalid prefix, so that
// its list does not look empty.
func (r *reader) prefixes(s spot) []netip.Prefix {
	text, ok := r.text(s)
	if !ok {
		return []netip.Prefix{{}}
	}
	switch text {
	case "any":
		return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
	case "private":
		return addrset.Private()
	}
	p, err := addrset.Parse(text)
	if err != nil {
		what, mend, _ := strings.Cut(reason(err), ": ")
		r.Problem(s.node.Pos, mend, "%s: %s: %s", s.name(), tree.Quote(text), what)
	}
	return []netip.Prefix{p}
}
