// Package explain runs one question through a running configuration and tells every
// step of it. It asks the same Handler as clients do, with a trace; what it asks
// for is really asked: upstreams see it, and caches learn from it. It opens no
// socket and knows no configuration.
package explain

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Question is what to explain.
type Question struct {
	Name   wire.Name
	Type   uint16
	Client netip.AddrPort // who asks
	Local  netip.AddrPort // where it is asked
	Peer   *serve.Peer    // of the listener
	DO, CD bool           // flags that the client sets

	anybody bool // nobody said who asks
}

// Report is what became of the question.
type Report struct {
	Steps    []serve.TraceStep
	Response []byte // as the client would get it; nil where it would get none
	Note     serve.Note
	Time     time.Duration // from the query to the response
}

// Config is what a question runs through.
type Config struct {
	Handler serve.Handler
	Now     func() time.Duration // monotonic, of the server
	UDPSize uint16               // largest response over UDP
}

// ErrGone is a question that did not end in time.
var ErrGone = errors.New("the question was given up before it had an answer")

// offered is the size of responses that the query takes over UDP, as stub resolvers
// offer it.
const offered = 1232

// Run asks q and waits for the response, until ctx ends. It may be called by many at
// once.
func (c Config) Run(ctx context.Context, q Question) (*Report, error) {
	a := &asking{h: c.Handler, went: make(chan serve.Status, 1)}
	a.req.Client, a.req.Local, a.req.Peer = q.Client, q.Local, q.Peer
	a.req.At = c.Now()
	if a.req.Receive(message(q), make([]byte, wire.MaxMessage+1)) != serve.Query {
		return nil, fmt.Errorf("asking %s: it does not fit a query", q.Name)
	}
	a.req.Trace = serve.NewTrace(c.Now)
	a.req.Trace.Say("listener", "", "%s, client %s", q.Peer.Listener, q.Client)
	r, status, err := a.ask(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{Time: c.Now() - a.req.At}
	if status == serve.Done {
		whole := len(r.Out)
		report.Response = r.Fit(c.UDPSize)
		if r.Note.Flags&wire.FlagTC != 0 {
			r.Trace.Say("response", "", "cut from %d octets: the client takes %d over %s", whole, offered, q.Peer.Proto)
		}
	}
	report.Note, report.Steps = r.Note, r.Trace.Steps()
	return report, nil
}

// asking is a question that runs. The request that goes on behind Wait is a copy, as
// of any client.
type asking struct {
	h          serve.Handler
	req, waits serve.Request
	went       chan serve.Status // what Start said, but for Pending
}

// Wake is part of serve.Waker.
func (a *asking) Wake() {
	if status := a.h.Start(&a.waits); status != serve.Pending {
		a.went <- status // there is room: nobody wakes it again before this is taken
	}
}

// ask asks until there is an answer.
func (a *asking) ask(ctx context.Context) (*serve.Request, serve.Status, error) {
	status := a.h.Serve(&a.req)
	if status != serve.Wait {
		return &a.req, status, nil
	}
	r := &a.waits
	a.req.Detach(r, make([]byte, len(a.req.Msg)), make([]byte, wire.MaxMessage+1))
	r.Waker = a
	a.Wake()
	for {
		select {
		case status = <-a.went:
		case <-ctx.Done():
			return nil, 0, ErrGone // r stays with whoever will wake it
		}
		if status == serve.Wait {
			status = a.h.Resume(ctx, r)
		}
		if status != serve.Pending {
			return r, status, nil
		}
	}
}

// message is the query.
func message(q Question) []byte {
	flags := uint16(wire.FlagRD)
	if q.CD {
		flags |= wire.FlagCD
	}
	msg := binary.BigEndian.AppendUint16(nil, 0)
	msg = binary.BigEndian.AppendUint16(msg, flags)
	msg = append(msg, 0, 1, 0, 0, 0, 0, 0, 1)
	msg = append(msg, q.Name...)
	msg = binary.BigEndian.AppendUint16(msg, q.Type)
	msg = append(msg, 0, wire.ClassIN, 0, 0, wire.TypeOPT)
	msg = binary.BigEndian.AppendUint16(msg, offered)
	var do byte
	if q.DO {
		do = 0x80
	}
	return append(msg, 0, 0, do, 0, 0, 0) // RFC 6891 §6.1.3
}
