package qlog

import (
	"bytes"
	"encoding/binary"

	"github.com/waymark-dns/waymark/internal/wire"
)

// dict numbers different values in the order in which they come. A value has a key
// that it is found by, and a text that files have it as.
type dict struct {
	slots []uint64 // number plus one, below it 32 bits of the hash
	keys  packed
	texts packed
}

// packed is many short strings, one behind the other.
type packed struct {
	octets []byte
	ends   []uint32
}

func (p *packed) add(b []byte) { p.end(append(p.octets, b...)) }

func (p *packed) end(octets []byte) {
	p.octets = octets
	p.ends = append(p.ends, uint32(len(octets)))
}

func (p *packed) at(i uint32) []byte {
	start := uint32(0)
	if i > 0 {
		start = p.ends[i-1]
	}
	return p.octets[start:p.ends[i]:p.ends[i]]
}

func (p *packed) len() int { return len(p.ends) }

// cut leaves the first n.
func (p *packed) cut(n int) {
	end := uint32(0)
	if n > 0 {
		end = p.ends[n-1]
	}
	p.octets, p.ends = p.octets[:end], p.ends[:n]
}

func (p *packed) reset() { p.octets, p.ends = p.octets[:0], p.ends[:0] }

const hashBits = 0xffffffff

// find is the number of the value with that key; fold takes small and capital letters
// for the same. Where there is none it is the number that the next one gets, and slot
// is for put.
func (d *dict) find(hash uint64, key []byte, fold bool) (number uint32, slot int, ok bool) {
	if 4*d.keys.len() >= 3*len(d.slots) {
		d.grow()
	}
	tag := hash >> 32
	mask := len(d.slots) - 1
	for i := int(tag) & mask; ; i = (i + 1) & mask {
		s := d.slots[i]
		if s == 0 {
			return uint32(d.keys.len()), i, false
		}
		if s&hashBits == tag {
			n := uint32(s>>32) - 1
			if have := d.keys.at(n); bytes.Equal(have, key) || fold && wire.EqualFold(have, key) {
				return n, i, true
			}
		}
	}
}

// put gives the next number to a value that find did not find; its text is to be
// added to texts.
func (d *dict) put(hash uint64, slot int, key []byte) {
	d.keys.add(key)
	d.slots[slot] = uint64(d.keys.len())<<32 | hash>>32
}

// grow doubles the table. A place is where the tag points, or behind it.
func (d *dict) grow() {
	old := d.slots
	d.slots = make([]uint64, max(1024, 2*len(old)))
	mask := len(d.slots) - 1
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := int(s&hashBits) & mask
		for d.slots[i] != 0 {
			i = (i + 1) & mask
		}
		d.slots[i] = s
	}
}

// size is the octets that the values take.
func (d *dict) size() int {
	return len(d.keys.octets) + len(d.texts.octets) + 8*d.keys.len() + 8*len(d.slots)
}

// reset empties d and keeps its memory.
func (d *dict) reset() {
	clear(d.slots)
	d.keys.reset()
	d.texts.reset()
}

// mix hashes words. The seed is the process's, so that clients cannot aim at one
// slot.
func mix(seed uint64, words ...uint64) uint64 {
	h := seed
	for _, w := range words {
		h = (h ^ w) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	h *= 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

// hashOctets hashes a few octets.
func hashOctets(seed uint64, b []byte) uint64 {
	h := seed ^ uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h, binary.LittleEndian.Uint64(b))
	}
	if len(b) > 0 {
		var last [8]byte
		copy(last[:], b)
		h = mix(h, binary.LittleEndian.Uint64(last[:]))
	}
	return h
}
