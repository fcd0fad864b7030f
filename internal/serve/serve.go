// Package serve is the contract between those who receive queries and those who
// answer them: what a Request is, who may touch it when, and the two interfaces
// Handler and Observer. It opens no socket and knows no configuration. Listeners
// make Requests; app gives them the Handler.
package serve

import (
	"context"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Status is what became of a request.
type Status uint8

// What a Handler says.
const (
	Done Status = iota // Out holds the response, whole: Fit it and send it
	Wait               // Resume has to go on with it
	Drop               // nothing is sent
)

// Request is the work on one query. It travels from the listener through the
// policy to the engines and back. There is no transport in it, no context value
// and no map. A listener owns it and uses it again; Detach makes a copy that
// outlives the listener's buffers.
type Request struct {
	wire.Query
	Ask   Ask
	Reply wire.Builder
	Out   []byte // the response, whole, without OPT; Fit makes it ready to send

	Client, Local netip.AddrPort
	Peer          *Peer         // never nil
	Who, View     uint16        // client group and view, set once, before zones and cache
	At            time.Duration // arrival, monotonic, since the process started
	Policy        Cursor
	Note          Note
}

// Peer is what is known of the other side beyond its address. It is made once
// per listener or connection and never changed.
type Peer struct {
	Listener string // URL of the listener
	Proto    Proto
	Index    uint16 // of the listener, for the log
}

// Proto is the transport a query came by.
type Proto uint8

// The transports.
const (
	UDP Proto = iota
	TCP
)

// String is the name of the transport, as in the log.
func (p Proto) String() string {
	if p == TCP {
		return "tcp"
	}
	return "udp"
}

// Stream tells whether responses may be as long as a message can be.
func (p Proto) Stream() bool { return p != UDP }

// Ask is what is asked on the client's behalf. It starts as the client's
// question; steps of the policy may change it. Engines read Ask, the reply
// echoes Query.
type Ask struct {
	Name        wire.Name
	Labels      *wire.Labels // of Name
	Type, Class uint16
	DO          bool
}

// Note is what the log will say about a request besides the question.
type Note struct {
	Source Source
	Rule   uint16 // the rule that decided, by its index in the configuration; 0 where none did
	Rcode  wire.Rcode
	EDE    uint16 // extended error (RFC 8914) plus one; 0 is none
	Zone   uint32 // number of the zone that answered, plus one
	Size   uint16 // octets sent
	Flags  uint16 // header flags sent
}

// Source is where an answer came from.
type Source uint8

// The sources.
const (
	SourceNone Source = iota
	SourceZone
	SourceLocal
	SourceRefused
	SourceError
)

var sourceNames = [...]string{"none", "zone", "local", "refused", "error"}

// String is the name of the source, as in the log and in metrics.
func (s Source) String() string { return sourceNames[s] }

// Sources is how many there are.
const Sources = len(sourceNames)

// Frame is what a wrapper remembers until the response passes it on the way
// out: the rule, where to go on, and two numbers of its own.
type Frame struct {
	Rule, Return uint16
	A, B         uint64
}

// MaxFrames is how deep wrappers and jumps may nest in a policy.
const MaxFrames = 16

// Cursor is where a request stands in the policy: fixed size, indices only.
type Cursor struct {
	Program, Rule uint16
	Depth         uint8 // frames in use
	Frames        [MaxFrames]Frame
}

// Start makes r ready for the policy after Query.Parse: Ask is the client's
// question, the cursor stands at the first rule, and the response is begun in
// out.
func (r *Request) Start(out []byte) {
	r.Ask = Ask{Name: r.Name, Labels: &r.Suffixes, Type: r.Type, Class: r.Class, DO: r.EDNS.DO}
	r.Policy.Program, r.Policy.Rule, r.Policy.Depth = 0, 0, 0
	r.Note = Note{}
	r.Who, r.View = 0, 0
	r.Out = nil
	r.Reply.Begin(&r.Query, out)
}

// Finish ends the response with that code.
func (r *Request) Finish(rcode wire.Rcode) {
	r.Out = r.Reply.End(rcode)
}

// Fit makes the response ready to send: the client's size limit, truncation and
// OPT apply here, once. udpSize is the largest response over UDP that we send,
// and what we say that we take.
func (r *Request) Fit(udpSize uint16) []byte {
	limit := wire.MaxMessage
	if !r.Peer.Proto.Stream() {
		limit = 512 // RFC 1035 §4.2.1
		if r.EDNS.Present {
			limit = int(min(max(r.EDNS.Size, 512), udpSize)) // RFC 6891 §6.2.3
		}
	}
	r.Out = r.Reply.Fit(limit, udpSize)
	r.Note.Rcode = r.Reply.Rcode()
	r.Note.Size = uint16(len(r.Out))
	r.Note.Flags = binary.BigEndian.Uint16(r.Out[2:])
	return r.Out
}

// Detach copies r into into, which from then on owns its memory: msg holds the
// query, out will hold the response. Both are as long as needed; msg at least
// as long as the query. What was written of the response so far is dropped: the
// rule that stopped runs again.
func (r *Request) Detach(into *Request, msg, out []byte) {
	n := copy(msg, r.Msg)
	own := r.Ask.Labels == &r.Suffixes
	into.Query, into.Ask = r.Query, r.Ask
	into.Client, into.Local, into.Peer = r.Client, r.Local, r.Peer
	into.Who, into.View, into.At = r.Who, r.View, r.At
	into.Policy, into.Note = r.Policy, r.Note
	into.Rebase(msg[:n:n])
	if own {
		into.Ask.Name, into.Ask.Labels = into.Name, &into.Suffixes
	}
	into.Out = nil
	into.Reply.Begin(&into.Query, out)
	into.Reply.CopyOptions(&r.Reply)
}

// Handler answers requests. One Handler serves many goroutines at once.
type Handler interface {
	// Serve does what can be done at once and never waits. It keeps nothing of r.
	Serve(r *Request) Status
	// Resume goes on with a detached request behind Wait; it may wait until ctx
	// ends. It returns Done or Drop.
	Resume(ctx context.Context, r *Request) Status
}

// Observer is told of every answered query, after the response is made ready.
// It runs on the listener's goroutine: it must not wait and keeps nothing of r.
// Flush ends a batch.
type Observer interface {
	Observe(r *Request)
	Flush()
}
