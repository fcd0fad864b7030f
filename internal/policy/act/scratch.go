package act

import (
	"encoding/binary"
	"sync"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// scratch is a response to what is asked on the client's behalf, where that is not
// what the client has asked: a step has put another name in its place.
type scratch struct {
	query  wire.Query
	reply  wire.Builder
	q, buf []byte
}

var scratches = sync.Pool{New: func() any {
	return &scratch{q: make([]byte, 0, wire.HeaderSize+wire.MaxName+4), buf: make([]byte, wire.MaxMessage)}
}}

// renamed tells whether r's Ask is another question than the client's.
func renamed(r *serve.Request) bool {
	return r.Ask.Type != r.Type || len(r.Ask.Name) != len(r.Name) || !wire.EqualFold(r.Ask.Name, r.Name)
}

// begin starts a response to r's Ask.
func (s *scratch) begin(r *serve.Request) {
	q := append(s.q[:0], 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	q = append(q, r.Ask.Name...)
	q = binary.BigEndian.AppendUint16(q, r.Ask.Type)
	s.q = binary.BigEndian.AppendUint16(q, r.Ask.Class)
	_ = s.query.Parse(s.q) // sound by its making
	s.reply.Begin(&s.query, s.buf)
}
