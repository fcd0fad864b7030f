// Package step is the steps that need no engine: what answers out of its own
// arguments, changes a message, waits or logs. Package act, which knows the engines,
// gives them the names that rules know them by.
package step

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// BlackHole answers questions for addresses with its own. Where it has none of the
// type that is asked for, the question goes on as it came.
type BlackHole struct{ own addresses }

const blackHoleTTL = 300

// NewBlackHole reads addresses, of both families.
func NewBlackHole(args string) (any, error) {
	own, err := newAddresses(strings.Fields(args), blackHoleTTL)
	return &BlackHole{own}, err
}

// Do is part of policy.Step.
func (a *BlackHole) Do(r *serve.Request) policy.Next {
	set := a.own.of(r.Ask.Type)
	if set == nil {
		return policy.Go
	}
	r.Empty()
	r.Reply.Add(wire.Answer, r.Ask.Name, set, nil)
	return answered(r)
}

// answered ends a response that was made here. The next rule sees it.
func answered(r *serve.Request) policy.Next {
	r.Note.Source, r.Note.Upstream = serve.SourceLocal, 0
	r.Finish(wire.NoError)
	return policy.Go
}

// addresses is the records that answer with some addresses: A and AAAA.
type addresses struct{ a, aaaa wire.RRset }

// newAddresses reads addresses. IPv4 that is mapped into IPv6 is IPv6.
func newAddresses(words []string, ttl uint32) (addresses, error) {
	all := addresses{
		a:    wire.RRset{Type: wire.TypeA, Class: wire.ClassIN, TTL: ttl},
		aaaa: wire.RRset{Type: wire.TypeAAAA, Class: wire.ClassIN, TTL: ttl},
	}
	for _, word := range words {
		addr, err := netip.ParseAddr(word)
		if err != nil {
			return all, fmt.Errorf("reading address: %w", err)
		}
		set := &all.aaaa
		if addr.Is4() {
			set = &all.a
		}
		appendRecord(set, addr.AsSlice())
	}
	return all, nil
}

// of is the records of that type, nil where there are none.
func (a *addresses) of(typ uint16) *wire.RRset {
	for _, set := range [...]*wire.RRset{&a.a, &a.aaaa} {
		if set.Type == typ && set.Count > 0 {
			return set
		}
	}
	return nil
}

// empty tells whether there are no addresses at all.
func (a *addresses) empty() bool { return a.a.Count+a.aaaa.Count == 0 }

// appendRecord adds a record to an RRset.
func appendRecord(set *wire.RRset, rdata []byte) {
	set.Count++
	set.RDATA = binary.BigEndian.AppendUint16(set.RDATA, uint16(len(rdata)))
	set.RDATA = append(set.RDATA, rdata...)
}
