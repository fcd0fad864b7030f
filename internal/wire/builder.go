package wire

import "encoding/binary"

// Section is a section of a message, as an index of its count in the header.
type Section uint8

// The sections that hold records.
const (
	Answer     Section = 1
	Authority  Section = 2
	Additional Section = 3
)

// RRset is the records of one owner, type and class as the wire has them.
type RRset struct {
	Type, Class uint16
	TTL         uint32
	Count       int
	RDATA       []byte // each record's length (two octets) and RDATA, uncompressed, checked with CheckRDATA
}

// optSize is an OPT record without options.
const optSize = 11

// Builder writes one response into a buffer that it does not own. The order is
// Begin, Add as often as wanted, End, and Fit just before sending. One Builder
// serves one goroutine and is used again for the next response; it allocates
// nothing.
type Builder struct {
	Flags    uint16 // AA, TC, RA, AD, CD of the response; End adds the rest
	Referral bool   // the response delegates: glue below the zone cut has to fit

	q      *Query
	gen    uint32 // of responses begun
	buf    []byte
	n      int
	full   bool
	counts [4]uint16
	rcode  Rcode
	opts   int       // octets used of opt
	opt    [512]byte // options of the OPT record to come
	dict   dictionary
}

// Begin starts a response to q in buf: header and question, letters as they
// came (RFC 4343). buf is the whole room that the response may take, at least
// MinBuffer octets.
func (b *Builder) Begin(q *Query, buf []byte) {
	b.q, b.buf, b.Flags, b.Referral = q, buf, 0, false
	b.gen++
	b.full, b.opts, b.rcode = false, 0, 0
	b.counts = [4]uint16{}
	b.dict.used = 0
	b.n = HeaderSize
	if q.Name != nil {
		b.counts[0] = 1
		b.n = HeaderSize + copy(buf[HeaderSize:], q.Msg[HeaderSize:q.end])
	}
}

// Generation is another for each response that was begun: it tells whether a
// response is still the one that it was.
func (b *Builder) Generation() uint32 { return b.gen }

// MinBuffer is room enough for header, question, and OPT with all options.
const MinBuffer = HeaderSize + MaxName + 4 + optSize + 512

// Truncated tells whether something that the client needs did not fit.
func (b *Builder) Truncated() bool { return b.full }

// Len is the octets written so far.
func (b *Builder) Len() int { return b.n }

// Count is the records that a section has so far.
func (b *Builder) Count(s Section) int { return int(b.counts[s]) }

// Add writes set, owned by owner, into section s, with sigs behind it where
// sigs is not nil. It is all or nothing: where both do not fit, nothing is
// written and the result is false; outside the additional section Truncated
// tells it from then on, and nothing more is taken. Sections are filled in
// their order. Neither owner nor the sets are kept.
func (b *Builder) Add(s Section, owner Name, set, sigs *RRset) bool {
	if b.full {
		return false
	}
	n, used, count := b.n, b.dict.used, b.counts[s]
	if b.set(s, owner, set) && (sigs == nil || b.set(s, owner, sigs)) {
		return true
	}
	b.n, b.counts[s] = n, count
	b.dict.forget(used)
	if s != Additional {
		b.full = true
	}
	return false
}

// Truncate notes that something the client needs is missing: Fit will set TC.
func (b *Builder) Truncate() { b.full = true }

// set writes the records of one RRset. A record fits where it would fit
// uncompressed, so no more than what its names save is left unused.
func (b *Builder) set(s Section, owner Name, set *RRset) bool {
	rdata, room := set.RDATA, len(b.buf)-b.reserve()
	skip, names := compressible(set.Type)
	at := 0 // where the owner stands, from the second record on
	for range set.Count {
		size := int(binary.BigEndian.Uint16(rdata))
		if at == 0 {
			if b.n+len(owner)+10+size > room {
				return false
			}
			at = b.name(owner)
		} else {
			if b.n+2+10+size > room {
				return false
			}
			b.pointer(at)
		}
		o := b.buf[b.n : b.n+10]
		binary.BigEndian.PutUint32(o, uint32(set.Type)<<16|uint32(set.Class))
		binary.BigEndian.PutUint32(o[4:], set.TTL)
		binary.BigEndian.PutUint16(o[8:], uint16(size))
		b.n += 10
		if names == 0 {
			b.n += copy(b.buf[b.n:], rdata[2:2+size])
		} else {
			start := b.n
			b.names(rdata[2:2+size], skip, names)
			binary.BigEndian.PutUint16(o[8:], uint16(b.n-start))
		}
		rdata = rdata[2+size:]
	}
	b.counts[s] += uint16(set.Count)
	return true
}

