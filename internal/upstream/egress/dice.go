package egress

import (
	crand "crypto/rand"
	"math/rand/v2"
	"sync"
)

// diceShards keeps goroutines out of each other's way.
const diceShards = 8

// Dice throws what an off-path attacker must not guess: the ID of a try, its
// place in the pool and so its port, the case of its letters (RFC 5452 §9.2).
//
// ChaCha8 is enough for that: it is a stream cipher, so that from any number of
// IDs and ports seen the next cannot be computed, and math/rand/v2 forgets the
// old key as it goes, so that past ones cannot be either. Each shard has a key of
// its own from the system's generator. Only the choice of the shard is left to the
// runtime's generator; knowing it tells nothing of what the shard throws.
type Dice struct{ shards [diceShards]dieShard }

type dieShard struct {
	mu  sync.Mutex // guards src
	src *rand.ChaCha8
	_   [48]byte // one cache line each
}

// NewDice makes dice with keys of their own.
func NewDice() *Dice {
	d := new(Dice)
	for i := range d.shards {
		var key [32]byte
		crand.Read(key[:]) // never fails
		d.shards[i].src = rand.NewChaCha8(key)
	}
	return d
}

// Throw is what one try needs.
type Throw struct {
	IDs   uint64 // four IDs, of which the first free one is taken
	Place uint32 // in the pool
	Tie   uint32 // between servers
}

// Throw throws.
func (d *Dice) Throw() Throw {
	s := &d.shards[rand.Uint32()%diceShards]
	s.mu.Lock()
	ids, more := s.src.Uint64(), s.src.Uint64()
	s.mu.Unlock()
	return Throw{IDs: ids, Place: uint32(more), Tie: uint32(more >> 32)}
}

// Between is a random number from low to high, both included.
func (d *Dice) Between(low, high int) int {
	return low + int(d.Throw().IDs%uint64(high-low+1))
}
