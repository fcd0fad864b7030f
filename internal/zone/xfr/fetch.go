package xfr

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// conversation is one connection to a primary with its queries, one at a time. It
// belongs to one goroutine.
type conversation struct {
	p      *Primary
	apex   wire.Name
	limits Limits
	conn   net.Conn
	buf    []byte // of the message at hand
	octets int64  // of all messages received
	count  int    // of messages received
	seq    sequence
}

// exchange is one query and where its response stands.
type exchange struct {
	id     uint16
	typ    uint16
	tsig   *wire.TSIG // nil without a key
	begun  bool       // the first message of the response was accepted
	cursor wire.Response
}

// serial asks for the SOA record.
func (c *conversation) serial() (uint32, error) {
	x, err := c.ask(wire.TypeSOA)
	if err != nil {
		return 0, fmt.Errorf("asking for the SOA record: %w", err)
	}
	msg, err := c.receive(x)
	if err == nil && x.tsig != nil {
		err = x.tsig.End()
	}
	if err != nil {
		return 0, fmt.Errorf("asking for the SOA record: %w", err)
	}
	serial, err := c.serialIn(x, msg)
	if err != nil {
		return 0, fmt.Errorf("asking for the SOA record: %w", err)
	}
	return serial, nil
}

// serialIn is the serial of the apex's SOA record in an authoritative response.
func (c *conversation) serialIn(x *exchange, msg []byte) (uint32, error) {
	if binary.BigEndian.Uint16(msg[2:])&wire.FlagAA == 0 {
		return 0, ErrNotAuth
	}
	var rec wire.Record
	var name [wire.MaxName]byte
	for x.cursor.Next(&rec) {
		if rec.Section != wire.Answer || rec.Type != wire.TypeSOA || rec.Class != wire.ClassIN {
			continue
		}
		owner, _, ok := wire.ReadName(name[:0], msg, rec.Start)
		rdata, whole := rec.AppendRDATA(nil, msg)
		if ok && whole && wire.EqualFold(owner, c.apex) {
			return serialOf(rdata), nil
		}
	}
	return 0, ErrNoSOA
}

// serialOf is the serial in the RDATA of an SOA record.
func serialOf(rdata []byte) uint32 { return binary.BigEndian.Uint32(rdata[len(rdata)-20:]) }

// axfr asks for the zone and hands its records out.
func (c *conversation) axfr(each func([]zonefile.Record) error) error {
	x, err := c.ask(wire.TypeAXFR)
	if err != nil {
		return fmt.Errorf("asking for the zone: %w", err)
	}
	return c.response(x, each)
}

// response reads the messages of an AXFR response up to the closing SOA record.
func (c *conversation) response(x *exchange, each func([]zonefile.Record) error) error {
	c.seq = sequence{apex: c.apex, file: c.p.Addr, most: c.limits.Records}
	for !c.seq.ended {
		msg, err := c.receive(x)
		if err != nil {
			return fmt.Errorf("reading the zone behind record %d: %w", c.seq.records, err)
		}
		batch, err := c.seq.message(&x.cursor, msg)
		if err != nil {
			return fmt.Errorf("reading the zone behind record %d: %w", c.seq.records, err)
		}
		if c.seq.ended && x.tsig != nil {
			if err := x.tsig.End(); err != nil {
				return fmt.Errorf("reading the end of the zone: %w", err)
			}
		}
		if len(batch) == 0 {
			continue
		}
		if err := each(batch); err != nil {
			return err
		}
	}
	return nil
}

