package egress

import "slices"

// Limits of what one socket gathers: the kernel cuts one message into 64 at the
// most, and takes less than 64 KiB.
const (
	MaxBatch       = 64
	maxBatchOctets = 32 << 10
)

// Batch is the queries that one socket is to send, one behind the other. The zero
// value is empty. It is not for several goroutines at once.
type Batch struct {
	octets []byte
	ends   []uint16 // of each query in octets
	order  [MaxBatch]uint8
	done   int // how many have been sent, in that order
}

// Add copies a query; there has to be room for it.
func (g *Batch) Add(msg []byte) {
	g.order[len(g.ends)] = uint8(len(g.ends))
	g.octets = append(g.octets, msg...)
	g.ends = append(g.ends, uint16(len(g.octets)))
}

// Room tells whether another query of so many octets may be added.
func (g *Batch) Room(octets int) bool {
	return len(g.ends) < MaxBatch && len(g.octets)+octets <= maxBatchOctets
}

// At is the query with that place in the order.
func (g *Batch) At(i int) []byte {
	n, start := g.order[i], uint16(0)
	if n > 0 {
		start = g.ends[n-1]
	}
	return g.octets[start:g.ends[n]]
}

// Clear empties it.
func (g *Batch) Clear() { g.octets, g.ends, g.done = g.octets[:0], g.ends[:0], 0 }

// Sort orders the queries, the longest first: which goes first is the same to
// everybody, and those of one length can be one message.
func (g *Batch) Sort() {
	size := func(n uint8) int {
		if n == 0 {
			return int(g.ends[0])
		}
		return int(g.ends[n] - g.ends[n-1])
	}
	slices.SortFunc(g.order[:len(g.ends)], func(a, b uint8) int { return size(b) - size(a) })
}

// Len is how many queries there are.
func (g *Batch) Len() int { return len(g.ends) }

// Sent is how many of them have left, in the order of At.
func (g *Batch) Sent() int { return g.done }
