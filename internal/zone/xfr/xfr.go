// Package xfr transfers zones from their primaries: AXFR (RFC 5936) over TCP or
// what the caller dials, signed by TSIG (RFC 8945) where there is a key. It hands
// out records as they come and keeps no zone: whoever calls it (the zone store, a
// policy zone, a local copy of the root) builds a version from them aside and
// throws it away where the transfer ends in an error.
//
// Files in the order a transfer meets them: xfr.go (what is asked for), fetch.go
// (connection, queries, messages), sequence.go (which records may come next).
package xfr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// Errors of what a primary sends. Those of TSIG are in package wire.
var (
	ErrID        = errors.New("message with another ID than the query's")
	ErrHeader    = errors.New("message is not a response to a query")
	ErrQuestion  = errors.New("message with another question than the query's")
	ErrTruncated = errors.New("message is marked as truncated")
	ErrMalformed = errors.New("malformed message")
	ErrEmpty     = errors.New("message without records")
	ErrNotAuth   = errors.New("primary is not authoritative for the zone")
	ErrNoSOA     = errors.New("response does not begin with the zone's SOA record")
	ErrSerial    = errors.New("SOA serial changed during the transfer")
	ErrExtraSOA  = errors.New("SOA record at a name that is not the apex")
	ErrAfterEnd  = errors.New("records behind the closing SOA record")
	ErrOutOfZone = errors.New("record outside the zone")
	ErrRecord    = errors.New("record that cannot be in a zone")
	ErrClosed    = errors.New("connection closed before the closing SOA record")
	ErrTooMany   = errors.New("zone has more records than allowed")
	ErrTooLarge  = errors.New("transfer has more octets than allowed")
)

// RcodeError is a response that tells an error instead of records.
type RcodeError struct{ Rcode wire.Rcode }

// Error names the response code.
func (e *RcodeError) Error() string { return "primary answered " + e.Rcode.String() }

// Limits bound what one transfer may cost. A zero takes the default.
type Limits struct {
	Records int           // 100,000,000
	Octets  int64         // of all messages, 16 GiB
	Total   time.Duration // from the dial to the last message, 2 hours
	Idle    time.Duration // for the dial, and for each message to come whole, 30 seconds
}

func (l Limits) withDefaults() Limits {
	if l.Records <= 0 {
		l.Records = 100_000_000
	}
	if l.Octets <= 0 {
		l.Octets = 16 << 30
	}
	if l.Total <= 0 {
		l.Total = 2 * time.Hour
	}
	if l.Idle <= 0 {
		l.Idle = 30 * time.Second
	}
	return l
}

// Primary is a server that zones are transferred from. It is never changed once
// it is in use, and any number of transfers may use it at once.
type Primary struct {
	Addr   string        // host and port; names the primary in errors
	Key    *wire.TSIGKey // nil for transfers without TSIG
	Limits Limits
	// Dial makes the connection; nil dials TCP to Addr. Whoever wants TLS (RFC
	// 9103) sets it.
	Dial func(ctx context.Context) (net.Conn, error)
	// Now is the clock that TSIG times are compared with. Deadline is when a time from
	// now is over, by the clock of connections.
	Now      func() time.Time
	Deadline func(time.Duration) time.Time
}

// Have is the version of the zone that the caller holds.
type Have struct {
	Serial uint32
	Known  bool // false where there is none: the zone is transferred in any case
}

// Result is what became of a transfer.
type Result struct {
	Serial    uint32 // of the primary
	Unchanged bool   // the primary's serial is not newer than the caller's: nothing was transferred
	Records   int    // handed out, the closing SOA record not counted
	Octets    int64  // of all messages that were received
	Messages  int
}

// Serial asks the primary for the serial of its version of the zone.
func (p *Primary) Serial(ctx context.Context, apex wire.Name) (uint32, error) {
	var serial uint32
	err := p.connected(ctx, apex, func(c *conversation) error {
		var err error
		serial, err = c.serial()
		return err
	})
	return serial, err
}

// Fetch asks for the serial, and, where it is newer than have (RFC 1982), for the
// zone, on the same connection. Records are handed to each in batches, a message
// at a time, the apex's SOA record first and once; File is the primary's address
// and Line the number of the record from 1. A batch is valid until each returns;
// an error of each ends the transfer and is returned wrapped. After an error the
// caller discards what it was handed: with TSIG, messages are only proven once
// Fetch has returned nil.
func (p *Primary) Fetch(ctx context.Context, apex wire.Name, have Have, each func([]zonefile.Record) error) (Result, error) {
	var result Result
	err := p.connected(ctx, apex, func(c *conversation) error {
		serial, err := c.serial()
		if err != nil {
			return err
		}
		if result.Serial = serial; have.Known && !newer(serial, have.Serial) {
			result.Unchanged = true
			return nil
		}
		if err = c.axfr(each); err != nil {
			return err
		}
		result.Serial, result.Records = c.seq.serial, c.seq.records // the zone may have changed since the first query
		result.Octets, result.Messages = c.octets, c.count
		return nil
	})
	return result, err
}

// connected dials, calls do, and closes.
func (p *Primary) connected(ctx context.Context, apex wire.Name, do func(*conversation) error) error {
	limits := p.Limits.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, limits.Total)
	defer cancel()
	err := p.converse(ctx, &conversation{p: p, apex: apex.Fold(), limits: limits}, do)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return fmt.Errorf("transferring zone %s from %s: %w", apex, p.Addr, err)
	}
	return nil
}

func (p *Primary) converse(ctx context.Context, c *conversation, do func(*conversation) error) error {
	dialCtx, cancel := context.WithTimeout(ctx, c.limits.Idle)
	defer cancel()
	dial := p.Dial
	if dial == nil {
		dial = func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", p.Addr)
		}
	}
	conn, err := dial(dialCtx)
	if err != nil {
		return fmt.Errorf("dialling: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends a read or write under way
	defer stop()
	c.conn = conn
	return do(c)
}

// newer tells whether serial a is newer than b (RFC 1982 §3.2).
func newer(a, b uint32) bool { return a != b && a-b < 1<<31 }
