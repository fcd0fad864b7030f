package nameset

import (
	"encoding/binary"
	"math/bits"

	"github.com/waymark-dns/waymark/internal/wire"
)

// A record is what the set keeps of a name: the length of its labels, its mark,
// the labels folded and without the root label, and four octets of value where
// the mark says so. Records lie in chunks, so that none is ever copied to grow,
// and no record crosses from one chunk into the next.
const (
	chunkBits = 18
	chunkSize = 1 << chunkBits
	maxChunks = 1 << (32 - chunkBits) // offsets have 32 bits
	maxRecord = 2 + wire.MaxName + 4
)

// Marks of records. One name may have a record of each.
const (
	markFull   = 1    // a full name
	markDomain = 2    // a suffix
	markTail   = 3    // what matches of regular expressions end in; the value is where the list starts
	markKind   = 0x0f // these bits tell the three apart
	markValue  = 0x80 // the value follows the labels; without this mark it is 0
)

// depths is the set of numbers of labels that names in a table have. It spares
// the probes that cannot hit.
type depths [2]uint64

func (d *depths) add(n int)      { d[n>>6&1] |= 1 << (n & 63) }
func (d *depths) has(n int) bool { return d[n>>6&1]>>(n&63)&1 != 0 }

// deepest is the highest number in the set, or -1.
func (d *depths) deepest() int {
	if d[1] != 0 {
		return 63 + bits.Len64(d[1])
	}
	return bits.Len64(d[0]) - 1
}

// table finds records by the hash of their name. A slot is the low half of the
// hash and the offset of the record; 0 is an empty one. The place of a slot comes
// from the high half of the hash, and collisions go to the next.
type table struct {
	slots  []uint64
	chunks [][]byte

	full, domain, tails depths
}

// record is the one at an offset, with what follows it in its chunk.
func (t *table) record(off uint32) []byte {
	return t.chunks[off>>chunkBits][off&(chunkSize-1):]
}

// far is the number of slots from which on a table counts as out of the reach of
// the processor's caches: 256 KiB of them.
const far = 1 << 15

// find looks for name among the full names, then for the longest suffix.
func (t *table) find(name wire.Name, l *wire.Labels) (value uint32, ok bool) {
	if len(t.slots) >= far && t.touch(l) == 0 {
		return 0, false
	}
	if t.full.has(l.N) {
		if value, ok = t.get(l.Hash[0], name[:len(name)-1], markFull); ok {
			return value, true
		}
	}
	for d := min(l.N, t.domain.deepest()); d >= 0; d-- {
		if !t.domain.has(d) {
			continue
		}
		i := l.N - d
		if value, ok = t.get(l.Hash[i], name[l.Off[i]:len(name)-1], markDomain); ok {
			return value, true
		}
	}
	return 0, false
}

// touch reads the slots where find will begin. Nothing is decided between one and
// the next, so that the processor waits for all of them at once. The result is 0
// where all are empty: then there is nothing to find.
func (t *table) touch(l *wire.Labels) uint64 {
	seen := t.slots[t.place(l.Hash[0])] // of full names
	for d := min(l.N, t.domain.deepest()); d >= 0; d-- {
		if t.domain.has(d) {
			seen |= t.slots[t.place(l.Hash[l.N-d])]
		}
	}
	return seen
}

// place is where the search for a hash begins.
func (t *table) place(h uint64) uint64 {
	at, _ := bits.Mul64(h, uint64(len(t.slots)))
	return at
}

// get is the value of the record of that kind for labels, whose hash is h.
func (t *table) get(h uint64, labels []byte, kind byte) (value uint32, ok bool) {
	slots := t.slots
	at := t.place(h)
	for {
		slot := slots[at]
		if slot == 0 {
			return 0, false
		}
		if uint32(slot>>32) == uint32(h) {
			r := t.record(uint32(slot))
			if r[1]&markKind == kind && int(r[0]) == len(labels) && wire.EqualFold(r[2:2+len(labels)], labels) {
				return valueOf(r), true
			}
		}
		if at++; at == uint64(len(slots)) {
			at = 0
		}
	}
}

func valueOf(record []byte) uint32 {
	if record[1]&markValue == 0 {
		return 0
	}
	return binary.LittleEndian.Uint32(record[2+int(record[0]):])
}

// sizeOf is the length of the record that r begins with.
func sizeOf(r []byte) int {
	size := 2 + int(r[0])
	if r[1]&markValue != 0 {
		size += 4
	}
	return size
}

// insert files the record at off under its hash. It replaces a record of the same
// kind and name, and then returns false.
func (t *table) insert(off uint32, h uint64) bool {
	r := t.record(off)
	n := uint64(len(t.slots))
	at, filed := t.place(h), h<<32|uint64(off)
	for ; t.slots[at] != 0; at = (at + 1) % n {
		if uint32(t.slots[at]>>32) == uint32(h) && sameName(t.record(uint32(t.slots[at])), r) {
			t.slots[at] = filed
			return false
		}
	}
	t.slots[at] = filed
	return true
}

func sameName(a, b []byte) bool {
	end := 2 + int(a[0])
	return a[0] == b[0] && (a[1]^b[1])&markKind == 0 && string(a[2:end]) == string(b[2:end])
}

func (t *table) bytes() int {
	sum := 8*cap(t.slots) + 24*cap(t.chunks)
	for _, c := range t.chunks {
		sum += cap(c)
	}
	return sum
}
