package cache

import "unsafe"

// ghosts remembers, by a fingerprint of their hashes, entries that went without
// having been asked for: who comes again soon was dropped too early and goes into
// the main queue at once. A set keeps the last of its entries. Of 8,000 entries
// that were never there, one is taken for one that was.
type ghosts []ghostSet

type ghostSet [8]uint16

const ghostSize = int(unsafe.Sizeof(ghostSet{}))

func (g ghosts) set(hash uint64) (set *ghostSet, mark uint16) {
	return &g[hash>>32*uint64(len(g))>>32], max(uint16(hash), 1) // 0 is an empty place
}

// add remembers an entry; the oldest of its set is forgotten.
func (g ghosts) add(hash uint64) {
	set, mark := g.set(hash)
	copy(set[1:], set[:])
	set[0] = mark
}

// take tells whether an entry is remembered, and forgets it.
func (g ghosts) take(hash uint64) bool {
	set, mark := g.set(hash)
	for i := range set {
		if set[i] == mark {
			copy(set[i:], set[i+1:])
			set[len(set)-1] = 0
			return true
		}
	}
	return false
}
