package wire

import "encoding/binary"

// Fit makes the response ready to send: cut to limit octets where it is longer,
// TC set where something is missing that the client needs, the OPT record at
// the end. It comes after End and happens once. Additional data may be left out
// without a word, glue below the zone cut of a referral may not (RFC 9471 §3).
// size is what we say in our OPT record that we take over UDP.
func (b *Builder) Fit(limit int, size uint16) []byte {
	limit = min(limit, len(b.buf))
	if b.full || b.n+b.reserve() > limit {
		b.cut(limit)
	}
	if b.q.EDNS.Present {
		b.appendOPT(size)
	}
	b.header()
	return b.buf[:b.n]
}

// appendOPT writes the OPT record (RFC 6891 §6.1.2): DO is copied, version 0.
func (b *Builder) appendOPT(size uint16) {
	o := b.buf[b.n : b.n+optSize+b.opts]
	o[0] = 0
	binary.BigEndian.PutUint16(o[1:], TypeOPT)
	binary.BigEndian.PutUint16(o[3:], size)
	o[5], o[6], o[7], o[8] = byte(b.rcode>>4), 0, 0, 0
	if b.q.EDNS.DO {
		o[7] = 0x80
	}
	binary.BigEndian.PutUint16(o[9:], uint16(b.opts))
	copy(o[optSize:], b.opt[:b.opts])
	b.n += len(o)
	b.counts[Additional]++
}

// cut removes RRsets from the end until the rest fits. The limit is at least
// 512, so header, question and OPT always do; options go first where not.
func (b *Builder) cut(limit int) {
	if b.q.end+b.reserve() > limit {
		b.opts = 0
	}
	keep := cutter{room: limit - b.reserve(), needed: b.full}
	keep.walk(b)
	if keep.needed {
		b.Flags |= FlagTC
	}
	b.n, b.counts = keep.end, keep.counts
	b.full = false
}

// cutter finds the last end of an RRset (with its signatures) that fits.
type cutter struct {
	room    int
	end     int
	counts  [4]uint16
	needed  bool // something was cut that the client needs
	cutName int  // offset of the zone cut's name in a referral, 0 elsewhere
}

func (c *cutter) walk(b *Builder) {
	b.header()
	var r Response
	r.Read(b.buf[:b.n])
	c.end, c.counts[0] = r.off, b.counts[0]
	var rec Record
	for more := r.Next(&rec); more; {
		first, last := rec, rec
		n := uint16(0)
		for more && (n == 0 || joins(r.Msg, last, rec)) {
			last = rec
			n++
			more = r.Next(&rec)
		}
		if b.Referral && first.Section == Authority && first.Type == TypeNS && c.cutName == 0 {
			c.cutName = first.Start
		}
		if last.End <= c.room {
			c.end = last.End
			c.counts[first.Section] += n
			continue
		}
		if c.needed = c.needed || first.Section != Additional || c.glue(r.Msg, first); c.needed {
			return
		}
	}
}

// joins tells whether rec belongs to the RRset of the record before it, as a
// further record or as its signature.
func joins(msg []byte, before, rec Record) bool {
	if rec.Section != before.Section || rec.Type != before.Type && rec.Type != TypeRRSIG {
		return false
	}
	return sameName(msg, before.Start, rec.Start)
}

// glue tells whether rec is an address below the zone cut of a referral.
func (c *cutter) glue(msg []byte, rec Record) bool {
	if c.cutName == 0 || rec.Type != TypeA && rec.Type != TypeAAAA {
		return false
	}
	var own, cut [MaxName]byte
	owner, _, ok := ReadName(own[:0], msg, rec.Start)
	apex, _, ok2 := ReadName(cut[:0], msg, c.cutName)
	return ok && ok2 && owner.Under(apex)
}

func sameName(msg []byte, a, b int) bool {
	var x, y [MaxName]byte
	n, _, ok := ReadName(x[:0], msg, a)
	m, _, ok2 := ReadName(y[:0], msg, b)
	return ok && ok2 && EqualFold(n, m)
}
