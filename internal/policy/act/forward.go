package act

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"time"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/upstream"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Forward asks upstreams. Requests for the same thing share one Flight, which goes
// on when they have left.
type Forward struct {
	Cache   *Cache // where answers are kept; its own Cache may be nil
	Flights *cache.Flights
	Groups  []ForwardGroup // by route
	Now     func() time.Duration

	misses  sync.Pool // of *miss
	answers sync.Pool // of *cache.Answer
}

// ForwardGroup is a group of upstreams.
type ForwardGroup struct {
	*upstream.Group
	Servers []string // as they are told to people
	Numbers []uint16 // of Servers, for the log
}

// querySize is what we say in queries that we take over UDP: what fits every path
// without fragments (the DNS flag day of 2020).
const querySize = 1232

// maxQuery is the longest query: header, question, OPT with a client's subnet.
const maxQuery = wire.HeaderSize + wire.MaxName + 4 + 11 + ecsOption

// miss is a Flight and the exchange that does its work.
type miss struct {
	cache.Flight
	x     upstream.Exchange
	f     *Forward
	group *ForwardGroup
	query [maxQuery]byte
	subs  []*serve.Request

	// What came of it, while End's requests are woken. The answer is large, and needed
	// for no longer than that: a miss in flight has none.
	answer *cache.Answer
	source uint16 // of the upstream, as Note has it
	ede    uint16 // extended error plus one, where there is no answer
	text   string // to the extended error
}

// Make is part of cache.Maker.
func (f *Forward) Make() (*cache.Flight, any) {
	m, ok := f.misses.Get().(*miss)
	if !ok {
		m = &miss{f: f}
		m.x.Owner = m
	}
	return &m.Flight, m
}

// Start is part of policy.Starter.
func (f *Forward) Start(r *serve.Request) policy.Next {
	switch p := r.Pending.(type) {
	case *miss:
		r.Pending = nil
		return f.finish(r, p)
	case cache.Overdue:
		r.Pending = nil
		if f.Cache.stale(r) {
			return policy.Stop
		}
		r.Expired = false // gone by now: wait for the upstream like everyone else
	}
	if r.Route == 0 {
		return policy.Go
	}
	if r.Flags&wire.FlagRD == 0 { // who does not want recursion is not told what others asked for
		return refuse(r, edeNotAuth)
	}
	var k cache.Key
	f.Cache.key(r, &k)
	group, gather, trace := &f.Groups[r.Route-1], r.Gather, r.Trace
	owner, joined := f.Flights.Join(&k, r, f.Now(), f)
	if trace != nil {
		traceJoin(trace, joined, group.Servers)
	}
	switch joined {
	case cache.TooLate:
		if f.Cache.stale(r) {
			return policy.Stop
		}
		r.Expired = false
		return f.Start(r)
	case cache.Leads:
		// From here on r may have been answered and be used for something else.
		m := owner.(*miss)
		m.x.Gather = gather
		m.begin(group)
	}
	return policy.Pend
}

// begin sends the query. Records of DNSSEC are asked for whatever the client
// wants, since what comes serves all who join, and what is kept all who ask later.
func (m *miss) begin(g *ForwardGroup) {
	m.group = g
	k := &m.Key
	q := appendQuestion(m.query[:0], k)
	m.x.Bare = len(q)
	q = append(q, 0, 0, wire.TypeOPT, querySize>>8, querySize&0xff, 0, 0, 0x80, 0, 0, 0)
	if k.Scope.IsValid() {
		end := len(q)
		q = appendSubnet(q, k.Scope)
		binary.BigEndian.PutUint16(q[end-2:], uint16(len(q)-end))
	}
	m.x.Query = q
	g.Start(&m.x)
}

// Exchanged is part of upstream.Owner: it keeps the answer and wakes who waits.
func (m *miss) Exchanged(x *upstream.Exchange) {
	f := m.f
	m.source, m.ede, m.text = 0, 0, ""
	if x.Err == nil {
		m.source = m.group.Numbers[x.Upstream]
	}
	var ok bool
	if m.answer, ok = f.answers.Get().(*cache.Answer); !ok {
		m.answer = new(cache.Answer)
	}
	m.take(x)
	m.subs = f.Flights.End(&m.Flight, m.subs[:0])
	for i, r := range m.subs {
		m.subs[i] = nil
		if r.Trace != nil {
			traceExchange(r, x, m.group.Servers)
		}
		r.Waker.Wake()
	}
	f.answers.Put(m.answer)
	m.answer = nil
	f.misses.Put(m)
}

