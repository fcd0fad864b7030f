package egress

import (
	"encoding/binary"
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Queries of one length go to the kernel as one message that it cuts itself
// (UDP_SEGMENT), so that the way to the server is looked up once for all of them.

// maxPiece is the most octets of a piece: the kernel cuts none that are longer
// than a packet on the way out, and this fits every way that IPv6 takes.
const maxPiece = 1280 - 40 - 8

// WriteBatch sends what has not been sent of g, whose order is by length. It notes in g
// how far it came.
func (e *Socket) WriteBatch(g *Batch) error {
	for g.done < len(g.ends) {
		n := 1
		if !e.whole {
			n = g.run()
		}
		if n > 1 {
			err := e.writeRun(g, n)
			if err == nil {
				g.done += n
				continue
			}
			if e.whole = cannotCut(err); !e.whole {
				return asFull(err)
			}
		}
		if err := e.Write(g.At(g.done)); err != nil {
			return err
		}
		g.done++
	}
	return nil
}

// run is how many of the next queries can be one message: all of one length, but for
// a shorter last one.
func (g *Batch) run() int {
	size := len(g.At(g.done))
	if size > maxPiece {
		return 1
	}
	n := 1
	for g.done+n < len(g.ends) {
		next := len(g.At(g.done + n))
		n++
		if next < size {
			break
		}
	}
	return n
}

// writeRun sends n queries as one message.
func (e *Socket) writeRun(g *Batch, n int) error {
	var pieces [MaxBatch]unix.Iovec
	for i := range n {
		msg := g.At(g.done + i)
		pieces[i] = unix.Iovec{Base: &msg[0]}
		pieces[i].SetLen(len(msg))
	}
	var control [32]byte
	c := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	c.Level, c.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	c.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], uint16(len(g.At(g.done))))
	h := unix.Msghdr{Iov: &pieces[0], Control: &control[0]}
	h.SetIovlen(n)
	h.SetControllen(unix.CmsgSpace(2))
	for {
		_, _, err := syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(e.fd), uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if err == 0 {
			return nil
		}
		if err != unix.EINTR {
			return err
		}
	}
}

// cannotCut tells whether the kernel, or the way out, does not cut messages.
func cannotCut(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EMSGSIZE)
}
