package wire

import "encoding/binary"

// dictionary finds names that a message holds already, label by label from the
// root: an entry is a label, where it stands, and where the name behind it
// stands. So a match is exact without reading the rest of the name, and costs
// one probe a label. It is bounded: what does not fit in is just not pointed to.
type dictionary struct {
	used  int    // entries of list
	gen   uint32 // slots of another generation are empty
	slots [dictSlots]dictSlot
	list  [dictSize]uint8 // slots in the order they were filled
	off   [MaxLabels + 1]uint8
}

type dictSlot struct {
	gen        uint32
	at, parent uint16
}

const (
	dictSlots = 256
	dictSize  = 192
	maxOffset = 0x3fff // of a compression pointer
)

// compress writes n at the end of the message with as much of it as possible
// pointed to. It returns an offset where the whole name stands, or 0 where a
// pointer cannot reach it.
func (b *Builder) compress(n Name) int {
	d := &b.dict
	if d.used == 0 {
		d.next()
		b.learnQuestion()
	}
	labels := offsets(n, &d.off)
	known, raw := 0, labels
	for raw > 0 {
		at := d.find(b.buf, n[d.off[raw-1]:], known)
		if at == 0 {
			break
		}
		known = at
		raw--
	}
	if raw == 0 && labels > 0 {
		b.pointer(known)
		return known
	}
	start, size := b.n, len(n)-1
	if raw < labels {
		size = int(d.off[raw])
	}
	b.n += copy(b.buf[start:], n[:size])
	for j, parent := raw-1, known; j >= 0; j-- {
		at := start + int(d.off[j])
		d.add(b.buf, at, parent)
		parent = at
	}
	if known > 0 {
		b.pointer(known)
	} else {
		b.buf[b.n] = 0
		b.n++
	}
	if start > maxOffset || labels == 0 {
		return 0
	}
	return start
}

// next makes all slots empty. When the generations have come round, slots of
// long ago would look filled.
func (d *dictionary) next() {
	if d.gen++; d.gen == 0 {
		clear(d.slots[:])
		d.gen = 1
	}
}

func (b *Builder) pointer(at int) {
	binary.BigEndian.PutUint16(b.buf[b.n:], 0xc000|uint16(at))
	b.n += 2
}

// learnQuestion enters the question's name.
func (b *Builder) learnQuestion() {
	l := &b.q.Suffixes
	if b.q.Name == nil {
		return
	}
	for i, parent := l.N-1, 0; i >= 0; i-- {
		at := HeaderSize + int(l.Off[i])
		b.dict.add(b.buf, at, parent)
		parent = at
	}
}

func dictHash(label []byte, parent int) uint8 {
	return uint8(hashLabel(uint64(parent), label) >> 56)
}

// find is where the name stands that is label, then the name at parent.
func (d *dictionary) find(msg, label []byte, parent int) int {
	label = label[:1+int(label[0])]
	for i := dictHash(label, parent); ; i++ {
		s := &d.slots[i]
		if s.gen != d.gen {
			return 0
		}
		at := int(s.at)
		if int(s.parent) == parent && EqualFold(msg[at:at+len(label)], label) {
			return at
		}
	}
}

// add enters the label that stands at at, in front of the name at parent.
func (d *dictionary) add(msg []byte, at, parent int) {
	if d.used == dictSize || at > maxOffset {
		return
	}
	i := dictHash(msg[at:], parent)
	for d.slots[i].gen == d.gen {
		i++
	}
	d.slots[i] = dictSlot{d.gen, uint16(at), uint16(parent)}
	d.list[d.used] = i
	d.used++
}

// forget takes back all entries but the first keep. The last filled slot ends
// each probe, so taking them in reverse order leaves no hole.
func (d *dictionary) forget(keep int) {
	for d.used > keep {
		d.used--
		d.slots[d.list[d.used]].gen = 0
	}
}
