package listen

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newStream makes system calls of its own where the connection is a socket.
func newStream(c *tcpConn) stream {
	if conn, ok := c.conn.(*net.TCPConn); ok {
		if raw, err := conn.SyscallConn(); err == nil {
			s := &rawStream{c: c, raw: raw}
			s.readStep, s.writeStep = s.tryRead, s.tryWrite
			return s
		}
	}
	return &plainStream{c: c}
}

// errNothing tells that nothing has come.
var errNothing = errors.New("nothing to be read")

// rawStream reads and writes a socket. Against net.Conn it takes a workspace only
// when there is something to be read, and sets a deadline only for a write that
// has to wait.
type rawStream struct {
	c                   *tcpConn
	raw                 syscall.RawConn
	readStep, writeStep func(fd uintptr) bool
	readErr             error
	writeErr            error  // this and the rest belong to who holds the connection's write lock
	left                []byte // to be written
	patient             bool   // wait until it is
}

func (s *rawStream) read() error {
	if err := s.raw.Read(s.readStep); err != nil {
		return err
	}
	return s.readErr
}

func (s *rawStream) poll() error {
	s.readErr = errNothing
	if err := s.raw.Control(func(fd uintptr) { s.tryRead(fd) }); err != nil {
		return err
	}
	return s.readErr
}

// tryRead is false where there is nothing yet.
func (s *rawStream) tryRead(fd uintptr) bool {
	w := s.c.fetch()
	n, e := transfer(unix.SYS_RECVFROM, fd, w.free(), unix.MSG_DONTWAIT)
	if e == 0 && n > 0 {
		s.readErr = nil
		s.c.take(w, n)
		return true
	}
	s.c.t.spaces.Put(w)
	switch e {
	case 0:
		s.readErr = io.EOF
	case unix.EAGAIN:
		return false
	default:
		s.readErr = e
	}
	return true
}

func (s *rawStream) write(p []byte) error {
	s.left, s.writeErr, s.patient = p, nil, false
	err := s.raw.Write(s.writeStep)
	if err == nil && s.writeErr == nil && len(s.left) > 0 {
		s.patient = true
		if err = s.c.conn.SetWriteDeadline(s.c.t.cfg.Deadline(s.c.t.cfg.Write)); err == nil {
			err = errors.Join(s.raw.Write(s.writeStep), s.c.conn.SetWriteDeadline(time.Time{}))
		}
	}
	s.left = nil
	return errors.Join(err, s.writeErr)
}

// tryWrite is false where it has to be called again when the socket has room.
func (s *rawStream) tryWrite(fd uintptr) bool {
	for len(s.left) > 0 {
		n, e := transfer(unix.SYS_SENDTO, fd, s.left, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch e {
		case 0:
			s.left = s.left[n:]
		case unix.EAGAIN:
			return !s.patient
		default:
			s.writeErr = e
			return true
		}
	}
	return true
}

// transfer is one recv or send that does not wait.
func transfer(call, fd uintptr, p []byte, flags uintptr) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
		if e != unix.EINTR {
			return int(n), e
		}
	}
}