// take reads what came, and gives it to the cache.
func (m *miss) take(x *upstream.Exchange) {
	k := m.Key // others compare theirs with it: it does not change
	if x.Err != nil {
		m.fail(edeNoReachable, "no upstream answered")
	} else {
		scope, sound := answeredScope(k.Scope, x.Response)
		k.Scope = scope
		switch stored := m.answer.Read(m.f.Cache.Cache, &k, x.Response); {
		case stored == cache.Malformed || !sound:
			m.fail(edeInvalidData, m.group.Servers[x.Upstream]+" sent a malformed response")
		case m.answer.Rcode != wire.NoError && m.answer.Rcode != wire.NXDomain:
			m.fail(edeNetwork, m.group.Servers[x.Upstream]+" answered "+m.answer.Rcode.String())
			if m.answer.EDE > 0 {
				m.ede = m.answer.EDE
			}
		}
	}
	c, now := m.f.Cache.Cache, m.f.Now()
	switch {
	case c == nil:
	case m.ede != 0: // for the subnet that was asked for, which may have an entry of its own
		c.Fail(&m.Key, now, m.ede, x.Err != nil)
	default:
		c.Keep(&k, m.answer, now, m.source)
	}
}

func (m *miss) fail(ede uint16, text string) { m.ede, m.text = ede+1, text }

// answeredScope is whom an answer is for that was asked for sent. One without the
// option is for everyone. One for another subnet is not sound: it must be dropped
// (RFC 7871 §7.3).
func answeredScope(sent netip.Prefix, msg []byte) (scope netip.Prefix, sound bool) {
	if !sent.IsValid() {
		return sent, true
	}
	option, sound := optionOf(msg, wire.OptECS)
	bits := 0
	if option != nil && sent.Bits() > 0 {
		p, n, ok := readSubnet(option)
		sound = ok && p == sent
		bits = min(n, sent.Bits()) // a longer scope is for the prefix that we gave
	}
	scope, _ = sent.Addr().Prefix(bits)
	return scope, sound
}

// optionOf is the data of an EDNS option of a response, nil where there is none.
// Nobody has looked at the options before: sound tells whether they are whole.
func optionOf(msg []byte, code uint16) (data []byte, sound bool) {
	var resp wire.Response
	var rec wire.Record
	if !resp.Read(msg) {
		return nil, false
	}
	for resp.Next(&rec) {
		if rec.Type != wire.TypeOPT {
			continue
		}
		for o := msg[rec.RDATA:rec.End]; len(o) > 0; {
			if len(o) < 4 || len(o) < 4+int(binary.BigEndian.Uint16(o[2:])) {
				return nil, false
			}
			end := 4 + int(binary.BigEndian.Uint16(o[2:]))
			if binary.BigEndian.Uint16(o) == code {
				return o[4:end], true
			}
			o = o[end:]
		}
	}
	return nil, true
}

// finish answers r with what came.
func (f *Forward) finish(r *serve.Request, m *miss) policy.Next {
	if m.ede != 0 {
		if f.Cache.stale(r) {
			return policy.Stop
		}
		r.Note.Source, r.Note.Upstream = serve.SourceError, m.source
		r.Extend(m.ede-1, m.text)
		answerFlags(r, 0)
		r.Finish(wire.ServFail)
		return policy.Stop
	}
	r.Grow(m.answer.Size(r.Ask.DO) + wire.MinBuffer)
	m.answer.Replay(&r.Reply, r.Ask.DO)
	r.Reply.Flags |= m.answer.Flags & wire.FlagTC // what is missing is not here, whatever the room
	r.Note.Source, r.Note.Upstream = serve.SourceForward, m.source
	if m.answer.EDE > 0 {
		r.Extend(m.answer.EDE-1, "")
	}
	f.Cache.subnetBack(r)
	answerFlags(r, m.answer.Flags)
	r.Finish(m.answer.Rcode)
	return policy.Stop
}
