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
	Done    Status = iota // Out holds the response, whole: Fit it and send it
	Wait                  // it has to wait: detached, Start goes on with it, and behind Start Resume
	Drop                  // nothing is sent
	Pending               // its Waker will be told, once; until then nobody touches it
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
	Route         uint16        // where the question would be forwarded to, plus one; 0 is nowhere
	At            time.Duration // arrival, monotonic, since the process started
	Policy        Cursor
	Note          Note
	Trace         *Trace // nil unless somebody asked for it

	// Of detached requests.
	Expired bool  // the cache has an answer whose time is over: better than none
	Pending any   // what the rule that waits left for itself
	Waker   Waker // who goes on with the request when it was Pending
	Gather  bool  // whoever runs it ends a batch soon: what it sends may wait until then
	own     bool
}

// Waker goes on with a request that was Pending.
type Waker interface {
	// Wake is called once for each Pending, from any goroutine, perhaps before
	// the call that was answered with Pending has returned. It calls Start before it
	// returns, since what came may be gone afterwards. It must not wait.
	Wake()
}

// The groups of clients.
const (
	Stranger uint16 = iota // may ask for our own zones
	Guest                  // may ask for everything
)

// Peer is what is known of the other side beyond its address. It is made once
// per listener or connection and never changed.
type Peer struct {
	Listener string // URL of the listener
	Proto    Proto
	Index    uint16 // of the listener, for the log

	ServerName string // that the client named in TLS
	Path       string // of the URL, over HTTP
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

	// Subnet is passed on to upstreams (RFC 7871); not valid is none. Of length 0 it
	// says that nothing about the client is to be told.
	Subnet     netip.Prefix
	SubnetBack bool     // what the upstream says about Subnet is for the client as well
	Options    []uint16 // codes of EDNS options that are passed on, and back; the configuration's, never written to
}

// Note is what the log will say about a request besides the question.
type Note struct {
	Source Source
	Rule   uint16 // the rule that made the response, or ended it, by policy.Rule's Number; 0 where none did
	Rcode  wire.Rcode
	EDE    uint16 // extended error (RFC 8914) plus one; 0 is none
	Zone   uint32 // number of the zone that answered, plus one
	Size   uint16 // octets sent
	Flags  uint16 // header flags sent

	Upstream uint16  // number of the upstream that answered, plus one; 0 is none
	Limit    Limited // the limit that the response, or its absence, is due to
	Trusted  bool    // the client has shown that its address is its own
}

// Limited is the limit that a query met.
type Limited uint8

// The limits.
const (
	Unlimited Limited = iota
	OverRate          // queries of one client
	OverRRL           // responses of one kind to one client
)

// Source is where an answer came from.
type Source uint8

// The sources.
const (
	SourceNone Source = iota
	SourceZone
	SourceLocal
	SourceCache
	SourceStale
	SourceForward
	SourceRefused
	SourceError
)

var sourceNames = [...]string{"none", "zone", "local", "cache", "stale", "forward", "refused", "error"}

// String is the name of the source, as in the log and in metrics.
func (s Source) String() string { return sourceNames[s] }

// Sources is how many there are.
const Sources = len(sourceNames)

// Place is a rule of a program.
type Place struct{ Program, Rule uint16 }

// Frame is what a wrapper remembers until the response passes it on the way out:
// its rule, and two numbers of its own. A call leaves a frame too: where to go on
// when what it called has ended.
type Frame struct {
	Place
	Call bool
	Base uint8 // of a call: Cursor.Base as it was
	A, B uint64
}

// MaxFrames is how deep wrappers and calls, and jumps, may nest in a policy.
const MaxFrames = 24

// MaxMarks is how many different marks there are.
const MaxMarks = 256

// Cursor is where a request stands in the policy: fixed size, indices only.
type Cursor struct {
	Place
	Depth   uint8 // frames in use
	Jumps   uint8 // returns in use
	Base    uint8 // where the returns begin of what was called last
	Branch  bool  // works for another request, which speaks where there is no response
	Failed  bool  // a rule could not do its work: no other rule runs
	Silent  bool  // nothing is to be sent
	Matched bool  // the conditions of the rule have been looked at, and hold
	Marks   [MaxMarks / 64]uint64
	Frames  [MaxFrames + 1]Frame // the last is never left: Frame is safe to write to
	Returns [MaxFrames]Place     // where jumps go on
}

// Mark sets a mark, by its number in the configuration.
func (c *Cursor) Mark(n uint16) { c.Marks[n/64] |= 1 << (n % 64) }

