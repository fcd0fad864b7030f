//go:build !linux

package listen

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/waymark-dns/waymark/internal/stats"
)

// controlSize holds one control message of either family.
const controlSize = 64

// drainWait is how long Drain waits for what the kernel still holds.
const drainWait = 50 * time.Millisecond

// drainQueries bounds what Drain still serves, to more than a socket's buffer
// holds.
const drainQueries = 1 << 16

// batchIO is the one slot of a reader: a batch is one message.
type batchIO struct {
	query, reply, control []byte
	from                  source // of the message in the slot
}

// socketOptions prepares a socket before it is bound.
func socketOptions(network, _ string, c syscall.RawConn) error {
	var err error
	outer := c.Control(func(fd uintptr) { err = os.NewSyscallError("setsockopt", platformOptions(network, fd)) })
	return errors.Join(err, outer)
}

func (b *batchIO) open(conn *net.UDPConn, _ *UDPConfig) error {
	b.query, b.reply = make([]byte, querySize), make([]byte, replySize)
	if conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().IsUnspecified() {
		b.control = make([]byte, controlSize)
	}
	return nil
}

func (u *udpReader) steer(int) error { return errors.New("only on Linux") }

// readLoop serves one message after the other until Drain, and then what the
// kernel still holds.
func (u *udpReader) readLoop() {
	for u.serveNext(true) {
	}
	_ = u.conn.SetReadDeadline(u.cfg.Deadline(drainWait)) // it fails as the next read does
	for range drainQueries {
		if !u.serveNext(false) {
			return
		}
	}
}

// serveNext serves one message. It is false where Drain ends the reading; other
// errors, such as a port unreachable, leave the socket as good as before.
func (u *udpReader) serveNext(more bool) bool {
	n, size, _, from, err := u.conn.ReadMsgUDPAddrPort(u.query, u.control)
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
			return false
		}
		u.counts[stats.SendFailed]++
		return more
	}
	u.req.At = u.cfg.Now()
	u.from = source{from, u.control[:size]}
	out := u.serveOne(u.cfg.Entry.load(), u.query[:n:querySize], u.reply, u.from)
	u.publish()
	if out != nil && u.from.send(u.conn, out) != nil {
		u.counts[stats.SendFailed]++
	}
	return true
}

// source is where a message came from, with the control message that tells to
// which of our addresses; it belongs to the slot.
type source struct {
	from    netip.AddrPort
	control []byte
}

// addr is the address, IPv4 as such also where the socket is IPv6.
func (s source) addr() netip.AddrPort {
	return netip.AddrPortFrom(s.from.Addr().Unmap(), s.from.Port())
}

// kept is where a parked response goes; its memory is its own.
type kept = source

func (s source) keep(k *kept) {
	k.from, k.control = s.from, append(k.control[:0], s.control...)
}

// send sends one response.
func (s source) send(conn *net.UDPConn, msg []byte) error {
	_, _, err := conn.WriteMsgUDPAddrPort(msg, answerFrom(s.control), s.from)
	return err
}
