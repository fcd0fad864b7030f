package cmd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// ProbeCmd tells what a server's TCP can do.
type ProbeCmd struct {
	ConnReuse   ProbeReuseCmd    `cmd:"" help:"Does it answer more than one query on a connection?"`
	IdleTimeout ProbeIdleCmd     `cmd:"" help:"How long does it keep a connection that is idle?"`
	Pipeline    ProbePipelineCmd `cmd:"" help:"Does it answer queries that are sent without waiting?"`
}

// probeTime is how long an answer may take.
const probeTime = 5 * time.Second

// probed is the server of a probe.
type probed struct {
	Server string `arg:"" placeholder:"tcp://ADDRESS" help:"The server, such as tcp://192.0.2.1:53."`
}

// connect opens a connection.
func (p probed) connect() (*dns.Conn, error) {
	rest, ok := strings.CutPrefix(p.Server, "tcp://")
	if !ok {
		return nil, fmt.Errorf("reading server %q: write tcp://ADDRESS; other transports are not in this version yet", p.Server)
	}
	addr, err := netip.ParseAddrPort(rest)
	if err != nil {
		a, err := netip.ParseAddr(strings.Trim(rest, "[]"))
		if err != nil {
			return nil, fmt.Errorf("reading server %q: %w", p.Server, err)
		}
		addr = netip.AddrPortFrom(a, 53)
	}
	c, err := net.DialTimeout("tcp", addr.String(), probeTime)
	if err != nil {
		return nil, err
	}
	return &dns.Conn{Conn: c}, nil
}

// ask sends a query for the root's name servers.
func ask(c *dns.Conn, id uint16) error {
	q := new(dns.Msg)
	q.SetQuestion(".", dns.TypeNS)
	q.Id = id
	_ = c.SetDeadline(time.Now().Add(probeTime))
	return c.WriteMsg(q)
}

// ProbeReuseCmd sends queries one after the other.
type ProbeReuseCmd struct{ probed }

// reuses is how many queries ProbeReuseCmd sends.
const reuses = 5

// Run tells how many were answered.
func (p *ProbeReuseCmd) Run(stdout io.Writer) error {
	c, err := p.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range uint16(reuses) {
		if err = ask(c, i+1); err == nil {
			_, err = c.ReadMsg()
		}
		if err != nil {
			_, _ = fmt.Fprintf(stdout, "%d queries were answered, then: %v\n", i, err)
			return ErrSilent
		}
	}
	_, _ = fmt.Fprintf(stdout, "%d queries were answered on one connection\n", reuses)
	return nil
}

// ProbeIdleCmd waits for the server to close the connection.
type ProbeIdleCmd struct{ probed }

// idleLongest is how long ProbeIdleCmd waits at the most.
const idleLongest = 5 * time.Minute

// Run tells when that was.
func (p *ProbeIdleCmd) Run(stdout io.Writer) error {
	c, err := p.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	if err = ask(c, 1); err == nil {
		_, err = c.ReadMsg()
	}
	if err != nil {
		return fmt.Errorf("asking the first query: %w", err)
	}
	begin := time.Now()
	_ = c.SetDeadline(begin.Add(idleLongest))
	_, err = c.Conn.Read(make([]byte, 1))
	took := time.Since(begin).Round(100 * time.Millisecond)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		_, _ = fmt.Fprintf(stdout, "still open after %v\n", took)
		return nil
	}
	_, _ = fmt.Fprintf(stdout, "closed after %v\n", took)
	return nil
}

// ProbePipelineCmd sends queries without waiting for answers.
type ProbePipelineCmd struct{ probed }

// Run tells how many were answered, and whether in their order.
func (p *ProbePipelineCmd) Run(stdout io.Writer) error {
	c, err := p.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range uint16(reuses) {
		if err := ask(c, i+1); err != nil {
			return fmt.Errorf("sending query %d: %w", i+1, err)
		}
	}
	order := "in their order"
	for i := range uint16(reuses) {
		m, err := c.ReadMsg()
		if err != nil {
			_, _ = fmt.Fprintf(stdout, "%d of %d queries were answered, then: %v\n", i, reuses, err)
			return ErrSilent
		}
		if m.Id != i+1 {
			order = "in another order"
		}
	}
	_, _ = fmt.Fprintf(stdout, "%d queries sent at once were answered, %s\n", reuses, order)
	return nil
}
