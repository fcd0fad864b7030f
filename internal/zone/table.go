package zone

import (
	"github.com/waymark-dns/waymark/internal/wire"
)

// Table is a set of zones, found by the longest match of a name. It never
// changes; a reload makes a new one that shares the zones that stayed the same.
type Table struct {
	zones  []*Zone
	slots  []tableSlot // open-addressed, at least half empty
	depths [4]uint32   // bit n: a zone has an apex of n labels
}

type tableSlot struct {
	hash uint64
	zone *Zone
}

// NewTable makes a table of zones with different names.
func NewTable(zones []*Zone) *Table {
	size := 4
	for size < 2*len(zones)+2 {
		size *= 2
	}
	t := &Table{zones: zones, slots: make([]tableSlot, size)}
	for _, z := range zones {
		h := wire.HashName(z.name)
		i := h & uint64(size-1)
		for t.slots[i].zone != nil {
			i = (i + 1) & uint64(size-1)
		}
		t.slots[i] = tableSlot{h, z}
		n := z.name.Labels()
		t.depths[n/32] |= 1 << (n % 32)
	}
	return t
}

// Broken is a zone that could not be loaded: every question for it is answered
// with SERVFAIL, so that a resolver asks another server.
func Broken(name wire.Name) *Zone { return &Zone{name: name.Fold()} }

// Broken tells whether z stands for a zone that could not be loaded.
func (z *Zone) Broken() bool { return len(z.nodes) == 0 }

// Zones is all zones. The caller does not change the slice.
func (t *Table) Zones() []*Zone { return t.zones }

// Find is the zone with the longest apex at or above a name, from label from on:
// 0 looks at the name itself, 1 at its parent. It is nil where there is none.
func (t *Table) Find(name wire.Name, l *wire.Labels, from int) *Zone {
	mask := uint64(len(t.slots) - 1)
	for at := from; at <= l.N; at++ {
		n := l.N - at
		if t.depths[n/32]&(1<<(n%32)) == 0 {
			continue
		}
		h := l.Hash[at]
		for i := h & mask; t.slots[i].zone != nil; i = (i + 1) & mask {
			if t.slots[i].hash == h && wire.EqualFold(t.slots[i].zone.name, name[l.Off[at]:]) {
				return t.slots[i].zone
			}
		}
	}
	return nil
}
