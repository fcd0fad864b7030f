package wire

import "encoding/binary"

// Response is a cursor over the records of a message that is well formed. It
// copies nothing.
type Response struct {
	Msg []byte
	off int
	end [4]int // record number behind each section
	i   int
	ok  bool
}

// Record is one record of a message, as offsets into it.
type Record struct {
	Section     Section
	Start, End  int // the whole record
	RDATA       int // start of RDATA, which runs to End
	Type, Class uint16
	TTL         uint32
}

// Read starts a cursor in front of the first record. It is false where the
// header or the question is not whole.
func (r *Response) Read(msg []byte) bool {
	*r = Response{Msg: msg}
	if len(msg) < HeaderSize {
		return false
	}
	off := HeaderSize
	for range binary.BigEndian.Uint16(msg[4:]) {
		if off = SkipName(msg, off); off < 0 || off+4 > len(msg) {
			return false
		}
		off += 4
	}
	r.off = off
	for s := Answer; s <= Additional; s++ {
		r.end[s] = r.end[s-1] + int(binary.BigEndian.Uint16(msg[4+2*int(s):]))
	}
	r.ok = true
	return true
}

// Next reads the next record into rec. It is false at the end, and where the
// message is cut or malformed: Whole tells which.
func (r *Response) Next(rec *Record) bool {
	if !r.ok || r.i == r.end[Additional] {
		return false
	}
	head := SkipName(r.Msg, r.off)
	if head < 0 || head+10 > len(r.Msg) {
		r.ok = false
		return false
	}
	size := int(binary.BigEndian.Uint16(r.Msg[head+8:]))
	if head+10+size > len(r.Msg) {
		r.ok = false
		return false
	}
	s := Answer
	for r.i >= r.end[s] {
		s++
	}
	*rec = Record{
		Section: s, Start: r.off, End: head + 10 + size, RDATA: head + 10,
		Type: binary.BigEndian.Uint16(r.Msg[head:]), Class: binary.BigEndian.Uint16(r.Msg[head+2:]),
		TTL: binary.BigEndian.Uint32(r.Msg[head+4:]),
	}
	r.off = rec.End
	r.i++
	return true
}

// Whole tells, after Next was false, that every record was read and nothing is
// left over.
func (r *Response) Whole() bool {
	return r.ok && r.i == r.end[Additional] && r.off == len(r.Msg)
}
