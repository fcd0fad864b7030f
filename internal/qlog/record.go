// Package qlog is the log of queries. Every reader of queries writes a compact
// record of each into a ring of its own; whoever keeps the log drains the rings,
// appends what came to a tail file each second, and makes Parquet segments of that.
// It never makes a reader wait. Searching is package search's, sending elsewhere
// package sink's; app opens the log.
package qlog

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

const (
	headSize   = 64 // the fixed part of a record; name, addresses and ECS follow, and padding to eight octets
	maxAnswers = 4
	maxECS     = 20 // octets of the option's data (RFC 7871 §6)

	// maxRecord is more than the longest record and a stamp behind it.
	maxRecord = headSize + 256 + maxAnswers*16 + maxECS + 4 + stampSize

	stampSize = 16
	stampMark = 4 // in place of a size, which is a multiple of eight
)

// Record is one query as it comes out of a ring. What it points to is valid until
// the drain goes on.
type Record struct {
	At      time.Duration // arrival, monotonic, since the process started
	Latency time.Duration // until the response was ready to send
	Hash    uint64        // of the folded name
	Name    wire.Name     // as the client wrote it
	Answers []byte        // addresses, one behind the other
	ECS     []byte        // data of the client's option, empty where there was none
	Client  [16]byte
	Port    uint16

	// The rest are numbers in words as the ring has them.
	what, where, how uint64
	QuerySize, Size  uint16
	families         uint8 // how many answers, and from bit 4 on which are IPv6
}

// The parts of the words of a Record. A word is kept whole so that what is the same
// for many queries can be looked up at once.
func (r *Record) kind() kindKey {
	return kindKey{r.what, r.where, r.how}
}

// Addr is the client's address.
func (r *Record) Addr() netip.Addr { return netip.AddrFrom16(r.Client).Unmap() }

// EachAnswer calls do for each address.
func (r *Record) EachAnswer(do func(a netip.Addr)) {
	rest := r.Answers
	for i := range int(r.families & 15) {
		size := 4
		if r.families&(16<<i) != 0 {
			size = 16
		}
		a, _ := netip.AddrFromSlice(rest[:size])
		do(a)
		rest = rest[size:]
	}
}

// put writes the record of r at the start of b and returns its length, which is
// a multiple of eight. b has room for maxRecord octets.
func put(b []byte, r *serve.Request, answers bool) int {
	n := headSize + copy(b[headSize:headSize+256], r.Name)
	families := uint8(0)
	if answers && r.Out != nil {
		var size int
		size, families = putAnswers(b[n:n+maxAnswers*16], r)
		n += size
	}
	ecs := 0
	if r.EDNS.Present {
		if data, ok := r.EDNS.Option(wire.OptECS); ok && len(data) <= maxECS {
			ecs = copy(b[n:n+maxECS], data)
			n += ecs
		}
	}
	size := (n + 7) &^ 7
	le := binary.LittleEndian
	do := uint64(0)
	if r.EDNS.DO {
		do = 1
	}
	le.PutUint64(b[0:], uint64(size)|uint64(r.Client.Port())<<16|uint64(len(r.Msg))<<32|uint64(r.Note.Size)<<48)
	le.PutUint64(b[8:], uint64(r.At))
	addr := r.Client.Addr().As16()
	copy(b[16:32], addr[:])
	le.PutUint64(b[32:], uint64(r.Type)|uint64(r.Class)<<16|uint64(r.Note.Rcode)<<32|uint64(r.Note.Flags)<<48)
	le.PutUint64(b[40:], uint64(r.Note.Rule)|uint64(r.Note.EDE)<<16|uint64(r.Peer.Index)<<32|uint64(r.Note.Upstream)<<48)
	le.PutUint64(b[48:], uint64(r.Peer.Proto)|uint64(r.Note.Source)<<8|do<<16|uint64(len(r.Name))<<32|uint64(families)<<40|uint64(ecs)<<48)
	le.PutUint64(b[56:], r.Hash)
	return size
}

// putAnswers writes the first addresses in the answer section of r's response,
// which repeats the question. It returns how many octets they are.
func putAnswers(b []byte, r *serve.Request) (size int, families uint8) {
	msg := r.Out
	off := wire.HeaderSize
	if len(msg) < off {
		return 0, 0
	}
	for range binary.BigEndian.Uint16(msg[4:]) {
		if off = wire.SkipName(msg, off); off < 0 || off+4 > len(msg) {
			return 0, 0
		}
		off += 4
	}
	count := uint8(0)
	for left := binary.BigEndian.Uint16(msg[6:]); left > 0 && count < maxAnswers; left-- {
		var rdata []byte
		if rdata, off = address(msg, off); off < 0 {
			break
		}
		if len(rdata) == 16 {
			families |= 16 << count
		}
		if len(rdata) > 0 {
			size += copy(b[size:], rdata)
			count++
		}
	}
	return size, families | count
}

// address is the RDATA of the record at off where that is an address, and what comes
// behind the record: below 0 where it is not whole.
func address(msg []byte, off int) (rdata []byte, next int) {
	if off = wire.SkipName(msg, off); off < 0 || off+10 > len(msg) {
		return nil, -1
	}
	typ, class := binary.BigEndian.Uint16(msg[off:]), binary.BigEndian.Uint16(msg[off+2:])
	begin, end := off+10, off+10+int(binary.BigEndian.Uint16(msg[off+8:]))
	if end > len(msg) {
		return nil, -1
	}
	if class == wire.ClassIN && (typ == wire.TypeA && end-begin == 4 || typ == wire.TypeAAAA && end-begin == 16) {
		return msg[begin:end], end
	}
	return nil, end
}

// get reads the record at the start of b.
func get(b []byte, rec *Record) (size int) {
	le := binary.LittleEndian
	w0, w6 := le.Uint64(b), le.Uint64(b[48:])
	rec.At = time.Duration(le.Uint64(b[8:]))
	rec.Client = [16]byte(b[16:32])
	rec.Port, rec.QuerySize, rec.Size = uint16(w0>>16), uint16(w0>>32), uint16(w0>>48)
	rec.what, rec.where, rec.how = le.Uint64(b[32:]), le.Uint64(b[40:]), w6&0xffffff
	rec.Hash = le.Uint64(b[56:])
	n := headSize + int(w6>>32&0xff)
	rec.Name = b[headSize:n:n]
	rec.families = uint8(w6 >> 40)
	answers := 0
	for i := range int(rec.families & 15) {
		if rec.families&(16<<i) != 0 {
			answers += 12
		}
		answers += 4
	}
	rec.Answers = b[n : n+answers : n+answers]
	n += answers
	rec.ECS = b[n : n+int(w6>>48&0xff)]
	return int(w0 & 0xffff)
}
