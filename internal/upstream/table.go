package upstream

import "time"

// slot is one try that waits for its answer.
type slot struct {
	x      *Exchange     // nil for a probe
	hash   uint64        // of the question as it was sent
	sent   time.Duration // when
	gen    uint32        // of x
	serial uint32        // in its table, never 0: tells apart tries that had the same ID
	id     uint16
	end    uint16 // of the question in the message
	try    uint8  // of x
	flags  tryFlags
}

// tryFlags say how a try was sent.
type tryFlags uint8

const (
	withOPT  tryFlags = 1 << iota // with the OPT record
	bareTry                       // without it, because the server did not understand it just now
	againTry                      // once more, on a new connection
	byTCP
	gatherTry // with others, when the batch ends
)

// Sizes of a table.
const (
	minSlots    = 16   // a power of two
	maxPending  = 1024 // tries that wait on one socket
	recentCount = 64
)

// table finds tries by ID. It is a hash table with linear probing; IDs are random
// and so their own hash. It belongs to a socket or a connection and is guarded by
// its mutex.
type table struct {
	slots  []slot // a power of two, at most half of them taken
	n      int
	serial uint32 // the last one given

	recent  [recentCount]uint16 // IDs of the last answers, a ring
	answers int
}

// put takes a free ID out of ids for s and notes it. It is false where none of
// them is free: then the table is too full to be a good place.
func (t *table) put(s *slot, ids uint64) bool {
	if t.n >= maxPending {
		return false
	}
	for range 4 {
		if t.find(uint16(ids)) < 0 {
			t.grow()
			t.serial = max(t.serial+1, 1)
			s.id, s.serial = uint16(ids), t.serial
			t.place(s)
			t.n++
			return true
		}
		ids >>= 16
	}
	return false
}

func (t *table) grow() {
	if 2*(t.n+1) <= len(t.slots) {
		return
	}
	old := t.slots
	t.slots = make([]slot, max(minSlots, 2*len(old)))
	for i := range old {
		if old[i].serial != 0 {
			t.place(&old[i])
		}
	}
}

// place puts s into the first free place from its own on.
func (t *table) place(s *slot) {
	mask := len(t.slots) - 1
	i := int(s.id) & mask
	for t.slots[i].serial != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = *s
}

// find is the place of an ID, or -1.
func (t *table) find(id uint16) int {
	if t.n == 0 {
		return -1
	}
	mask := len(t.slots) - 1
	for i := int(id) & mask; t.slots[i].serial != 0; i = (i + 1) & mask {
		if t.slots[i].id == id {
			return i
		}
	}
	return -1
}

// waits tells whether that very try still waits.
func (t *table) waits(id uint16, serial uint32) bool {
	i := t.find(id)
	return i >= 0 && t.slots[i].serial == serial
}

// remove empties a place and closes the gap.
func (t *table) remove(i int) {
	mask := len(t.slots) - 1
	t.n--
	for j := (i + 1) & mask; t.slots[j].serial != 0; j = (j + 1) & mask {
		home := int(t.slots[j].id) & mask
		if (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = slot{}
}

// answered removes a try and remembers its ID.
func (t *table) answered(i int) slot {
	s := t.slots[i]
	t.remove(i)
	t.recent[t.answers%recentCount] = s.id
	t.answers++
	return s
}

// wasAnswered tells whether the ID is one of the last answers'.
func (t *table) wasAnswered(id uint16) bool {
	for i := range min(t.answers, recentCount) {
		if t.recent[i] == id {
			return true
		}
	}
	return false
}

// drain empties the table and gives what was in it.
func (t *table) drain() []slot {
	var all []slot
	for i := range t.slots {
		if t.slots[i].serial != 0 {
			all = append(all, t.slots[i])
			t.slots[i] = slot{}
		}
	}
	t.n = 0
	return all
}
