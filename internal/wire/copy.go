package wire

import "encoding/binary"

// Adopt makes b the response that from is, which was begun for a query with the
// same question: records, flags and code. Where it does not fit nothing is copied,
// and Truncated tells it. End has to follow.
func (b *Builder) Adopt(from *Builder) {
	b.Restart()
	b.Flags, b.Referral = from.Flags, from.Referral
	if from.n+b.reserve() > len(b.buf) {
		b.full = true
		return
	}
	b.full = from.full
	b.n = b.q.end + copy(b.buf[b.q.end:], from.buf[b.q.end:from.n])
	b.counts = from.counts
}

// AddMessage adds the records of msg, a whole and sound message, whose question
// may be another: owners and RDATA are read and written anew. OPT records are left
// out. It is false where a record is malformed; Truncated tells where one did not
// fit.
func (b *Builder) AddMessage(msg []byte) bool {
	var cursor Response
	if !cursor.Read(msg) {
		return false
	}
	var rec Record
	var name [MaxName]byte
	rdata := make([]byte, 0, 512)
	for cursor.Next(&rec) {
		if rec.Type == TypeOPT {
			continue
		}
		owner, _, ok := ReadName(name[:0], msg, rec.Start)
		if !ok {
			return false
		}
		if rdata, ok = rec.AppendRDATA(append(rdata[:0], 0, 0), msg); !ok || len(rdata)-2 > MaxMessage {
			return false
		}
		binary.BigEndian.PutUint16(rdata, uint16(len(rdata)-2))
		b.Add(rec.Section, owner, &RRset{Type: rec.Type, Class: rec.Class, TTL: rec.TTL, Count: 1, RDATA: rdata}, nil)
	}
	return cursor.Whole()
}
