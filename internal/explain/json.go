package explain

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Asked is a question as people ask it.
type Asked struct {
	Name     string `json:"name"`
	Type     string `json:"type,omitempty"`     // empty is A
	Client   string `json:"client,omitempty"`   // address, or address and port; empty is this machine
	Listener string `json:"listener,omitempty"` // URL; empty is the first one
	DO       bool   `json:"do,omitempty"`
	CD       bool   `json:"cd,omitempty"`
}

// Answered is what became of a question, for people and for programs.
type Answered struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Client   string `json:"client"`
	Listener string `json:"listener"`

	Rcode     string `json:"rcode,omitempty"` // empty: nothing is sent
	Source    string `json:"source"`
	Rule      string `json:"rule,omitempty"` // that decided
	Latency   int64  `json:"latency"`        // microseconds
	Size      int    `json:"size"`           // octets of the response
	Truncated bool   `json:"truncated,omitempty"`
	Response  []byte `json:"response,omitempty"` // wire format

	Steps []Step `json:"steps"`
}

// Step is one step.
type Step struct {
	Branch int    `json:"branch,omitempty"` // 0 is the question itself, others are what runs beside it
	At     int64  `json:"at"`               // microseconds since the query
	Part   string `json:"part"`
	Where  string `json:"where,omitempty"` // file and line
	Text   string `json:"text"`
}

// Question reads a; what only the server knows is left open. The error tells which
// part of it is wrong.
func (a Asked) Question() (q Question, err error) {
	if q.Name, err = wire.ParseName(a.Name); err != nil {
		return q, fmt.Errorf("reading name %q: %w", a.Name, err)
	}
	q.Type, q.DO, q.CD = wire.TypeA, a.DO, a.CD
	if a.Type != "" {
		if q.Type, err = wire.ParseType(strings.ToUpper(a.Type)); err != nil {
			return q, fmt.Errorf("reading type: %w", err)
		}
	}
	q.Client = netip.AddrPortFrom(netip.IPv6Loopback(), clientPort)
	if a.Client == "" {
		q.anybody = true
		return q, nil
	}
	if addr, err := netip.ParseAddr(a.Client); err == nil {
		q.Client = netip.AddrPortFrom(addr.Unmap(), clientPort)
	} else if q.Client, err = netip.ParseAddrPort(a.Client); err != nil {
		return q, fmt.Errorf("reading client %q: expected an address, such as 192.0.2.7", a.Client)
	}
	return q, nil
}

// Arrive says at which listener the question is asked. A client that nobody named is
// on this machine, and of the listener's family.
func (q *Question) Arrive(peer *serve.Peer, local netip.AddrPort) {
	q.Peer, q.Local = peer, local
	if q.anybody && local.Addr().Unmap().Is4() {
		q.Client = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), q.Client.Port())
	}
}

// clientPort is the port of a client that is only an address: the first one of
// those that clients choose from (RFC 6335 §6).
const clientPort = 49152

// Answered is the report for people.
func (r *Report) Answered(q Question) *Answered {
	a := &Answered{
		Name: q.Name.String(), Type: wire.TypeString(q.Type), Client: q.Client.String(), Listener: q.Peer.Listener,
		Source: r.Note.Source.String(), Latency: r.Time.Microseconds(),
		Size: len(r.Response), Response: r.Response, Truncated: r.Note.Flags&wire.FlagTC != 0,
	}
	if r.Response != nil {
		a.Rcode = r.Note.Rcode.String()
	}
	for _, s := range r.Steps {
		a.Steps = append(a.Steps, step(s))
	}
	return a
}

func step(s serve.TraceStep) Step {
	return Step{Branch: s.Branch, At: int64(s.At / time.Microsecond), Part: s.Part, Where: s.Where, Text: s.Text}
}
