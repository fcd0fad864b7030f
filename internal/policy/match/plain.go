package match

import (
	"math/rand/v2"
	"slices"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Not matches what another does not.
type Not struct{ Matcher policy.Matcher }

// Match is part of policy.Matcher.
func (m Not) Match(r *serve.Request) bool { return !m.Matcher.Match(r) }

// Const matches always or never.
type Const bool

// Match is part of policy.Matcher.
func (m Const) Match(*serve.Request) bool { return bool(m) }

// Qtype matches questions of one of the types.
type Qtype []uint16

// Match is part of policy.Matcher.
func (m Qtype) Match(r *serve.Request) bool { return slices.Contains(m, r.Ask.Type) }

// Qclass matches questions of one of the classes.
type Qclass []uint16

// Match is part of policy.Matcher.
func (m Qclass) Match(r *serve.Request) bool { return slices.Contains(m, r.Ask.Class) }

// Rcode matches responses with one of the codes.
type Rcode []uint16

// Match is part of policy.Matcher.
func (m Rcode) Match(r *serve.Request) bool {
	return r.Out != nil && slices.Contains(m, uint16(r.Reply.Rcode()))
}

// HasResp matches where there is a response.
type HasResp struct{}

// Match is part of policy.Matcher.
func (HasResp) Match(r *serve.Request) bool { return r.Out != nil }

// HasWantedAns matches responses with an answer of the type that was asked for.
type HasWantedAns struct{}

// Match is part of policy.Matcher.
func (HasWantedAns) Match(r *serve.Request) bool {
	var resp wire.Response
	if r.Out == nil || !resp.Read(r.Out) {
		return false
	}
	var rec wire.Record
	for resp.Next(&rec) && rec.Section == wire.Answer {
		if rec.Type == r.Ask.Type && rec.Class == r.Ask.Class {
			return true
		}
	}
	return false
}

// Mark matches requests that have one of the marks, by their numbers in the
// configuration.
type Mark []uint16

// Match is part of policy.Matcher.
func (m Mark) Match(r *serve.Request) bool {
	for _, n := range m {
		if r.Policy.Marked(n) {
			return true
		}
	}
	return false
}

// Random matches that part of all requests.
type Random float64

// Match is part of policy.Matcher.
func (m Random) Match(*serve.Request) bool { return rand.Float64() < float64(m) }
