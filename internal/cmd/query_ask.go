package cmd

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

// reply is a response and how it came.
type reply struct {
	msg       *dns.Msg
	size      int // octets on the wire
	took      time.Duration
	server    string // address and port that answered
	proto     string // "udp" or "tcp"
	truncated bool   // came over TCP because it was cut over UDP
}

// message is the query to send.
func (l *lookup) message() *dns.Msg {
	m := new(dns.Msg)
	m.Id = dns.Id()
	if l.head.idGiven {
		m.Id = l.head.id
	}
	m.Opcode = l.head.opcode
	m.RecursionDesired, m.AuthenticatedData, m.CheckingDisabled = l.head.rd, l.head.ad, l.head.cd
	m.Question = []dns.Question{{Name: l.name, Qtype: l.rtype, Qclass: l.class}}
	if l.edns.on {
		m.Extra = append(m.Extra, l.edns.record())
	}
	return m
}

// record is the OPT record.
func (e *lookupEDNS) record() *dns.OPT {
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	opt.SetVersion(e.version)
	opt.SetUDPSize(e.size)
	opt.SetDo(e.do)
	if e.nsid {
		opt.Option = append(opt.Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})
	}
	if e.subnet.IsValid() {
		family := uint16(1)
		if e.subnet.Addr().Is6() {
			family = 2
		}
		opt.Option = append(opt.Option, &dns.EDNS0_SUBNET{
			Code: dns.EDNS0SUBNET, Family: family,
			SourceNetmask: uint8(e.subnet.Bits()), Address: e.subnet.Addr().AsSlice(),
		})
	}
	return opt
}

// ask sends the query until a response comes, and asks again over TCP when it
// was truncated (RFC 7766 §5).
func (l *lookup) ask() (*reply, error) {
	query := l.message()
	wire, err := query.Pack()
	if err != nil {
		return nil, fmt.Errorf("writing the query for %s: %w", l.name, err)
	}
	proto := "udp"
	if l.way.tcp {
		proto = "tcp"
	}
	r, err := l.attempts(proto, query, wire)
	if err != nil || !r.msg.Truncated || proto == "tcp" || l.way.ignoreTC {
		return r, err
	}
	r, err = l.attempts("tcp", query, wire)
	if err != nil {
		return nil, fmt.Errorf("asking again over TCP, for the response over UDP was truncated: %w", err)
	}
	r.truncated = true
	return r, nil
}

// attempts tries as often as the lookup says, TCP once: there the kernel
// repeats what is lost.
func (l *lookup) attempts(proto string, query *dns.Msg, wire []byte) (*reply, error) {
	tries := l.way.tries
	if proto == "tcp" {
		tries = 1
	}
	var r *reply
	var err error
	for range tries {
		if r, err = l.exchange(proto, query, wire); err == nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("no answer from %s over %s: %w", net.JoinHostPort(l.server, l.port), strings.ToUpper(proto), plainError(err))
}

// exchange sends once and waits for the response to this query; others that
// come in the meantime are passed over.
func (l *lookup) exchange(proto string, query *dns.Msg, wire []byte) (*reply, error) {
	raw, err := net.DialTimeout(proto, net.JoinHostPort(l.server, l.port), l.way.timeout)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	start := time.Now()
	if err := raw.SetDeadline(start.Add(l.way.timeout)); err != nil {
		return nil, err
	}
	conn := dns.Conn{Conn: raw}
	if _, err := conn.Write(wire); err != nil {
		return nil, err
	}
	buf := make([]byte, dns.MaxMsgSize)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return nil, err
		}
		msg := new(dns.Msg)
		if err := msg.Unpack(buf[:n]); err != nil {
			if msg.Id != query.Id {
				continue
			}
			return nil, fmt.Errorf("reading a response of %d octets: %w", n, err)
		}
		if answers(msg, query) {
			return &reply{msg: msg, size: n, took: time.Since(start), server: raw.RemoteAddr().String(), proto: proto}, nil
		}
	}
}

// answers says whether the message is a response to the query. A response that
// repeats no question is taken: a server that could not read it has none.
func answers(msg, query *dns.Msg) bool {
	if msg.Id != query.Id || !msg.Response {
		return false
	}
	if len(msg.Question) == 0 {
		return true
	}
	got, want := msg.Question[0], query.Question[0]
	return got.Qtype == want.Qtype && got.Qclass == want.Qclass && sameName(got.Name, want.Name)
}

// sameName compares names as the wire has them: one name may be written with
// other escapes.
func sameName(a, b string) bool {
	x, errX := wire.ParseName(a)
	y, errY := wire.ParseName(b)
	return errX == nil && errY == nil && wire.EqualFold(x, y)
}

// plainError drops what net's errors repeat (the operation and both addresses).
func plainError(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errors.New("timed out")
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
