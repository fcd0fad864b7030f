package sink

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// priority is facility daemon (3) and severity informational (6), RFC 5424 §6.2.1.
const priority = 3*8 + 6

// syslog writes messages of RFC 5424.
type syslog struct {
	tail    []byte // of the header, behind the time
	count   bool   // octets in front of a message (RFC 6587 §3.4.1)
	message []byte // of one row at a time, with count
}

// openSyslog opens a sink of syslog messages.
func openSyslog(c Config, env Env) (parts, error) {
	host, err := identity(c)
	if err != nil {
		return parts{}, err
	}
	network, address, _ := c.address()
	out := &connection{network: network, address: address, env: env}
	switch network {
	case "tcp":
		out.watch = discard
	case "unix":
		out.network, out.packets = "unixgram", true
	default:
		out.packets = true
	}
	s := &syslog{tail: fmt.Appendf(nil, " %s waymark %d query - ", host, os.Getpid()), count: network == "tcp"}
	return parts{encode: s.encode, out: out, rows: streamRows}, nil
}

// identity is what the configuration calls this server, or the name of the host.
func identity(c Config) (string, error) {
	if c.Dnstap.Identity != "" {
		return c.Dnstap.Identity, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("finding the host's name: %w", err)
	}
	return cmp.Or(host, "-"), nil
}

// encode appends a message, with its length in front where it has one.
func (s *syslog) encode(dst []byte, row *qlog.Row) []byte {
	if !s.count {
		return s.appendMessage(dst, row)
	}
	s.message = s.appendMessage(s.message[:0], row)
	dst = append(strconv.AppendInt(dst, int64(len(s.message)), 10), ' ')
	return append(dst, s.message...)
}

// appendMessage appends HEADER, no STRUCTURED-DATA and MSG (RFC 5424 §6). JSON is
// UTF-8 by itself, so there is no BOM, which many collectors would show.
func (s *syslog) appendMessage(dst []byte, row *qlog.Row) []byte {
	dst = append(strconv.AppendInt(append(dst, '<'), priority, 10), ">1 "...)
	dst = time.UnixMicro(row.Time).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
	return appendJSON(append(dst, s.tail...), row)
}
