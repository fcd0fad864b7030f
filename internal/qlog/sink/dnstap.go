package sink

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	dnstap "github.com/dnstap/golang-dnstap"
	framestream "github.com/farsightsec/golang-framestream"
	"google.golang.org/protobuf/proto"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// contentType is what frames hold.
const contentType = "protobuf:dnstap.Dnstap"

// socketProtocols are the transports of rows as dnstap numbers them. It knows DoQ as
// 7; the library does not name it.
var socketProtocols = map[string]dnstap.SocketProtocol{
	"udp": dnstap.SocketProtocol_UDP, "tcp": dnstap.SocketProtocol_TCP, "tls": dnstap.SocketProtocol_DOT,
	"https": dnstap.SocketProtocol_DOH, "http": dnstap.SocketProtocol_DOH, "h3": dnstap.SocketProtocol_DOH, "quic": 7,
}

// tap writes frames of dnstap.
type tap struct {
	identity, version []byte
	queries           bool
	message           []byte // DNS message of one row at a time
}

// openDnstap opens a sink of dnstap messages.
func openDnstap(c Config, env Env) (parts, error) {
	id, err := identity(c)
	if err != nil {
		return parts{}, err
	}
	t := &tap{identity: []byte(id), version: []byte(c.Dnstap.Version), queries: c.Dnstap.Queries}
	p := parts{encode: t.encode, rows: streamRows}
	start, stop := control(framestream.CONTROL_START, contentType), control(framestream.CONTROL_STOP)
	if c.File != "" {
		p.out = &file{path: c.File, Files: c.Files, header: start, footer: stop}
		return p, nil
	}
	network, address, _ := c.address()
	p.out = &connection{network: network, address: address, env: env, hello: shakeHands, watch: awaitFinish, bye: stop}
	return p, nil
}

// control is a control frame of Frame Streams with its escape.
func control(kind uint32, types ...string) []byte {
	f := framestream.ControlFrame{ControlType: kind}
	for _, t := range types {
		f.ContentTypes = append(f.ContentTypes, []byte(t))
	}
	var b bytes.Buffer
	_ = f.Encode(&b) // a buffer takes everything
	return b.Bytes()
}

// shakeHands is READY, ACCEPT and START of a bidirectional stream.
func shakeHands(conn net.Conn) error {
	_, err := framestream.NewWriter(conn, &framestream.WriterOptions{ContentTypes: [][]byte{[]byte(contentType)}, Bidirectional: true})
	return err
}

// awaitFinish reads FINISH, which is all that a peer says after ACCEPT.
func awaitFinish(conn net.Conn) {
	var f framestream.ControlFrame
	_ = f.DecodeTypeEscape(conn, framestream.CONTROL_FINISH) // any end is an end
}

// encode appends the frames of a row: its response, where it got one, behind its
// query, where queries are wanted.
func (t *tap) encode(dst []byte, row *qlog.Row) []byte {
	m := &dnstap.Message{QueryTimeSec: proto.Uint64(seconds(row.Time)), QueryTimeNsec: proto.Uint32(nanoseconds(row.Time))}
	address(m, row)
	if t.queries {
		t.message = appendQuery(t.message[:0], row)
		m.Type, m.QueryMessage = dnstap.Message_CLIENT_QUERY.Enum(), t.message
		dst = t.frame(dst, m)
	}
	if row.Size > 0 {
		t.message = appendResponse(t.message[:0], row)
		m.Type, m.QueryMessage, m.ResponseMessage = dnstap.Message_CLIENT_RESPONSE.Enum(), nil, t.message
		at := row.Time + int64(row.Latency)
		m.ResponseTimeSec, m.ResponseTimeNsec = proto.Uint64(seconds(at)), proto.Uint32(nanoseconds(at))
		dst = t.frame(dst, m)
	}
	return dst
}

// frame appends a data frame.
func (t *tap) frame(dst []byte, m *dnstap.Message) []byte {
	at := len(dst)
	whole := &dnstap.Dnstap{Type: dnstap.Dnstap_MESSAGE.Enum(), Identity: t.identity, Version: t.version, Message: m}
	out, err := proto.MarshalOptions{}.MarshalAppend(append(dst, 0, 0, 0, 0), whole)
	if err != nil {
		panic(fmt.Sprintf("sink: a message of dnstap lacks what it must have: %v", err))
	}
	binary.BigEndian.PutUint32(out[at:], uint32(len(out)-at-4))
	return out
}

func seconds(us int64) uint64 { return uint64(us / 1e6) }

func nanoseconds(us int64) uint32 { return uint32(us % 1e6 * 1e3) }

// address sets where the query came from, if the log tells it.
func address(m *dnstap.Message, row *qlog.Row) {
	if p, ok := socketProtocols[row.Protocol]; ok {
		m.SocketProtocol = p.Enum()
	}
	a, err := netip.ParseAddr(row.Client)
	if err != nil {
		return // a pseudonym
	}
	m.SocketFamily = dnstap.SocketFamily_INET6.Enum()
	if a.Is4() {
		m.SocketFamily = dnstap.SocketFamily_INET.Enum()
	}
	m.QueryAddress, m.QueryPort = a.AsSlice(), proto.Uint32(uint32(row.ClientPort))
}
