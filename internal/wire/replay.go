package wire

import "encoding/binary"

// Replay writes the records of a stored message behind the question of the
// response, which has none yet. stored is a whole message without OPT that a
// Checker has read, its one question equal to ours, letters aside; ttlAt is
// where its TTLs stand, two octets each, the low one first. Every TTL is
// lowered by age, to 0 at most, or set to fixed where that is not 0 (RFC 8767
// §4). It is false where the questions differ in length. Where the message does
// not fit nothing is copied, and Truncated tells it. Neither slice is kept.
//
// Add may follow, as long as the sections stay in order.
func (b *Builder) Replay(stored, ttlAt []byte, age, fixed uint32) bool {
	end := b.q.end
	if b.n != end || b.q.Name == nil || end > len(stored) || UncompressedEnd(stored, HeaderSize)+4 != end {
		return false
	}
	if b.full || len(stored)+b.reserve() > len(b.buf) {
		b.full = true
		return true
	}
	// Both have a header and a question of the same size in front, so what
	// stands somewhere in stored stands there in the response too.
	msg := b.buf[:len(stored)]
	copy(msg[end:], stored[end:])
	if fixed > 0 {
		for ; len(ttlAt) >= 2; ttlAt = ttlAt[2:] {
			binary.BigEndian.PutUint32(msg[binary.LittleEndian.Uint16(ttlAt):], fixed)
		}
	} else {
		for ; len(ttlAt) >= 2; ttlAt = ttlAt[2:] {
			at := msg[binary.LittleEndian.Uint16(ttlAt):]
			ttl := binary.BigEndian.Uint32(at)
			binary.BigEndian.PutUint32(at, ttl-min(ttl, age))
		}
	}
	counts := binary.BigEndian.Uint64(stored[4:])
	b.counts[Answer], b.counts[Authority], b.counts[Additional] = uint16(counts>>32), uint16(counts>>16), uint16(counts)
	b.n = len(stored)
	return true
}

// Checker is a cursor as Response is, for a message that someone else wrote and
// that Replay will send on: it stops, not whole, at the first record whose owner
// or RDATA is malformed. A compression pointer may lead only to a label of a
// name that stands further up. So what Replay changes, letters of the question
// and TTLs, is in no name but for its letters, and no pointer leads into the
// header. It allocates nothing and is used again.
type Checker struct {
	r     Response
	Owner int // of the record last read: where its name starts, pointers followed
	name0 int // octets of the question's name
	heads [(maxOffset + 1) / 64]uint64
}

// Read starts in front of the first record of a message with one question. It is
// false where header or question are not whole.
func (c *Checker) Read(msg []byte) bool {
	c.r = Response{Msg: msg}
	if len(msg) < HeaderSize || len(msg) > MaxMessage || binary.BigEndian.Uint16(msg[4:]) != 1 {
		return false
	}
	clear(c.heads[:min(len(c.heads), len(msg)/64+1)])
	end := c.name(HeaderSize)
	if end < 0 || !c.r.Read(msg) {
		return false
	}
	c.name0 = end - HeaderSize
	return true
}

// Question is the name, the type and the class asked for, a view of the message.
func (c *Checker) Question() (name Name, typ, class uint16) {
	end := HeaderSize + c.name0
	rest := c.r.Msg[end : end+4]
	return Name(c.r.Msg[HeaderSize:end]), binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
}

// Next reads the next record, as Response.Next does. An OPT record has no names.
func (c *Checker) Next(rec *Record) bool {
	if !c.r.Next(rec) {
		return false
	}
	if c.name(rec.Start) < 0 || !c.rdata(rec) {
		c.r.ok = false
		return false
	}
	c.Owner = c.Start(rec.Start)
	return true
}

// Whole tells, after Next was false, that every record was read and was sound,
// and that nothing is left over.
func (c *Checker) Whole() bool { return c.r.Whole() }

// Start is where the name at off starts, pointers followed: off itself where it
// does not start with one. Its name was read before.
func (c *Checker) Start(off int) int {
	for c.r.Msg[off] >= 0xc0 {
		off = pointee(c.r.Msg, off)
	}
	return off
}