// Marked tells whether a mark is set.
func (c *Cursor) Marked(n uint16) bool { return c.Marks[n/64]&(1<<(n%64)) != 0 }

// Frame is the frame that the rule at work will leave: what it writes into A and
// B is there when the response passes.
func (c *Cursor) Frame() *Frame { return &c.Frames[c.Depth] }

// begin puts the cursor at the first rule of a program.
func (c *Cursor) begin(program uint16) {
	c.Place = Place{Program: program}
	c.Depth, c.Jumps, c.Base = 0, 0, 0
	c.Branch, c.Failed, c.Silent, c.Matched = false, false, false, false
	c.Marks = [MaxMarks / 64]uint64{}
}

// Start makes r ready for the policy after Query.Parse: Ask is the client's
// question, the cursor stands at the first rule, and the response is begun in
// out.
func (r *Request) Start(out []byte) {
	r.Ask = Ask{Name: r.Name, Labels: &r.Suffixes, Type: r.Type, Class: r.Class, DO: r.EDNS.DO}
	r.Policy.begin(0)
	r.Note = Note{}
	r.Who, r.View, r.Route = 0, 0, 0
	r.Out = nil
	r.Expired = false
	r.Reply.Begin(&r.Query, out)
}

// Finish ends the response with that code.
func (r *Request) Finish(rcode wire.Rcode) {
	r.Out = r.Reply.End(rcode)
}

// Extend adds an extended error (RFC 8914) to the response and to the note. text
// is for people and may be empty.
func (r *Request) Extend(code uint16, text string) {
	r.Note.EDE = code + 1
	var data [2 + maxExtraText]byte
	binary.BigEndian.PutUint16(data[:], code)
	r.Reply.Option(wire.OptEDE, data[:2+copy(data[2:], text)])
}

// maxExtraText bounds the text of an extended error, so that it never costs the
// response its place.
const maxExtraText = 128

// Grow gives a detached request room for a response of n octets, where it has
// less; what was written of the response is dropped. It is false for a request
// that is not detached, or has the room already.
func (r *Request) Grow(n int) bool {
	if !r.own || !r.Reply.Smaller(n) {
		return false
	}
	r.Out = nil
	r.Reply.Move(make([]byte, n))
	return true
}

// Empty begins the response anew, without records. Options and the flag RA stay.
func (r *Request) Empty() {
	r.Out = nil
	r.Reply.Restart()
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
// as long as the query. A response that is finished goes along; what was written of one
// that is not, or did not fit, is dropped: the rule that stopped runs again.
func (r *Request) Detach(into *Request, msg, out []byte) {
	n := copy(msg, r.Msg)
	own := r.Ask.Labels == &r.Suffixes
	into.Query, into.Ask = r.Query, r.Ask
	into.Client, into.Local, into.Peer = r.Client, r.Local, r.Peer
	into.Who, into.View, into.Route, into.At = r.Who, r.View, r.Route, r.At
	into.Policy, into.Note, into.Trace = r.Policy, r.Note, r.Trace
	into.Expired, into.Gather, into.Pending, into.own = r.Expired, r.Gather, nil, true
	into.Rebase(msg[:n:n])
	if own {
		into.Ask.Name, into.Ask.Labels = into.Name, &into.Suffixes
	}
	into.Out = nil
	into.Reply.Begin(&into.Query, out)
	into.Reply.CopyOptions(&r.Reply)
	into.Reply.Flags = r.Reply.Flags & wire.FlagRA
	if r.Out != nil && !r.Reply.Truncated() {
		into.Adopt(r)
	}
}

// Adopt makes the response of from, a request for the same question, the one of r,
// which is detached.
func (r *Request) Adopt(from *Request) {
	r.Grow(len(from.Out) + wire.MinBuffer)
	r.Reply.Adopt(&from.Reply)
	r.Finish(from.Reply.Rcode())
}

// Handler answers requests. One Handler serves many goroutines at once.
type Handler interface {
	// Serve does what can be done at once and never waits. It keeps nothing of r.
	Serve(r *Request) Status
	// Start goes on with a detached request behind Wait or behind a call of its
	// Waker. It never waits either: Wait says that Resume has to.
	Start(r *Request) Status
	// Resume goes on with a detached request behind Start; it may wait until ctx
	// ends. It returns Done, Drop or Pending.
	Resume(ctx context.Context, r *Request) Status
}

// Observer is told of every answered query, after the response is made ready.
// It runs on the listener's goroutine: it must not wait and keeps nothing of r.
// Flush ends a batch.
type Observer interface {
	Observe(r *Request)
	Flush()
}
