// Package upstream sends queries to configured servers and gives the responses
// back, octets to octets: a pool of connected UDP sockets per server, TCP with
// pipelining, selection among the servers of a group, and every time-out. It is
// no cache and no resolver: it follows no referral, joins no equal questions and
// never looks at a record but to see that the response is whole.
//
// The policy and the recursion call it. It is asynchronous throughout: Start
// never waits, and a query costs no goroutine, no timer, no dial and, once the
// pools have grown, no allocation. It never reads a clock: its owner hands it the
// time and calls Tick.
package upstream

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
)

// How an exchange ends without a response.
var (
	ErrTimeout     = errors.New("no server answered in time")
	ErrUnreachable = errors.New("no server could be reached")
	ErrBusy        = errors.New("too many exchanges in flight")
	ErrQuery       = errors.New("query that cannot be sent: it needs one question with an uncompressed name")
	ErrClosed      = errors.New("the group of servers is closed")
)

// Limits of a group.
const (
	MaxInFlight = 65536 // exchanges
	MaxServers  = 32
)

// Exchange is a query and what became of it. It is the caller's memory: from
// Start until Exchanged it must be left alone, afterwards it may be started
// again, by this or another group. It must not be copied or overwritten as a
// whole once it was started, because late answers find it by its generation.
type Exchange struct {
	// Query is the whole query, RD and the like as wanted, with the OPT record,
	// if any, as its last record. Its ID does not matter: each try has its own, in
	// a copy. It belongs to the caller, who leaves it alone until Exchanged.
	Query []byte
	Bare  int // length of Query without its OPT record, for servers without EDNS (RFC 6891 §6.2.2); 0 where there is none
	Owner Owner

	// Gather lets the first query wait, by UDP, until Flush of the Outbox is called.
	// It is as Query.
	Gather bool

	// Response is the whole response, its question and ID checked, its ID field
	// undefined; nil where Err is not. It is valid while Exchanged runs.
	//
	// Where every server that could be tried failed with SERVFAIL, REFUSED, NOTIMP
	// or FORMERR, it is the best of those responses.
	Response []byte
	Err      error          // one of this package's, never wrapped
	Upstream uint16         // index in Config.Servers of the server whose response it is
	Server   netip.AddrPort // its address
	RTT      time.Duration  // of the try that was answered
	Tries    uint8          // queries sent for it; probes are not among them

	mu  sync.Mutex    // guards what follows, and Query, Bare and Owner while in flight
	gen atomic.Uint32 // odd while in flight; changed under mu, so that what refers to an earlier use sees it
	job job
}

// Owner is told how an Exchange ended. Exchanged is called once for each Start,
// by a goroutine of the group or within Start, Tick or Close. It must not wait; it
// may start x or another exchange.
type Owner interface{ Exchanged(x *Exchange) }

// Server is one server of a group.
type Server struct {
	Addr netip.AddrPort
	TCP  bool   // never by UDP
	Name string // for Status

	// Serial has one query at a time on a TCP connection, for servers that answer
	// the first alone, or in order: others open further connections, and wait behind
	// each other only when there are 64.
	Serial bool

	egress.Way        // how its packets leave; Linux only
	Socks5     string // address of a proxy for TCP; empty is none
}

// Select is how a group chooses the server to ask.
type Select uint8

// The ways to choose. All of them fall back to the other servers.
const (
	Fastest Select = iota // the least RTT; the others are measured now and then by a duplicate of a query
	Random                // any healthy one
	Order                 // the first healthy one
	Race                  // several at once; the first good answer wins
)

// Config is what a group is made of; DefaultConfig fills it.
type Config struct {
	Servers []Server // 1 to MaxServers
	Select  Select
	Race    int           // how many at once with Race; 0 means 2
	Hedge   bool          // ask a second server when the first takes longer than 19 of 20 answers did
	Timeout time.Duration // from Start to the end; 0 means 4 s
	MixCase bool          // random case of letters in names, checked in responses ("0x20")
	Sockets int           // UDP sockets per server; 0 means 128
}

// DefaultConfig is a group of servers as it is without other wishes.
func DefaultConfig(servers ...Server) Config {
	return Config{
		Servers: servers, Hedge: len(servers) > 1,
		Race: defaultRace, Timeout: defaultTimeout, Sockets: defaultSockets,
	}
}

// What zero means in a Config.
const (
	defaultRace    = 2
	defaultTimeout = 4 * time.Second
	defaultSockets = 128
)

// Env is what a group needs of its owner.
type Env struct {
	// Now is the time since some moment, monotonic. Any goroutine may call it.
	Now func() time.Duration
	// Wake says that something is in flight: Tick has to be called every 10 ms or
	// so, until it is false. Any goroutine may call it, within Start mostly; it must
	// not wait.
	Wake func()
	// Outbox is for the queries of Exchanges with Gather; nil sends them at once. Tick
	// flushes it too.
	Outbox *Outbox
}

// ServerStatus is what is known of one server. Numbers are since the group was
// made.
type ServerStatus struct {
	Name    string
	Addr    netip.AddrPort
	RTT     time.Duration // smoothed; 0 where it never answered
	P95     time.Duration // 19 of 20 answers were faster
	Penalty time.Duration // for recent failures; counts as RTT in the choice
	Healthy bool
	Drained bool // asked only where no other is left
	NoEDNS  bool // it is asked without OPT, for a while

	Queries    uint64 // sent, probes and tries by TCP included
	Answers    uint64 // responses that counted, failures included
	Timeouts   uint64
	Failures   uint64 // SERVFAIL, REFUSED, NOTIMP, FORMERR, malformed
	Errors     uint64 // of sockets and connections
	Truncated  uint64
	TCPQueries uint64

	Spoofs  Spoofs
	Sockets int    // UDP, open now
	Conns   int    // TCP, open now
	Opened  uint64 // sockets and connections, in all
	Latency Latency
}

// Spoofs counts messages that came to a socket and were not the answer.
type Spoofs struct {
	WrongID       uint64
	WrongQuestion uint64
	Unexpected    uint64 // no response at all
	Duplicate     uint64 // of an answer just given: harmless
}
