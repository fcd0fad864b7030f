package app

import (
	"crypto/rand"
	"encoding/hex"
	"net/netip"

	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/limit"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/policy/act"
)

// clientsTable is how many clients are told apart by a limit.
const clientsTable = 1 << 16

// makeAccess is nil where everyone may ask for everything that there is: zones.
func makeAccess(p *plan.Plan) *act.Access {
	if len(p.Forward) == 0 && len(p.Views) == 0 && len(p.Access.Deny) == 0 && len(p.Access.Listeners) == 0 {
		return nil
	}
	a := &act.Access{Default: accessList(p.Access.Allow, p.Access.Deny), Recursive: len(p.Forward) > 0}
	for _, l := range p.Access.Listeners {
		if a.Listeners == nil {
			a.Listeners = map[string]act.AccessList{}
		}
		a.Listeners[l.Listen.String()] = accessList(l.Allow, l.Deny)
	}
	for _, v := range p.Views {
		view := act.View{}
		if len(v.Clients) > 0 {
			view.Clients = addrset.New(v.Clients)
		}
		for _, l := range v.Listen {
			if view.Listener == nil {
				view.Listener = map[string]bool{}
			}
			view.Listener[l.String()] = true
		}
		a.Views = append(a.Views, view)
	}
	return a
}

// accessList is both lists as one: of equal prefixes the last counts, and that is
// the one that denies.
func accessList(allow, deny []netip.Prefix) act.AccessList {
	if allow == nil {
		allow = addrset.Private()
	}
	var all []addrset.Entry[act.Right]
	for _, p := range allow {
		all = append(all, addrset.Entry[act.Right]{Prefix: p, Value: act.Everything})
	}
	for _, p := range deny {
		all = append(all, addrset.Entry[act.Right]{Prefix: p, Value: act.Nothing})
	}
	return addrset.NewMap(all)
}

// makeLimits is nil where no limit holds anywhere.
func (s *Server) makeLimits(p *plan.Plan) *act.Limits {
	l := &act.Limits{
		Exempt: addrset.New(p.Limits.Exempt), Private: addrset.New(addrset.Private()),
		Truncate: p.Limits.Rate.Truncate, Unix: s.unix.Load,
	}
	if rate := p.Limits.Rate; rate.PerSecond > 0 {
		if !rate.Set {
			l.Public = publicListeners(p)
		}
		if rate.Set || len(l.Public) > 0 {
			c := limit.RateConfig{PerSecond: rate.PerSecond, Burst: rate.Burst, V4: rate.IPv4, V6: rate.IPv6, Clients: clientsTable}
			l.Rate, l.Streams = limit.NewRate(c), limit.NewRate(c)
		}
	}
	if rrl := p.Limits.RRL; rrl.PerSecond > 0 {
		l.RRL = limit.NewRRL(limit.RRLConfig{PerSecond: rrl.PerSecond, Slip: rrl.Slip, V4: rrl.IPv4, V6: rrl.IPv6, Table: clientsTable})
	}
	if l.Rate == nil && l.RRL == nil {
		return nil
	}
	if p.Limits.Cookies.On {
		l.Cookies = limit.NewCookies(s.cookieSecret(p.Limits.Cookies.Secret))
	}
	return l
}

// publicListeners is the listeners that more than this site may reach.
func publicListeners(p *plan.Plan) map[string]bool {
	public := map[string]bool{}
	for _, l := range p.Listen {
		if !private(l.Addr.Addr()) {
			public[l.String()] = true
		}
	}
	return public
}

// cookieSecret is what the configuration says, or what was made up at the start.
func (s *Server) cookieSecret(text string) [16]byte {
	var secret [16]byte
	if n, err := hex.Decode(secret[:], []byte(text)); err == nil && n == len(secret) {
		return secret
	}
	if s.secret == ([16]byte{}) {
		_, _ = rand.Read(s.secret[:]) // it does not fail
	}
	return s.secret
}
