package qlog

import (
	"bytes"
	"encoding/binary"

	"github.com/waymark-dns/waymark/internal/wire"
)

// dict numbers different values in the order in which they come. A value has a key
// that it is found by, and a text that files have it as.
type dict struct {
	slots []slot
	count int
	keys  []byte // those that are too long for their slot
	texts packed
}

// slot is one value: what it takes to tell whether it is the one that is looked for,
// so that as few places of memory as possible are looked at.
type slot struct {
	key    uint64 // a short key itself, else where it begins in keys
	hash   uint32
	number uint32
	length uint8 // of the key
	used   bool

	// Of a name: what its answers were the last time, where they have a short key.
	lastLength uint8
	lastNumber uint32
	lastKey    uint64
}

// shortKey is the octets of a key that a slot has room for.
const shortKey = 8

// short is a short key as a slot has it.
func short(key []byte) (k uint64) {
	if len(key) == 4 { // one IPv4 address
		return uint64(binary.LittleEndian.Uint32(key))
	}
	for i, c := range key {
		k |= uint64(c) << (8 * i)
	}
	return k
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

// find is the number of the value with that key; fold takes small and capital letters
// for the same. Where there is none it is the number that the next one gets, and at is
// for put. A key has at most 255 octets.
func (d *dict) find(hash uint64, key []byte, fold bool) (number uint32, at int, ok bool) {
	if 4*d.count >= 3*len(d.slots) {
		d.grow()
	}
	tag := uint32(hash >> 32)
	mask := len(d.slots) - 1
	for i := int(tag) & mask; ; i = (i + 1) & mask {
		s := &d.slots[i]
		if !s.used {
			return uint32(d.count), i, false
		}
		if s.hash == tag && int(s.length) == len(key) && d.is(s, key, fold) {
			return s.number, i, true
		}
	}
}

// is tells whether the slot's key, which is as long, is that one.
func (d *dict) is(s *slot, key []byte, fold bool) bool {
	if len(key) <= shortKey && !fold {
		return s.key == short(key)
	}
	have := d.keys[s.key : s.key+uint64(s.length)]
	return bytes.Equal(have, key) || fold && wire.EqualFold(have, key)
}

// put gives the next number to a value that find did not find, with the same fold; its
// text is to be added to texts.
func (d *dict) put(hash uint64, at int, key []byte, fold bool) {
	s := slot{hash: uint32(hash >> 32), length: uint8(len(key)), number: uint32(d.count), used: true}
	if len(key) <= shortKey && !fold {
		s.key = short(key)
	} else {
		s.key = uint64(len(d.keys))
		d.keys = append(d.keys, key...)
	}
	d.slots[at] = s
	d.count++
}

// grow doubles the table.
func (d *dict) grow() {
	old := d.slots
	d.slots = make([]slot, max(1024, 2*len(old)))
	mask := len(d.slots) - 1
	for _, s := range old {
		if !s.used {
			continue
		}
		i := int(s.hash) & mask
		for d.slots[i].used {
			i = (i + 1) & mask
		}
		d.slots[i] = s
	}
}

// size is the octets that the values take.
func (d *dict) size() int {
	const slotSize = 32
	return len(d.keys) + len(d.texts.octets) + 4*d.texts.len() + slotSize*len(d.slots)
}

// reset empties d and keeps its memory.
func (d *dict) reset() {
	clear(d.slots)
	d.count, d.keys = 0, d.keys[:0]
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
