package upstream

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
	"github.com/waymark-dns/waymark/internal/wire"
)

// queryRoom holds a usual query; a longer one is copied to the heap.
const queryRoom = 512

// questionEnd is the offset behind the one question of a query, or 0 where it
// cannot be sent.
func questionEnd(q []byte) int {
	if len(q) < wire.HeaderSize || len(q) > wire.MaxMessage || q[2]&0x80 != 0 || binary.BigEndian.Uint16(q[4:]) != 1 {
		return 0
	}
	end := wire.UncompressedEnd(q, wire.HeaderSize)
	if end < 0 || end+4 > len(q) {
		return 0
	}
	return end + 4
}

// stripOPT completes a query whose last record, OPT, was cut off.
func stripOPT(q []byte) []byte {
	binary.BigEndian.PutUint16(q[10:], binary.BigEndian.Uint16(q[10:])-1)
	return q
}

// mixCase gives the letters of a name random case.
func mixCase(name []byte, d *egress.Dice) {
	var bits uint64
	left := 0
	for i, c := range name {
		if c |= 0x20; c < 'a' || c > 'z' {
			continue
		}
		if left == 0 {
			bits, left = d.Throw().IDs, 64
		}
		name[i] = c &^ byte(bits&1<<5)
		bits >>= 1
		left--
	}
}

// questions hashes questions: as they are, or with the letters of the name
// folded. The seed is the process's secret, so that nobody can send a question
// that only looks equal.
type questions struct {
	seed  maphash.Seed
	exact bool
}

// hash is of msg[:end], which ends with type and class.
func (q *questions) hash(msg []byte, end int) uint64 {
	question := msg[wire.HeaderSize:end]
	if q.exact {
		return maphash.Bytes(q.seed, question)
	}
	var folded [wire.MaxName + 4]byte
	n := copy(folded[:], question)
	for i := range n - 4 {
		folded[i] = wire.FoldByte(folded[i])
	}
	return maphash.Bytes(q.seed, folded[:n])
}

// class is what a response means for its exchange.
type class uint8

const (
	good      class = iota
	truncated       // to be asked again by TCP
	failing         // SERVFAIL, REFUSED, NOTIMP, FORMERR
	malformed       // its records are not whole
)

// classify looks at a response whose question was checked.
func classify(msg []byte, stream bool) class {
	if msg[2]&(wire.FlagTC>>8) != 0 {
		if stream {
			return malformed
		}
		return truncated
	}
	if rankOf(rcode(msg)) > 0 {
		return failing
	}
	if !whole(msg) {
		return malformed
	}
	return good
}

func rcode(msg []byte) wire.Rcode { return wire.Rcode(msg[3] & 15) }

// rankOf orders failures: the greater says more to the client. It is 0 for what
// is none.
func rankOf(r wire.Rcode) uint8 {
	switch r {
	case wire.FormErr:
		return 1
	case wire.NotImp:
		return 2
	case wire.Refused:
		return 3
	case wire.ServFail:
		return 4
	}
	return 0
}

func whole(msg []byte) bool {
	var r wire.Response
	var rec wire.Record
	if !r.Read(msg) {
		return false
	}
	for r.Next(&rec) {
	}
	return r.Whole()
}

// hasOPT tells whether a response has an OPT record: then its sender speaks EDNS.
func hasOPT(msg []byte) bool {
	var r wire.Response
	var rec wire.Record
	if !r.Read(msg) {
		return false
	}
	for r.Next(&rec) {
		if rec.Section == wire.Additional && rec.Type == wire.TypeOPT {
			return true
		}
	}
	return false
}

// unfit tells whether a response says that the server did not understand the
// query, as one without EDNS does with OPT (RFC 6891 §7).
func unfit(msg []byte) bool {
	r := rcode(msg)
	return r == wire.FormErr || r == wire.NotImp
}
