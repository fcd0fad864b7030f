package limit

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// sipKey is a key of SipHash (Aumasson and Bernstein, 2012).
type sipKey struct{ k0, k1 uint64 }

func newSipKey(secret [16]byte) sipKey {
	return sipKey{binary.LittleEndian.Uint64(secret[:8]), binary.LittleEndian.Uint64(secret[8:])}
}

// randomKey is a key for tables: who cannot know it cannot choose addresses that
// meet in one place.
func randomKey() sipKey {
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	return newSipKey(secret)
}

// sipState is the state of SipHash, passed by value so that it stays in registers.
type sipState struct{ v0, v1, v2, v3 uint64 }

func (k sipKey) start() sipState {
	return sipState{k.k0 ^ 0x736f6d6570736575, k.k1 ^ 0x646f72616e646f6d, k.k0 ^ 0x6c7967656e657261, k.k1 ^ 0x7465646279746573}
}

func (s sipState) round() sipState {
	s.v0 += s.v1
	s.v2 += s.v3
	s.v1 = bits.RotateLeft64(s.v1, 13) ^ s.v0
	s.v3 = bits.RotateLeft64(s.v3, 16) ^ s.v2
	s.v0 = bits.RotateLeft64(s.v0, 32) + s.v3
	s.v2 += s.v1
	s.v1 = bits.RotateLeft64(s.v1, 17) ^ s.v2
	s.v3 = bits.RotateLeft64(s.v3, 21) ^ s.v0
	s.v2 = bits.RotateLeft64(s.v2, 32)
	return s
}

// sum24 is SipHash-2-4 of msg; its octets are the number in little-endian order.
func (k sipKey) sum24(msg []byte) uint64 {
	s := k.start()
	last := uint64(len(msg)) << 56
	for ; len(msg) >= 8; msg = msg[8:] {
		s = s.absorb(binary.LittleEndian.Uint64(msg))
	}
	for i, c := range msg {
		last |= uint64(c) << (8 * i)
	}
	s = s.absorb(last)
	s.v2 ^= 0xff
	s = s.round().round().round().round()
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3
}

func (s sipState) absorb(word uint64) sipState {
	s.v3 ^= word
	s = s.round().round()
	s.v0 ^= word
	return s
}

// sum13 is SipHash-1-3 of three words without the closing word, which would tell
// apart messages of different lengths. It is the hash of the tables.
func (k sipKey) sum13(a, b, c uint64) uint64 {
	s := k.start()
	s.v3 ^= a
	s = s.round()
	s.v0 ^= a
	s.v3 ^= b
	s = s.round()
	s.v0 ^= b
	s.v3 ^= c
	s = s.round()
	s.v0 ^= c
	s.v2 ^= 0xff
	s = s.round().round().round()
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3
}
