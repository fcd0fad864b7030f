package serve

import (
	"errors"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Received is what a message turned out to be.
type Received uint8

// What Receive says.
const (
	Query    Received = iota // a query for the Handler
	Answered                 // malformed: its answer is in Out
	Short                    // less than a header: dropped
	Reply                    // a response: never answered
)

// Receive reads msg, as every listener does first. The response will be written
// into out. Malformed queries are answered here, with FORMERR, or with NOTIMP
// where the opcode is one whose form we do not know (RFC 8906 §3.1.4).
func (r *Request) Receive(msg, out []byte) Received {
	err := r.Parse(msg)
	switch {
	case err == nil:
		r.Start(out)
		return Query
	case errors.Is(err, wire.ErrShort):
		return Short
	case errors.Is(err, wire.ErrResponse):
		return Reply
	}
	r.EDNS = wire.EDNS{}
	r.Start(out)
	r.Note.Source = SourceError
	if r.Opcode() != wire.OpQuery {
		r.Finish(wire.NotImp)
	} else {
		r.Finish(wire.FormErr)
	}
	return Answered
}
