package cache

import (
	"encoding/binary"

	"github.com/waymark-dns/waymark/internal/wire"
)

// failure makes the form of SERVFAIL: header and question (RFC 9520 §3.2).
func (r *reading) failure() Stored {
	name, _, _ := r.check.Question()
	r.full.msg = append(r.full.msg[:0], r.msg[:wire.HeaderSize+len(name)+4]...)
	r.full.ttlAt = r.full.ttlAt[:0]
	clear(r.full.msg[6:wire.HeaderSize])
	r.ad, r.signed, r.negative, r.life = false, false, true, failureTTL
	r.stamp(&r.full)
	return Kept
}

// forms makes the message without OPT, and where that has records that only some
// clients get, the one without them.
func (r *reading) forms(l *limits) Stored {
	if r.negative {
		r.life = min(r.life, l.negative)
	}
	if r.opt.start > 0 && r.opt.end < len(r.msg) {
		// Records behind the OPT record move: the message is written again.
		if !r.rewrite(&r.full, r.msg, false) {
			return NoRoom
		}
	} else {
		end := len(r.msg)
		if r.opt.start > 0 {
			end = r.opt.start
		}
		r.full.msg = append(r.full.msg[:0], r.msg[:end]...)
		if r.opt.start > 0 {
			additional := r.full.msg[10:12]
			binary.BigEndian.PutUint16(additional, binary.BigEndian.Uint16(additional)-1)
		}
	}
	if r.signed && !r.rewrite(&r.plain, r.full.msg, true) {
		return NoRoom
	}
	r.settle(&r.full, l)
	if r.signed {
		r.settle(&r.plain, l)
	}
	r.made = true
	if r.life == 0 {
		return NotCacheable
	}
	return Kept
}

// settle sets the TTLs of a form to what they may be, and its header.
func (r *reading) settle(f *form, l *limits) {
	for at := f.ttlAt; len(at) >= 2; at = at[2:] {
		ttl := f.msg[binary.LittleEndian.Uint16(at):]
		binary.BigEndian.PutUint32(ttl, l.clamp(binary.BigEndian.Uint32(ttl)))
	}
	if r.negative && f.soa > 0 {
		r.minimum(f, l)
	}
	r.stamp(f)
}

// minimum sets the TTL of the SOA to what a negative response lives (RFC 2308 §3,
// §5).
func (r *reading) minimum(f *form, l *limits) {
	head := f.msg[f.soa:]
	end := 6 + int(binary.BigEndian.Uint16(head[4:]))
	ttl := min(binary.BigEndian.Uint32(head), l.clamp(binary.BigEndian.Uint32(head[end-4:])), l.negative)
	binary.BigEndian.PutUint32(head, ttl)
}

// stamp sets the header of a form but for the counts: no AA, for the data is no
// longer its owner's, and nothing of the transaction.
func (r *reading) stamp(f *form) {
	flags := uint16(wire.FlagQR) | uint16(r.rcode&15)
	if r.ad {
		flags |= wire.FlagAD
	}
	binary.BigEndian.PutUint32(f.msg, uint32(flags))
}

// writer writes a message without some of its records.
type writer struct {
	question []byte
	query    wire.Query
	reply    wire.Builder
	owner    [wire.MaxName]byte
	rdata    []byte
}

// rewrite makes f a copy of msg without OPT, and without the records that only
// some clients get where plain is set. It is false where there is no room.
func (r *reading) rewrite(f *form, msg []byte, plain bool) bool {
	w := &r.writer
	if !w.begin(&r.check, f, msg) {
		return false
	}
	var rec wire.Record
	var cursor wire.Response
	cursor.Read(msg)
	for cursor.Next(&rec) {
		if rec.Type == wire.TypeOPT || plain && r.isExtra(rec.Type) {
			continue
		}
		if !w.add(&rec, msg) {
			return false
		}
	}
	f.msg = w.reply.End(wire.NoError)
	f.ttlAt, f.soa = f.ttlAt[:0], 0
	cursor.Read(f.msg)
	for cursor.Next(&rec) {
		if rec.Section == wire.Authority && rec.Type == wire.TypeSOA && f.soa == 0 {
			f.soa = rec.RDATA - 6
		}
		f.ttlAt = binary.LittleEndian.AppendUint16(f.ttlAt, uint16(rec.RDATA-6))
	}
	return true
}

// begin starts a response to the question of msg in the memory of f.
func (w *writer) begin(c *wire.Checker, f *form, msg []byte) bool {
	name, _, _ := c.Question()
	w.question = append(w.question[:0], msg[:wire.HeaderSize+len(name)+4]...)
	clear(w.question[:wire.HeaderSize])
	w.question[5] = 1
	if w.query.Parse(w.question) != nil {
		return false
	}
	if cap(f.msg) < wire.MaxMessage {
		f.msg = make([]byte, wire.MaxMessage)
	}
	w.reply.Begin(&w.query, f.msg[:wire.MaxMessage])
	return true
}

// add adds a record of msg.
func (w *writer) add(rec *wire.Record, msg []byte) bool {
	owner, ok := w.query.Name, true
	// Most owners are the question's name, which a Builder knows by its memory.
	if msg[rec.Start] != 0xc0 || msg[rec.Start+1] != wire.HeaderSize {
		if owner, _, ok = wire.ReadName(w.owner[:0], msg, rec.Start); !ok {
			return false
		}
	}
	w.rdata, ok = rec.AppendRDATA(append(w.rdata[:0], 0, 0), msg)
	n := len(w.rdata) - 2
	if !ok || n > wire.MaxMessage {
		return false
	}
	binary.BigEndian.PutUint16(w.rdata, uint16(n))
	set := wire.RRset{Type: rec.Type, Class: rec.Class, TTL: rec.TTL, Count: 1, RDATA: w.rdata}
	return w.reply.Add(rec.Section, owner, &set, nil)
}
