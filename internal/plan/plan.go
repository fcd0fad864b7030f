// Package plan is the whole configuration as plain structs. Both front ends
// (simple sections, mosdns plugins) produce it, app turns it into a running
// server. It knows no file format; every value that can be wrong carries the
// position it was written at.
package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Pos is where a value stands in a configuration file. The zero Pos means that
// the value came from the command line or is a default.
type Pos struct {
	File         string
	Line, Column int
}

// String is "file:line:column", or "command line" for the zero Pos.
func (p Pos) String() string {
	if p.File == "" {
		return "command line"
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is one thing that is wrong with a configuration, with its mend.
type Problem struct {
	Pos  Pos
	Text string // what is wrong
	Mend string // what to write instead; may be empty

	// ZoneFile tells that a zone's file cannot be read, and nothing else: a running
	// server goes on with the version that it has.
	ZoneFile bool
}

// Error is one line: position, what is wrong, the mend.
func (p Problem) Error() string {
	if p.Mend == "" {
		return p.Pos.String() + ": " + p.Text
	}
	return p.Pos.String() + ": " + p.Text + " (" + p.Mend + ")"
}

// Plan is a configuration, ready to be started. It is never changed once made.
type Plan struct {
	Listen    []Listen
	Zones     []Zone
	Forward   []Forward
	Cache     Cache
	Access    Access
	Limits    Limits
	Views     []View // the first that fits is taken; a client that fits none has the view without a name
	Server    Server
	Log       Log
	QueryLog  QueryLog
	Metrics   Metrics
	Control   Control
	API       API
	ZoneStore ZoneStore
	Keys      []TSIGKey
	Programs  []Program // of the policy; a query enters the one of its listener
	Objects   []Object  // that programs refer to, each behind those that it refers to
	Rules     []Rule    // of level 1: the site's own, which its program has

	// Level2 tells that plugins were written, as mosdns has them: then everyone may
	// ask, unless Access says something else.
	Level2 bool

	// Where has the position of every key that was written, by its path in the
	// configuration ("server.udp-size", "zones[2].file"); the empty path is the
	// configuration itself. It may be nil. Use At to read it.
	Where map[string]Pos
}

// At is the position of the key with this path, or of the nearest key around
// it that was written; the zero Pos if there is none.
func (p *Plan) At(path string) Pos {
	for {
		if pos, ok := p.Where[path]; ok || path == "" {
			return pos
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// Listen is one address to answer on.
type Listen struct {
	Pos    Pos
	Scheme string // "udp" or "tcp"
	Addr   netip.AddrPort
	Entry  string        // tag of the program or object that queries enter; empty is the first program
	Idle   time.Duration // of stream listeners; 0 is the server's
}

// String is the URL form, as it is written in a configuration.
func (l Listen) String() string { return l.Scheme + "://" + l.Addr.String() }

// Zone is one zone served from a master file.
type Zone struct {
	Pos  Pos
	Name wire.Name // folded to lower case
	File string    // absolute, or relative to the working directory
	// Views that see it; empty is all. A view's own zone stands in place of one
	// that all see.
	Views []string
}

// Server holds limits and identity. DefaultServer has the defaults.
type Server struct {
	Workers  int    // UDP sockets and goroutines per listener; 0 is one per CPU
	User     string // user to become after binding; empty stays
	Group    string // group to become; empty is the user's own
	ID       string // NSID and CHAOS id.server; empty is off
	Version  string // CHAOS version.bind; empty is off
	Watch    bool   // reload zones whose file changes
	UDPSize  int    // largest response over UDP, octets
	Parked   int    // requests that may wait at once
	Drain    time.Duration
	CPUSteer bool // let the kernel hand packets to the socket of the receiving CPU
	TCP      TCP
	History  History
}

// TCP holds the limits of stream listeners.
type TCP struct {
	Conns     int           // connections at once, per listener
	PerClient int           // connections at once from one client address
	Inflight  int           // queries in flight on one connection
	Idle      time.Duration // a connection without a query is closed after
	Total     time.Duration // any connection is closed after
	Write     time.Duration // a client that does not read is dropped after
}

// Log is the program's own log, not the query log.
type Log struct {
	Level string // debug, info, warn, error
	File  string // empty is standard error
	JSON  bool   // lines are JSON objects
}

// Metrics is where Prometheus text is served; an invalid address is off.
type Metrics struct {
	Pos    Pos
	Listen netip.AddrPort
}

// Control is the socket of the command line; an empty path is off.
type Control struct {
	Pos  Pos
	Path string
}