// Same tells whether two names that were read before are equal, letters folded.
func (c *Checker) Same(a, b int) bool {
	a, b = c.Start(a), c.Start(b)
	return a == b || sameName(c.r.Msg, a, b)
}

// name reads the name at off under the rules of ReadName, but that pointers lead
// to labels read before. It returns the offset behind it, or -1.
func (c *Checker) name(off int) int {
	msg, limit := c.r.Msg, off
	at, size := c.labels(off, 0, true)
	switch {
	case at < 0:
		return -1
	case msg[at] == 0:
		return at + 1
	}
	end := at + 2
	for range MaxLabels {
		to := pointee(msg, at)
		if to >= limit || !c.marked(to) {
			return -1
		}
		if to == HeaderSize {
			if size+c.name0 > MaxName {
				return -1
			}
			return end
		}
		limit = to
		if at, size = c.labels(to, size, false); at < 0 {
			return -1
		}
		if msg[at] == 0 {
			return end
		}
	}
	return -1
}

// labels walks the labels at off, behind size octets of the same name, up to the
// root label or pointer that ends them. It returns where that stands, or -1, and
// the octets of the name so far. The first labels of a name may be pointed to.
func (c *Checker) labels(off, size int, first bool) (at, total int) {
	msg := c.r.Msg
	for off < len(msg) {
		if first {
			c.mark(off)
		}
		n := int(msg[off])
		switch {
		case n == 0 || n >= 0xc0:
			return off, size
		case n > MaxLabel || size+n+2 > MaxName:
			return -1, 0
		}
		size += n + 1
		off += n + 1
	}
	return -1, 0
}

func (c *Checker) mark(off int) {
	if off <= maxOffset {
		c.heads[off/64] |= 1 << (off % 64)
	}
}

func (c *Checker) marked(off int) bool {
	return off <= maxOffset && c.heads[off/64]&(1<<(off%64)) != 0
}

// rdata tells whether the RDATA of rec has the layout of its type.
func (c *Checker) rdata(rec *Record) bool {
	switch rec.Type {
	case TypeA:
		return rec.End-rec.RDATA == 4
	case TypeAAAA:
		return rec.End-rec.RDATA == 16
	case TypeCNAME, TypeNS, TypePTR:
		return c.name(rec.RDATA) == rec.End
	}
	off := rec.RDATA
	rdata := c.r.Msg[:rec.End]
	for _, piece := range []byte(layout(rec.Type)) {
		if piece == '*' {
			return true
		}
		if piece == 'c' || piece == 'n' {
			off = c.name(off)
		} else {
			off = pieceEnd(rdata, off, piece)
		}
		if off < 0 || off > len(rdata) {
			return false
		}
	}
	return off == len(rdata)
}

// pieceEnd is the offset behind a piece of a layout that is no name, beyond the
// end of rdata where it is cut.
func pieceEnd(rdata []byte, off int, piece byte) int {
	switch piece {
	case 's':
		if off >= len(rdata) {
			return off + 1
		}
		return off + 1 + int(rdata[off])
	case 't':
		return stringsEnd(rdata, off)
	default:
		return off + int(piece-'0')
	}
}

// AppendRDATA appends the RDATA of a record of msg to dst with its names
// decompressed, as a Builder takes it, but without the length in front. It is
// false where it does not have the layout of its type.
func (rec *Record) AppendRDATA(dst, msg []byte) (rdata []byte, ok bool) {
	off := rec.RDATA
	msg = msg[:rec.End]
	for _, piece := range []byte(layout(rec.Type)) {
		if piece == '*' {
			return append(dst, msg[off:]...), true
		}
		end := 0
		if piece == 'c' || piece == 'n' {
			var buf [MaxName]byte
			var name Name
			if name, end, ok = ReadName(buf[:0], msg, off); !ok {
				return dst, false
			}
			dst = append(dst, name...)
		} else {
			if end = pieceEnd(msg, off, piece); end > len(msg) {
				return dst, false
			}
			dst = append(dst, msg[off:end]...)
		}
		off = end
	}
	return dst, off == len(msg)
}
