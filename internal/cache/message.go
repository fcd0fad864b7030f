package cache

import (
	"encoding/binary"
	"sync"

	"github.com/waymark-dns/waymark/internal/wire"
)

// form is a message as it is stored, and where its TTLs stand, two octets each,
// the low one first.
type form struct {
	msg, ttlAt []byte
	soa        int // where the TTL of the authority's SOA stands, 0 where there is none
}

// reading is the work on one response: what was learnt of it, and the forms it is
// stored in. It is memory to be used again; what it holds is valid until then.
type reading struct {
	check wire.Checker
	msg   []byte
	rcode wire.Rcode
	ad    bool
	ede   uint16

	// From the records.
	qtype    uint16
	end      int // offset of the name that the chain of CNAMEs has led to
	chain    int // CNAMEs followed
	answered bool
	opt      optAt
	signed   bool // there are records that only the DNSSEC form has
	negative bool
	life     uint32 // the smallest TTL, clamped

	full, plain form
	made        bool // the forms are there
	writer      writer
}

// optAt is where the OPT record stands; start is 0 where there is none.
type optAt struct{ start, rdata, end int }

// readings are reading values at rest.
type readings struct{ pool sync.Pool }

func (p *readings) get() *reading {
	if r, ok := p.pool.Get().(*reading); ok {
		return r
	}
	return new(reading)
}

func (p *readings) put(r *reading) {
	r.msg = nil
	p.pool.Put(r)
}

// limits is what a Config says of lives, in seconds.
type limits struct {
	min, max, negative uint32
	loose              bool
}

// clamp is the life that a TTL means: with the top bit set none (RFC 2181 §8),
// else as long as the limits let it.
func (l *limits) clamp(ttl uint32) uint32 {
	if ttl > maxTTL {
		ttl = 0
	}
	return min(max(ttl, l.min), l.max)
}

// failureTTL is the life of SERVFAIL in seconds: RFC 9520 §3.2 wants at least 1 s
// and at most 5 min; this is short enough that nobody waits for it to end.
const failureTTL = 5

// read reads the response msg to the question k and makes its forms. The result
// is Kept where it may be stored.
func (r *reading) read(k *Key, msg []byte, l *limits) Stored {
	if result := r.header(k, msg); result != Kept {
		return result
	}
	if result := r.records(l); result != Kept {
		return result
	}
	flags := binary.BigEndian.Uint16(msg[2:])
	r.rcode = wire.Rcode(flags & 15)
	if r.opt.start > 0 {
		r.rcode |= wire.Rcode(msg[r.opt.rdata-6]) << 4
		r.ede = extended(msg[r.opt.rdata:r.opt.end])
	}
	r.ad = flags&wire.FlagAD != 0
	switch r.rcode {
	case wire.ServFail:
		return r.failure()
	case wire.NoError, wire.NXDomain:
	default:
		return NotCacheable
	}
	r.negative = r.rcode == wire.NXDomain || !r.answered && !r.follow()
	if l.loose {
		r.lax()
	}
	result := r.forms(l)
	if flags&wire.FlagTC != 0 || r.negative && r.full.soa == 0 { // RFC 2308 §2.2, §5: also a referral
		return NotCacheable
	}
	return result
}

// What negative responses live where limits are loose, in seconds.
const (
	looseNXDomain = 30
	looseEmpty    = 300
)

// lax lets negative responses live without SOA.
func (r *reading) lax() {
	switch {
	case r.rcode == wire.NXDomain:
		r.life = looseNXDomain
	case len(r.full.ttlAt) == 0:
		r.life = 0
	case binary.BigEndian.Uint16(r.msg[6:]) == 0:
		r.life = min(r.life, looseEmpty)
	}
	r.negative = false
}

