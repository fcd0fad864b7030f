// Package qlog is the log of queries. Every reader of queries writes a compact
// record of each into a ring of its own; whoever keeps the log drains the rings.
// It never makes a reader wait.
package qlog

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// headSize is the fixed part of a record; the name follows, and padding to a
// multiple of eight octets.
const headSize = 64

// maxRecord is the longest record.
const maxRecord = headSize + 256

// Record is one query as the log has it.
type Record struct {
	At          time.Duration // arrival, monotonic, since the process started
	Client      netip.AddrPort
	Name        wire.Name // valid until the drain goes on
	Type, Class uint16
	Rcode       wire.Rcode
	Flags       uint16 // of the query
	Proto       serve.Proto
	Source      serve.Source
	Listener    uint16
	Rule        uint16
	EDE         uint16
	QuerySize   uint16
	Size        uint16 // of the response
	DO          bool
}

// put writes the record of r at the start of b and returns its length, which is
// a multiple of eight. b has room for maxRecord octets.
func put(b []byte, r *serve.Request) int {
	size := (headSize + len(r.Name) + 7) &^ 7
	b = b[:size]
	le := binary.LittleEndian
	le.PutUint64(b[0:], uint64(size)|uint64(r.Type)<<16|uint64(r.Class)<<32|uint64(r.Note.Rcode)<<48)
	le.PutUint64(b[8:], uint64(r.At))
	addr := r.Client.Addr().As16()
	copy(b[16:32], addr[:])
	le.PutUint64(b[32:], uint64(r.Client.Port())|uint64(r.Note.Rule)<<16|uint64(len(r.Msg))<<32|uint64(r.Note.Size)<<48)
	do := uint64(0)
	if r.EDNS.DO {
		do = 1
	}
	le.PutUint64(b[40:], uint64(r.Flags)|uint64(r.Note.EDE)<<16|uint64(r.Peer.Index)<<32|do<<48)
	le.PutUint64(b[48:], uint64(len(r.Name))|uint64(r.Peer.Proto)<<8|uint64(r.Note.Source)<<16)
	le.PutUint64(b[56:], 0)
	copy(b[headSize:], r.Name)
	return size
}

// get reads the record at the start of b.
func get(b []byte) (rec Record, size int) {
	le := binary.LittleEndian
	w0, w4, w5, w6 := le.Uint64(b), le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])
	return Record{
		At:       time.Duration(le.Uint64(b[8:])),
		Client:   netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[16:32])).Unmap(), uint16(w4)),
		Name:     b[headSize : headSize+int(w6&0xff)],
		Type:     uint16(w0 >> 16),
		Class:    uint16(w0 >> 32),
		Rcode:    wire.Rcode(w0 >> 48),
		Flags:    uint16(w5),
		Proto:    serve.Proto(w6 >> 8),
		Source:   serve.Source(w6 >> 16),
		Listener: uint16(w5 >> 32),
		Rule:     uint16(w4 >> 16),
		EDE:      uint16(w5 >> 16), QuerySize: uint16(w4 >> 32), Size: uint16(w4 >> 48),
		DO: w5>>48 != 0,
	}, int(w0 & 0xffff)
}
