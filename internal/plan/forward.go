package plan

import (
	"net/netip"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Forward is one group of upstreams and what is sent to it. Of several groups
// that a question may go to, the one with the longest name in For has it; then
// one that is for these clients, then one for the view, then the first.
type Forward struct {
	Pos     Pos
	For     []wire.Name    // names that this is for, with all below; folded; empty is every name
	Views   []string       // views that this is for; empty is all
	Clients []netip.Prefix // clients that this is for; empty is all
	To      []Upstream
	Select  string // fastest, random, order or race
	Race    int    // how many are asked at once, with race
	Hedge   bool   // a second try when the first is late
	Timeout time.Duration
	MixCase bool   // random letter case in queries (0x20)
	ECS     string // off or pass
}

// DefaultForward has the defaults of a group.
func DefaultForward() Forward {
	return Forward{
		Select: "fastest",
		Race:   2,
		Hedge:  true,
		// Below the 5 seconds after which a stub resolver asks again.
		Timeout: 4 * time.Second,
		ECS:     "off",
	}
}

// Upstream is one server to forward to.
type Upstream struct {
	Pos    Pos
	Scheme string // "udp" or "tcp"
	Addr   netip.AddrPort
}

// String is the URL form.
func (u Upstream) String() string { return u.Scheme + "://" + u.Addr.String() }

// Cache is the response cache.
type Cache struct {
	Pos         Pos
	On          bool
	Size        int64 // octets of memory
	MinTTL      time.Duration
	MaxTTL      time.Duration
	MaxNegative time.Duration // longest life of NXDOMAIN and NODATA
	Stale       time.Duration // how long past its life an answer may still be given; 0 is never
	Immediate   bool          // stale answers are given at once, the upstream is asked behind them
	Prefetch    bool          // popular answers are fetched anew before they expire
	File        string        // dump; empty is none
	Interval    time.Duration // between dumps
}

// DefaultCache has the defaults of a cache that is on.
func DefaultCache() Cache {
	return Cache{
		On:   true,
		Size: 64 << 20,
		// Well below the 7 days that RFC 8767 §4 advises as the cap: what was
		// cached by mistake is gone after a day.
		MaxTTL: 24 * time.Hour,
		// RFC 2308 §5: one to three hours work well.
		MaxNegative: time.Hour,
		// RFC 8767 §5 speaks of one to three days.
		Stale:    24 * time.Hour,
		Prefetch: true,
		Interval: 10 * time.Minute,
	}
}

// Access is who may ask for what.
type Access struct {
	Pos       Pos
	Allow     []netip.Prefix // who may use forwarding and cache; nil is loopback, link-local and private networks
	Deny      []netip.Prefix // who gets no answer but REFUSED, also where Allow has a shorter prefix or the same
	Listeners []ListenerAccess
}

// ListenerAccess stands in place of Access for queries to one listener.
type ListenerAccess struct {
	Pos         Pos
	Listen      Listen
	Allow, Deny []netip.Prefix
}

// Limits is what one client may ask for, and what one name may be used for.
type Limits struct {
	Pos     Pos
	Rate    Rate
	RRL     RRL
	Cookies Cookies
	Exempt  []netip.Prefix // clients without limits
}

// Rate is the limit of queries per client. On public listeners (an address that
// is not private) it is on from the start.
type Rate struct {
	Pos       Pos
	Set       bool // was written: holds for every listener
	PerSecond int  // 0 is off
	Burst     int
	IPv4      int // length of the prefix that counts as one client
	IPv6      int
	Truncate  bool // over UDP, answer TC in place of nothing
}

// RRL is response rate limiting.
type RRL struct {
	Pos       Pos
	PerSecond int // responses of one kind to one client prefix; 0 is off
	Slip      int // every so manieth response over the limit goes out truncated
	IPv4      int
	IPv6      int
}

// Cookies is DNS cookies (RFC 7873).
type Cookies struct {
	On     bool
	Secret string // 32 hexadecimal digits, shared by servers of one address; empty is made at the start
}

// DefaultLimits has the defaults.
func DefaultLimits() Limits {
	return Limits{
		Rate: Rate{
			// Generous: a resolver behind NAT for a few hundred people. Public
			// listeners only.
			PerSecond: 1000, Burst: 5000, IPv4: 24, IPv6: 56, Truncate: true,
		},
		RRL:     RRL{Slip: 2, IPv4: 24, IPv6: 56},
		Cookies: Cookies{On: true},
	}
}

// View is a way to see the server, chosen by who asks and where.
type View struct {
	Pos     Pos
	Name    string
	Clients []netip.Prefix // empty is all
	Listen  []Listen       // listeners; empty is all
}
