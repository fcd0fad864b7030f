package act

import (
	"encoding/binary"
	"hash/fnv"
	"sync"
	"time"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/upstream"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Relay asks one group of upstreams, whatever the question, and lets the rules
// behind it see the response, with any code. It keeps nothing: that is for a cache
// in front of it. Identical questions in flight are one query.
type Relay struct {
	Asked
	Servers []string // as they are told to people
	Numbers []uint16 // of Servers, for the log
	Tag     string
	Tagged  []TaggedServer
	Now     func() time.Duration

	tagged func(tags string) (*Relay, error) // of some of the servers
	calls  sync.Pool                         // of *call
}

// TaggedServer is an upstream of a relay that has a tag of its own.
type TaggedServer struct {
	Tag   string
	Index int // in Group.Status
}

// relayOptions is the octets that options of clients may take in a query.
const relayOptions = 256

// relayFlags are the flags of clients that are passed on.
const relayFlags = wire.FlagRD | wire.FlagAD | wire.FlagCD

// call is a Flight and the exchange that does its work.
type call struct {
	cache.Flight
	x      upstream.Exchange
	of     *Relay
	query  [maxQuery + relayOptions]byte
	subs   []*serve.Request
	answer cache.Answer
	failed bool
	source uint16 // number of the upstream that answered; 0 is none
	opts   []byte // options of the response's OPT record
}

// With is part of Arguments: it names the tags of the servers that are asked.
func (a *Relay) With(tags string) (any, error) { return a.tagged(tags) }

// Make is part of cache.Maker.
func (a *Relay) Make() (*cache.Flight, any) {
	c, ok := a.calls.Get().(*call)
	if !ok {
		c = &call{of: a}
		c.x.Owner = c
	}
	return &c.Flight, c
}

// Start is part of policy.Starter.
func (a *Relay) Start(r *serve.Request) policy.Next {
	if c, ok := r.Pending.(*call); ok {
		r.Pending = nil
		return c.finish(r)
	}
	var room [relayOptions]byte
	options := passed(r, room[:0])
	k := cache.Key{
		Name: r.Ask.Name, Hash: r.Ask.Labels.Hash[0], Type: r.Ask.Type, Class: r.Ask.Class,
		CD: r.Flags&wire.FlagCD != 0, Scope: r.Ask.Subnet,
	}
	flags, gather := r.Flags&relayFlags, r.Gather
	if len(options) > 0 || flags&(wire.FlagRD|wire.FlagAD) != wire.FlagRD {
		h := fnv.New32a()
		_, _ = h.Write(options)
		_, _ = h.Write([]byte{byte(flags >> 8), byte(flags)})
		k.View = h.Sum32() | 1
	}
	trace := r.Trace
	owner, joined := a.Flights.Join(&k, r, a.Now(), a)
	if trace != nil {
		traceJoin(trace, joined, a.Servers)
	}
	if joined == cache.Leads {
		// From here on r may have been answered and be used for something else.
		c := owner.(*call)
		c.x.Gather = gather
		c.begin(flags, options)
	}
	return policy.Pend
}

// passed is the client's options that are passed on.
func passed(r *serve.Request, dst []byte) []byte {
	for _, code := range r.Ask.Options {
		if data, ok := r.EDNS.Option(code); ok && len(dst)+4+len(data) <= relayOptions {
			dst = binary.BigEndian.AppendUint16(dst, code)
			dst = binary.BigEndian.AppendUint16(dst, uint16(len(data)))
			dst = append(dst, data...)
		}
	}
	return dst
}

// begin sends the query, with these flags and without the client's DO.
func (c *call) begin(flags uint16, options []byte) {
	q := appendQuestion(c.query[:0], &c.Key)
	binary.BigEndian.PutUint16(q[2:], flags)
	c.x.Bare = len(q)
	q = append(q, 0, 0, wire.TypeOPT, querySize>>8, querySize&0xff, 0, 0, 0, 0, 0, 0)
	end := len(q)
	if c.Key.Scope.IsValid() {
		q = appendSubnet(q, c.Key.Scope)
	}
	q = append(q, options...)
	binary.BigEndian.PutUint16(q[end-2:], uint16(len(q)-end))
	c.x.Query = q
	c.of.Group.Start(&c.x)
}

// Exchanged is part of upstream.Owner: it reads the answer and wakes who waits.
func (c *call) Exchanged(x *upstream.Exchange) {
	c.failed, c.opts, c.source = x.Err != nil, c.opts[:0], 0
	if !c.failed {
		c.failed = c.answer.Read(nil, &c.Key, x.Response) == cache.Malformed
	}
	if !c.failed {
		c.opts = appendOptions(c.opts, x.Response)
		c.source = c.of.Numbers[x.Upstream]
	}
	c.subs = c.of.Flights.End(&c.Flight, c.subs[:0])
	for i, r := range c.subs {
		c.subs[i] = nil
		if r.Trace != nil {
			traceExchange(r, x, c.of.Servers)
		}
		r.Waker.Wake()
	}
	c.of.calls.Put(c)
}

// finish gives r what came.
func (c *call) finish(r *serve.Request) policy.Next {
	r.Note.Source, r.Note.Upstream = serve.SourceForward, c.source
	if c.failed {
		r.Extend(edeNoReachable, "")
		return policy.Fail
	}
	r.Grow(c.answer.Size(true) + wire.MinBuffer)
	r.Empty()
	if c.answer.Rcode == wire.NoError || c.answer.Rcode == wire.NXDomain {
		replay(r, &c.answer)
	}
	answerFlags(r, c.answer.Flags)
	r.Reply.Flags |= c.answer.Flags & wire.FlagTC
	c.options(r)
	r.Finish(c.answer.Rcode)
	return policy.Go
}

// replay writes the records of an answer, whose question may be another than the
// client's.
func replay(r *serve.Request, a *cache.Answer) {
	if len(r.Ask.Name) == len(r.Name) && wire.EqualFold(r.Ask.Name, r.Name) && r.Ask.Type == r.Type {
		a.Replay(&r.Reply, true)
		return
	}
	r.Reply.AddMessage(a.Message(true))
}

// options gives the client the options of the upstream that are for it.
func (c *call) options(r *serve.Request) {
	e := wire.EDNS{Options: c.opts}
	for _, code := range r.Ask.Options {
		if data, ok := e.Option(code); ok {
			r.Reply.Option(code, data)
		}
	}
	if data, ok := e.Option(wire.OptECS); ok && r.Ask.SubnetBack {
		r.Reply.Option(wire.OptECS, data)
	}
}

// appendOptions appends the options of a response's OPT record, where they are
// whole.
func appendOptions(dst, msg []byte) []byte {
	var resp wire.Response
	var rec wire.Record
	if !resp.Read(msg) {
		return dst
	}
	for resp.Next(&rec) {
		if rec.Type != wire.TypeOPT {
			continue
		}
		options := msg[rec.RDATA:rec.End]
		for o := options; len(o) > 0; {
			if len(o) < 4 || len(o) < 4+int(binary.BigEndian.Uint16(o[2:])) {
				return dst
			}
			o = o[4+int(binary.BigEndian.Uint16(o[2:])):]
		}
		return append(dst, options...)
	}
	return dst
}

// appendQuestion begins a query for what k names: header and question, with an OPT
// record to follow.
func appendQuestion(q []byte, k *cache.Key) []byte {
	flags := uint16(wire.FlagRD)
	if k.CD {
		flags |= wire.FlagCD
	}
	q = binary.BigEndian.AppendUint16(append(q, 0, 0), flags)
	q = append(q, 0, 1, 0, 0, 0, 0, 0, 1)
	q = append(q, k.Name...)
	q = binary.BigEndian.AppendUint16(q, k.Type)
	return binary.BigEndian.AppendUint16(q, k.Class)
}
