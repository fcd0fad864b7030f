package wire

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// seed makes hashes of names unpredictable to clients, new in each process.
// It is written before main and never again.
var seed = rand.Uint64()

// Labels is where the labels of a name start and the hash of each suffix: of
// the name itself, of its parent, and so on up to the root. Zones, name sets
// and the cache look names and their ancestors up by these hashes. They are of
// the folded name, seeded per process, and computed from the root down, so that
// all of them cost one walk.
type Labels struct {
	N    int                   // labels, the root label not counted
	Off  [MaxLabels + 1]uint8  // Off[i] is where label i starts; label 0 is the leftmost, label N the root
	Hash [MaxLabels + 1]uint64 // Hash[i] is of the suffix that starts at label i; Hash[N] is the root's
}

// Scan fills l from name, which must be well formed.
func (l *Labels) Scan(name Name) {
	l.N = offsets(name, &l.Off)
	l.Off[l.N] = uint8(len(name) - 1)
	l.hash(name)
}

func (l *Labels) hash(name Name) {
	h := seed
	l.Hash[l.N] = h
	for i := l.N - 1; i >= 0; i-- {
		h = hashLabel(h, name[l.Off[i]:])
		l.Hash[i] = h
	}
}

// HashName is the hash of name alone, as Labels.Hash[0] has it.
func HashName(name Name) uint64 {
	var l Labels
	l.Scan(name)
	return l.Hash[0]
}

const (
	mul1 = 0x9e3779b97f4a7c15
	mul2 = 0xd6e8feb86659fd93
)

// hashLabel adds the label at the start of b, length octet first, to h. Eight
// octets a step, the last step overlapping, as in wyhash.
func hashLabel(h uint64, b []byte) uint64 {
	n := int(b[0])
	b = b[1 : 1+n]
	for len(b) > 8 {
		h = mix(h^fold8(binary.LittleEndian.Uint64(b)), mul1)
		b = b[8:]
	}
	var w uint64
	switch k := len(b); {
	case k == 8:
		w = binary.LittleEndian.Uint64(b)
	case k >= 4:
		w = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[k-4:]))<<32
	case k > 0:
		w = uint64(b[0]) | uint64(b[k>>1])<<8 | uint64(b[k-1])<<16
	}
	return mix(h^fold8(w), mul2+uint64(n)<<1)
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
