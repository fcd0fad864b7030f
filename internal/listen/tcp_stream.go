package listen

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/stats"
	"github.com/waymark-dns/waymark/internal/wire"
)

// lengthSize is the octets of a message's length on a stream (RFC 1035 §4.2.2).
const lengthSize = 2

// readSize is what is read at once, unless one message is longer. It holds some
// hundred queries.
const readSize = 16 << 10

// flushSize is how many octets of responses are gathered before they are sent.
const flushSize = 32 << 10

// workspace is what serving takes. A connection has one only while it serves, so
// that there are about as many as processors, not as connections. Octets stand
// last: the collector does not look at them, and pages that no message reaches
// cost nothing.
type workspace struct {
	req      serve.Request
	counts   stats.Batch
	from, to int // in[from:to] has come and is not served yet
	size     int // of out, ready to be sent
	ready    int // responses in that
	in       [lengthSize + wire.MaxMessage]byte
	out      [flushSize + lengthSize + wire.MaxMessage]byte
}

// next takes the next message, without its length, if it has come whole.
func (w *workspace) next() (msg []byte, whole bool) {
	have := w.in[w.from:w.to]
	if len(have) < lengthSize {
		return nil, false
	}
	end := lengthSize + int(binary.BigEndian.Uint16(have))
	if len(have) < end {
		return nil, false
	}
	w.from += end
	return have[lengthSize:end:end], true
}

// free is where the next octets go: never empty, and long enough for the whole
// of a message that has begun. from is 0.
func (w *workspace) free() []byte {
	end := readSize
	if w.to >= lengthSize {
		end = max(end, lengthSize+int(binary.BigEndian.Uint16(w.in[:])))
	}
	return w.in[w.to:end]
}

// room is where the next response goes.
func (w *workspace) room() []byte {
	return w.out[w.size+lengthSize:][:wire.MaxMessage:wire.MaxMessage]
}

// add puts a response, which stands in room, behind those that are ready.
func (w *workspace) add(response []byte) {
	w.size += len(frame(w.out[w.size:], response))
	w.ready++
}

// frame puts the length of msg before it; msg stands in buf already, behind the
// room for that.
func frame(buf, msg []byte) []byte {
	binary.BigEndian.PutUint16(buf, uint16(len(msg)))
	return buf[:lengthSize+len(msg)]
}

// fetch is a workspace that begins with what c had left.
func (c *tcpConn) fetch() *workspace {
	w := c.t.spaces.Get().(*workspace)
	w.from, w.to = 0, copy(w.in[:], c.rest)
	return w
}

// take makes w, with n more octets in it, the one that c serves from.
func (c *tcpConn) take(w *workspace, n int) {
	w.to += n
	w.req.Client, w.req.Local, w.req.Peer = c.client, c.local, c.t.cfg.Peer
	w.req.Gather = c.t.cfg.Flush != nil
	c.work = w
}

// restKept is how much memory a connection keeps for the beginning of a message
// that has not come whole: most queries are shorter.
const restKept = 512

// putBack gives w away; what is not served stays with c.
func (c *tcpConn) putBack(w *workspace) {
	c.rest = append(c.rest[:0], w.in[w.from:w.to]...)
	if len(c.rest) == 0 && cap(c.rest) > restKept {
		c.rest = nil
	}
	c.work = nil
	c.t.spaces.Put(w)
}

// stream is how the octets of a connection come and go. read and poll leave them
// in the connection's workspace; read waits, poll is for what has come already
// and has an error where there is nothing. write writes all, within the time that
// a client may take.
type stream interface {
	read() error
	poll() error
	write(p []byte) error
}

// pollTime is how long plainStream waits for what has come already: net.Conn
// cannot be asked without waiting.
const pollTime = 50 * time.Millisecond

// plainStream works on any net.Conn, with reads no longer than first.
type plainStream struct {
	c     *tcpConn
	first [restKept]byte
}

func (s *plainStream) read() error {
	// What is left and what is read have to fit into a workspace.
	buf := s.first[:min(len(s.first), lengthSize+wire.MaxMessage-len(s.c.rest))]
	n, err := s.c.conn.Read(buf)
	if n == 0 {
		if err == nil {
			err = io.ErrNoProgress
		}
		return err
	}
	w := s.c.fetch()
	s.c.take(w, copy(w.in[w.to:], buf[:n]))
	return nil
}

func (s *plainStream) poll() error {
	if err := s.c.conn.SetReadDeadline(s.c.t.cfg.Deadline(pollTime)); err != nil {
		return err
	}
	return s.read()
}

func (s *plainStream) write(p []byte) error {
	if err := s.c.conn.SetWriteDeadline(s.c.t.cfg.Deadline(s.c.t.cfg.Write)); err != nil {
		return err
	}
	_, err := s.c.conn.Write(p)
	return err
}
