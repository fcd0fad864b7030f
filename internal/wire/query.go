package wire

import (
	"encoding/binary"
	"errors"
)

// HeaderSize is the length of a message header in octets.
const HeaderSize = 12

// Errors of Query.Parse. On the first two there is nothing to answer.
var (
	ErrShort    = errors.New("message shorter than a header")
	ErrResponse = errors.New("message is a response")
	ErrFormat   = errors.New("malformed query") // answered with FORMERR
)

// Query is a view of a received query: offsets and numbers over its octets.
// Nothing is copied. It is valid as long as Msg is.
type Query struct {
	Msg         []byte
	Name        Name // nil where there is no question
	Hash        uint64
	Type, Class uint16
	ID, Flags   uint16
	EDNS        EDNS
	TSIG        int // offset of the TSIG record, 0 where there is none
	end         int // behind the question
	Suffixes    Labels
}

// EDNS is what the OPT record of a query says (RFC 6891).
type EDNS struct {
	Present bool
	DO      bool
	Version uint8
	Size    uint16 // as it came; below 512 it counts as 512
	Options []byte // RDATA of the OPT record, checked to be well formed
}

// Option is the data of the first option with that code.
func (e *EDNS) Option(code uint16) (data []byte, ok bool) {
	for o := e.Options; len(o) >= 4; {
		n := int(binary.BigEndian.Uint16(o[2:]))
		if binary.BigEndian.Uint16(o) == code {
			return o[4 : 4+n], true
		}
		o = o[4+n:]
	}
	return nil, false
}

// Opcode is the kind of query.
func (q *Query) Opcode() int { return int(q.Flags&opcodeMask) >> opcodeShift }

// Parse makes q a view of msg. Errors are ErrShort, ErrResponse and ErrFormat;
// with ErrFormat the header is set, and Name where the question could be read.
func (q *Query) Parse(msg []byte) error {
	q.Msg, q.Name, q.EDNS, q.TSIG, q.end = msg, nil, EDNS{}, 0, HeaderSize
	q.Type, q.Class, q.Hash, q.Suffixes.N = 0, 0, 0, 0 // of the query before
	if len(msg) < HeaderSize {
		return ErrShort
	}
	q.ID = binary.BigEndian.Uint16(msg)
	q.Flags = binary.BigEndian.Uint16(msg[2:])
	if q.Flags&FlagQR != 0 {
		return ErrResponse
	}
	if binary.BigEndian.Uint16(msg[4:]) != 1 || !q.question() { // RFC 9619: one question
		return ErrFormat
	}
	counts := binary.BigEndian.Uint64(msg[4:]) & 0xffff_ffff_ffff // ANCOUNT, NSCOUNT, ARCOUNT
	if counts == 0 {
		if len(msg) != q.end {
			return ErrFormat
		}
		return nil
	}
	return q.records(int(counts>>32), int(counts>>16&0xffff), int(counts&0xffff))
}

// question reads the one question. Its name cannot be compressed: there is
// nothing in front of it to point to.
func (q *Query) question() bool {
	msg, l := q.Msg, &q.Suffixes
	off, n := HeaderSize, 0
	for {
		if off >= len(msg) {
			return false
		}
		c := int(msg[off])
		if c == 0 {
			break
		}
		if c > MaxLabel || off+c+1 > HeaderSize+MaxName-1 || off+c+1 >= len(msg) {
			return false
		}
		l.Off[n&MaxLabels] = uint8(off - HeaderSize)
		n++
		off += c + 1
	}
	off++
	if off+4 > len(msg) {
		return false
	}
	q.Name = msg[HeaderSize:off:off]
	l.N = n
	l.Off[n&MaxLabels] = uint8(len(q.Name) - 1)
	l.hash(q.Name)
	q.Hash = l.Hash[0]
	q.Type = binary.BigEndian.Uint16(msg[off:])
	q.Class = binary.BigEndian.Uint16(msg[off+2:])
	q.end = off + 4
	return true
}

// records walks the other sections for the OPT record (at most one, in the
// additional section, owned by the root: RFC 6891 §6.1.1) and for TSIG (the
// last: RFC 8945 §5.2).
func (q *Query) records(answer, authority, additional int) error {
	off := q.end
	for i := range answer + authority + additional {
		head := SkipName(q.Msg, off)
		if head < 0 || head+10 > len(q.Msg) {
			return ErrFormat
		}
		size := int(binary.BigEndian.Uint16(q.Msg[head+8:]))
		if head+10+size > len(q.Msg) {
			return ErrFormat
		}
		ok := true
		switch extra := i - answer - authority; binary.BigEndian.Uint16(q.Msg[head:]) {
		case TypeOPT:
			ok = extra >= 0 && q.Msg[off] == 0 && q.opt(head, size)
		case TypeTSIG:
			ok = extra >= 0 && extra == additional-1
			q.TSIG = off
		}
		if !ok {
			return ErrFormat
		}
		off = head + 10 + size
	}
	if off != len(q.Msg) {
		return ErrFormat
	}
	return nil
}

// opt reads the OPT record whose type stands at head. There is one at most.
func (q *Query) opt(head, size int) bool {
	e := &q.EDNS
	if e.Present {
		return false
	}
	e.Present = true
	e.Size = binary.BigEndian.Uint16(q.Msg[head+2:])
	e.Version = q.Msg[head+5]
	e.DO = q.Msg[head+6]&0x80 != 0
	o := q.Msg[head+10 : head+10+size]
	e.Options = o
	for len(o) > 0 {
		if len(o) < 4 {
			return false
		}
		n := int(binary.BigEndian.Uint16(o[2:]))
		if 4+n > len(o) {
			return false
		}
		o = o[4+n:]
	}
	return true
}

// Rebase makes q the same view of msg, a copy of the message it was parsed from.
func (q *Query) Rebase(msg []byte) {
	if q.Name != nil {
		end := HeaderSize + len(q.Name)
		q.Name = msg[HeaderSize:end:end]
	}
	if n := len(q.EDNS.Options); n > 0 {
		off := cap(q.Msg) - cap(q.EDNS.Options) // both run to the end of the same memory
		q.EDNS.Options = msg[off : off+n]
	}
	q.Msg = msg
}
