package zone

import (
	"slices"
	"sort"

	"github.com/waymark-dns/waymark/internal/wire"
)

// sortChain collects the nodes with an NSEC record in canonical order. Signers
// write zones in that order, so there is mostly nothing to sort.
func (b *Builder) sortChain() {
	z := &b.z
	for n := range z.nodes {
		if z.nodes[n].above == none && z.set(uint32(n), wire.TypeNSEC) != nil {
			z.chain = append(z.chain, uint32(n))
		}
	}
	less := func(x, y uint32) int { return wire.Compare(z.owner(x), z.owner(y)) }
	if !slices.IsSortedFunc(z.chain, less) {
		slices.SortFunc(z.chain, less)
	}
}

// nsecCover notes the NSEC record of name or, where there is none, the one
// before it, which covers it.
func (w *work) nsecCover(name wire.Name) {
	z := w.z
	i := sort.Search(len(z.chain), func(i int) bool { return wire.Compare(z.owner(z.chain[i]), name) > 0 })
	if i == 0 { // before the apex: cannot be, since the name is at or below it
		i = len(z.chain)
	}
	n := z.chain[i-1]
	w.note(z, z.owner(n), z.set(n, wire.TypeNSEC))
}

// nsecCoverWild notes what covers the wildcard below encloser.
func (w *work) nsecCoverWild(encloser wire.Name) {
	if len(encloser)+2 > wire.MaxName {
		return
	}
	var room [wire.MaxName]byte
	room[0], room[1] = 1, '*'
	w.nsecCover(room[:2+copy(room[2:], encloser)])
}