// names writes RDATA with its names compressed: skip octets, count names, the
// rest.
func (b *Builder) names(rdata []byte, skip, count int) {
	b.n += copy(b.buf[b.n:], rdata[:skip])
	rdata = rdata[skip:]
	for range count {
		end := UncompressedEnd(rdata, 0)
		b.name(Name(rdata[:end]))
		rdata = rdata[end:]
	}
	b.n += copy(b.buf[b.n:], rdata)
}

// name writes a name, compressed (RFC 1035 §4.1.4), and returns an offset that
// a pointer to it may have, or 0 where there is none. Owners are mostly the
// question's name or an ancestor of it: that costs one comparison.
func (b *Builder) name(n Name) int {
	if q := b.q.Name; len(n) <= len(q) && len(n) > 1 && &n[0] == &q[len(q)-len(n)] {
		at := HeaderSize + len(q) - len(n)
		b.pointer(at)
		return at
	}
	return b.compress(n)
}

// Option adds an option to the response's OPT record. Room for it is reserved
// from now on. It is false where the query had no OPT or the options are full.
func (b *Builder) Option(code uint16, data []byte) bool {
	if !b.q.EDNS.Present || b.opts+4+len(data) > len(b.opt) {
		return false
	}
	o := b.opt[b.opts:]
	binary.BigEndian.PutUint16(o, code)
	binary.BigEndian.PutUint16(o[2:], uint16(len(data)))
	copy(o[4:], data)
	b.opts += 4 + len(data)
	return true
}

// CopyOptions takes over the options that from has, as when a request moves to
// memory of its own.
func (b *Builder) CopyOptions(from *Builder) {
	b.opts = copy(b.opt[:], from.opt[:from.opts])
}

// Smaller tells whether the buffer has room for less than n octets.
func (b *Builder) Smaller(n int) bool { return len(b.buf) < n }

// Move begins the response anew in another buffer. Options and the flag RA stay.
func (b *Builder) Move(buf []byte) {
	opts, ra := b.opts, b.Flags&FlagRA
	b.Begin(b.q, buf)
	b.opts, b.Flags = opts, ra
}

// Restart begins the response anew. Options and the flag RA stay.
func (b *Builder) Restart() { b.Move(b.buf) }

// reserve is the octets that End and Fit will need behind the records.
func (b *Builder) reserve() int {
	if b.q.EDNS.Present {
		return optSize + b.opts
	}
	return 0
}

// End writes the header and returns the response, whole, without its OPT
// record: what after-hooks and the cache see.
func (b *Builder) End(rcode Rcode) []byte {
	b.rcode = rcode
	b.header()
	return b.buf[:b.n]
}

func (b *Builder) header() {
	h := b.buf[:HeaderSize]
	// RD is copied, all else of the query's flags is ignored: an authoritative
	// response has CD clear (RFC 4035 §3.1.6).
	flags := FlagQR | b.q.Flags&(opcodeMask|FlagRD) | b.Flags | uint16(b.rcode&15)
	binary.BigEndian.PutUint32(h, uint32(b.q.ID)<<16|uint32(flags))
	binary.BigEndian.PutUint32(h[4:], uint32(b.counts[0])<<16|uint32(b.counts[1]))
	binary.BigEndian.PutUint32(h[8:], uint32(b.counts[2])<<16|uint32(b.counts[3]))
}

// Rcode is what End was given.
func (b *Builder) Rcode() Rcode { return b.rcode }
