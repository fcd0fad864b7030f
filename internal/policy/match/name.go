package match

import (
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Qname matches questions whose name is in one of the sets.
type Qname struct{ Sets []*DomainSet }

// Match is part of policy.Matcher.
func (m Qname) Match(r *serve.Request) bool {
	for _, s := range m.Sets {
		if s.Match(r.Ask.Name, r.Ask.Labels) {
			return true
		}
	}
	return false
}

// Cname matches responses with a CNAME in the answer that leads to a name in one
// of the sets.
type Cname struct{ Sets []*DomainSet }

// Match is part of policy.Matcher.
func (m Cname) Match(r *serve.Request) bool {
	var resp wire.Response
	if r.Out == nil || !resp.Read(r.Out) {
		return false
	}
	var rec wire.Record
	var buf [wire.MaxName]byte
	var labels wire.Labels
	for resp.Next(&rec) && rec.Section == wire.Answer {
		if rec.Type != wire.TypeCNAME {
			continue
		}
		name, _, ok := wire.ReadName(buf[:0], r.Out, rec.RDATA)
		if !ok {
			return false
		}
		labels.Scan(name)
		for _, s := range m.Sets {
			if s.Match(name, &labels) {
				return true
			}
		}
	}
	return false
}