// header checks header and question.
func (r *reading) header(k *Key, msg []byte) Stored {
	r.msg, r.ede, r.opt = msg, 0, optAt{}
	r.end, r.chain, r.answered, r.signed, r.made = wire.HeaderSize, 0, false, false, false
	r.qtype = k.Type
	if !r.check.Read(msg) {
		return Malformed
	}
	const opcode = 15 << 11
	name, typ, class := r.check.Question()
	if binary.BigEndian.Uint16(msg[2:])&(wire.FlagQR|opcode) != wire.FlagQR ||
		typ != k.Type || class != k.Class || !wire.EqualFold(name, k.Name) {
		return Malformed
	}
	switch typ {
	case wire.TypeOPT, wire.TypeTSIG, wire.TypeIXFR, wire.TypeAXFR:
		return NotCacheable
	}
	return Kept
}

// records reads all records and notes where their TTLs stand.
func (r *reading) records(l *limits) Stored {
	r.life = l.max
	r.full.ttlAt, r.full.soa = r.full.ttlAt[:0], 0
	var rec wire.Record
	transaction := false
	for r.check.Next(&rec) {
		switch {
		case rec.Type == wire.TypeOPT:
			if rec.Section != wire.Additional || r.opt.start > 0 || r.msg[rec.Start] != 0 {
				return Malformed // RFC 6891 §6.1.1
			}
			r.opt = optAt{rec.Start, rec.RDATA, rec.End}
			continue
		case rec.Type == wire.TypeTSIG:
			transaction = true
		case rec.Section == wire.Answer:
			r.answer(&rec)
		case rec.Section == wire.Authority && rec.Type == wire.TypeSOA && r.full.soa == 0:
			r.full.soa = rec.RDATA - 6
			rec.TTL = min(rec.TTL, binary.BigEndian.Uint32(r.msg[rec.End-4:]))
		}
		if r.isExtra(rec.Type) {
			r.signed = true
		}
		r.life = min(r.life, l.clamp(rec.TTL))
		r.full.ttlAt = binary.LittleEndian.AppendUint16(r.full.ttlAt, uint16(rec.RDATA-6))
	}
	switch {
	case !r.check.Whole():
		return Malformed
	case transaction:
		return NotCacheable // a signature of one transaction (RFC 8945 §5.3)
	}
	return Kept
}

// answer follows the chain of CNAMEs and sees whether it ends in an answer.
func (r *reading) answer(rec *wire.Record) {
	all := r.qtype == wire.TypeANY
	if rec.Type != r.qtype && rec.Type != wire.TypeCNAME && !all || !r.check.Same(r.check.Owner, r.end) {
		return
	}
	if rec.Type == r.qtype || all {
		r.answered = true
	} else {
		r.end = rec.RDATA
		r.chain++
	}
}

// maxChain is the longest chain of CNAMEs that is followed where they are not in
// order.
const maxChain = 16

// follow does what answer did, for records that are not in the order of the chain.
func (r *reading) follow() bool {
	for range maxChain {
		before := r.chain
		var rec wire.Record
		var cursor wire.Response
		cursor.Read(r.msg)
		for cursor.Next(&rec) && rec.Section == wire.Answer && !r.answered {
			r.check.Owner = r.check.Start(rec.Start)
			r.answer(&rec)
		}
		if r.answered || r.chain == before {
			break
		}
	}
	return r.answered
}

// isExtra tells whether only clients that want DNSSEC records get those of a type
// (RFC 4035 §3.2.1): not where it was asked for.
func (r *reading) isExtra(t uint16) bool {
	return (t == wire.TypeRRSIG || t == wire.TypeNSEC || t == wire.TypeNSEC3) && t != r.qtype && r.qtype != wire.TypeANY
}

// extended is the first extended error of an OPT record's options, plus one.
func extended(options []byte) uint16 {
	for len(options) >= 4 {
		n := int(binary.BigEndian.Uint16(options[2:]))
		if 4+n > len(options) {
			return 0
		}
		if binary.BigEndian.Uint16(options) == wire.OptEDE && n >= 2 {
			return binary.BigEndian.Uint16(options[4:]) + 1
		}
		options = options[4+n:]
	}
	return 0
}