// ask sends a query for the apex.
func (c *conversation) ask(typ uint16) (*exchange, error) {
	x := &exchange{typ: typ}
	var id [2]byte
	_, _ = rand.Read(id[:]) // it never fails
	x.id = binary.BigEndian.Uint16(id[:])
	q := make([]byte, wire.HeaderSize, 2*wire.MaxName)
	binary.BigEndian.PutUint16(q, x.id)
	q[5] = 1 // one question
	q = append(q, c.apex...)
	q = binary.BigEndian.AppendUint16(q, typ)
	q = binary.BigEndian.AppendUint16(q, wire.ClassIN)
	if c.p.Key != nil {
		x.tsig = wire.NewTSIG(c.p.Key)
		q = x.tsig.Sign(q, c.now())
	}
	framed := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(q)), uint16(len(q)))
	framed = append(framed, q...)
	if err := c.conn.SetDeadline(c.p.Deadline(c.limits.Idle)); err != nil {
		return nil, fmt.Errorf("setting a deadline: %w", err)
	}
	if _, err := c.conn.Write(framed); err != nil {
		return nil, fmt.Errorf("sending the query: %w", err)
	}
	return x, nil
}

// now is the clock of TSIG in seconds since 1970.
func (c *conversation) now() int64 {
	return c.p.Now().Unix()
}

// receive reads the next message of a response, checks its signature and its
// header, and sets the exchange's cursor in front of its first record. The message
// is valid until the next one.
func (c *conversation) receive(x *exchange) ([]byte, error) {
	msg, err := c.read()
	if err != nil {
		return nil, err
	}
	if len(msg) < wire.HeaderSize {
		return nil, ErrMalformed
	}
	if binary.BigEndian.Uint16(msg) != x.id {
		return nil, ErrID
	}
	if x.tsig != nil {
		rcode := wire.Rcode(msg[3] & 15)
		if msg, err = x.tsig.Verify(msg, c.now()); err != nil {
			if rcode != wire.NoError { // not proven, but it tells the operator more
				err = fmt.Errorf("%w: %w", &RcodeError{rcode}, err)
			}
			return nil, err
		}
	}
	return msg, c.header(x, msg)
}

// read reads one message with its length in front (RFC 1035 §4.2.2).
func (c *conversation) read() ([]byte, error) {
	if err := c.conn.SetReadDeadline(c.p.Deadline(c.limits.Idle)); err != nil {
		return nil, readError(err)
	}
	var size [2]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return nil, readError(err)
	}
	n := int(binary.BigEndian.Uint16(size[:]))
	if c.octets += int64(n) + 2; c.octets > c.limits.Octets {
		return nil, ErrTooLarge
	}
	if cap(c.buf) < n {
		c.buf = make([]byte, n, max(n, 16<<10))
	}
	c.count++
	c.buf = c.buf[:n]
	if _, err := io.ReadFull(c.conn, c.buf); err != nil {
		return nil, readError(err)
	}
	return c.buf, nil
}

func readError(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		return ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("waiting for the next message: %w", err)
	}
	return fmt.Errorf("reading a message: %w", err)
}

// header checks what stands in front of the records (RFC 5936 §2.2). The first
// message repeats the question; those behind it may leave it out.
func (c *conversation) header(x *exchange, msg []byte) error {
	flags := binary.BigEndian.Uint16(msg[2:])
	switch {
	case flags&wire.FlagQR == 0 || flags>>11&15 != wire.OpQuery:
		return ErrHeader
	case flags&15 != 0:
		return &RcodeError{wire.Rcode(flags & 15)}
	case flags&wire.FlagTC != 0:
		return ErrTruncated
	}
	questions := binary.BigEndian.Uint16(msg[4:])
	if questions > 1 || questions == 0 && !x.begun {
		return ErrQuestion
	}
	if questions == 1 && !c.asked(x, msg) {
		return ErrQuestion
	}
	x.begun = true
	if !x.cursor.Read(msg) {
		return ErrMalformed
	}
	return nil
}

// asked tells whether the question of msg is that of the exchange.
func (c *conversation) asked(x *exchange, msg []byte) bool {
	end := wire.UncompressedEnd(msg, wire.HeaderSize)
	if end < 0 || end+4 > len(msg) || !wire.EqualFold(msg[wire.HeaderSize:end], c.apex) {
		return false
	}
	var want [4]byte
	binary.BigEndian.PutUint16(want[:], x.typ)
	binary.BigEndian.PutUint16(want[2:], wire.ClassIN)
	return bytes.Equal(msg[end:end+4], want[:])
}
