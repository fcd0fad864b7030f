package upstream

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
)

const (
	maxReaders  = 4
	eventBatch  = 64
	readBatch   = 16
	maxDatagram = 1 << 16
)

// mux reads all UDP sockets of a group with a fixed number of goroutines. Each of
// them has an epoll instance for its sockets, and waits for that through the
// runtime's poller as for any file.
type mux struct {
	group   *Group
	readers []*reader
}

// reader is one of the goroutines. The runtime's poller is told of the epoll
// instance's edges, so it is read until nothing is ready; the sockets in it are
// level-triggered, so some messages of each at a time are enough.
type reader struct {
	group *Group
	file  *os.File // of the epoll instance
	epoll int
	raw   syscall.RawConn

	mu      sync.Mutex // guards what follows
	sockets []*socket  // by the number that epoll knows them by
	unused  []uint32
	closed  bool

	// The goroutine's own.
	events [eventBatch]unix.EpollEvent
	batch  [eventBatch]*socket
	in     [readBatch]mmsg
	vec    [readBatch]unix.Iovec
}

// mmsg is struct mmsghdr of recvmmsg(2), with the padding that Go and C agree on.
type mmsg struct {
	hdr  unix.Msghdr
	size uint32
}

func newMux(g *Group) (*mux, error) {
	m := &mux{group: g}
	for range min(runtime.GOMAXPROCS(0), maxReaders) {
		r, err := newReader(g)
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.readers = append(m.readers, r)
		g.wg.Go(r.readLoop)
	}
	return m, nil
}

func newReader(g *Group) (*reader, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // else os.File would not use the poller
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fd))
	}
	r := &reader{group: g, epoll: fd, file: os.NewFile(uintptr(fd), "epoll")}
	buf := make([]byte, readBatch*maxDatagram) // the system gives what is written to alone
	for i := range r.in {
		r.vec[i].Base = &buf[i*maxDatagram]
		r.vec[i].SetLen(maxDatagram)
		r.in[i].hdr.Iov = &r.vec[i]
		r.in[i].hdr.SetIovlen(1)
	}
	if r.raw, err = r.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	return r, nil
}

// close closes all sockets and ends the readers.
func (m *mux) close() error {
	var errs []error
	for _, r := range m.readers {
		r.mu.Lock()
		r.closed = true
		all := r.sockets
		r.sockets = nil
		r.mu.Unlock()
		for _, k := range all {
			if k != nil {
				k.abandon()
			}
		}
		errs = append(errs, r.file.Close())
	}
	return errors.Join(errs...)
}

// readLoop serves ready sockets until the file is closed.
func (r *reader) readLoop() {
	_ = r.raw.Read(r.step) // ends with the file
}

// step serves one batch after the other. It is false where nothing is ready.
func (r *reader) step(uintptr) bool {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(r.epoll), uintptr(unsafe.Pointer(&r.events[0])), eventBatch, 0, 0, 8)
		if e == unix.EINTR {
			continue
		}
		if e != 0 || n == 0 {
			return false
		}
		r.serve(int(n))
	}
}

// serve takes messages from each socket of the first n events.
func (r *reader) serve(n int) {
	r.mu.Lock()
	for i := range n {
		// A number may have gone to another socket since: then nothing is there.
		if at := int(r.events[i].Fd); at < len(r.sockets) {
			r.batch[i] = r.sockets[at]
		}
	}
	r.mu.Unlock()
	now := r.group.env.Now()
	for i, k := range r.batch[:n] {
		if r.batch[i] = nil; k != nil {
			r.receive(k, now)
		}
	}
}

// receive takes what k has, up to a batch.
func (r *reader) receive(k *socket, now time.Duration) {
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return
	}
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, uintptr(k.end.sock.FD()), uintptr(unsafe.Pointer(&r.in[0])), readBatch, unix.MSG_DONTWAIT, 0, 0)
	switch e {
	case 0:
	case unix.EAGAIN, unix.EINTR:
		k.mu.Unlock()
		return
	default: // such as a port that is closed
		all := k.close()
		k.mu.Unlock()
		k.failed(all, now)
		return
	}
	for i := range int(n) {
		if i > 0 {
			k.mu.Lock()
		}
		if k.closed { // by what the message before was, or meant to somebody
			k.mu.Unlock()
			return
		}
		msg := unsafe.Slice(r.vec[i].Base, r.in[i].size)
		c := k.catch(msg)
		k.mu.Unlock()
		k.handle(&c, msg, now)
	}
}

// endpoint is the system's side of a socket.
type endpoint struct {
	sock   egress.Socket
	reader *reader
	number uint32
}

// open gives k a socket of its own on a random port, connected to the server.
func (m *mux) open(k *socket) error {
	d := m.group.dice
	sock, err := k.server.cfg.Open(k.server.cfg.Addr, d)
	if err != nil {
		return err
	}
	r := m.readers[d.Between(0, len(m.readers)-1)]
	k.end = endpoint{sock: sock, reader: r}
	if err := r.watch(k); err != nil {
		return errors.Join(err, sock.Close())
	}
	return nil
}

// watch makes r read k. The epoll instance is used under the mutex, and not once
// it is closed.
func (r *reader) watch(k *socket) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	number := uint32(len(r.sockets))
	if n := len(r.unused); n > 0 {
		number = r.unused[n-1]
		r.unused = r.unused[:n-1]
	} else {
		r.sockets = append(r.sockets, nil)
	}
	k.end.number = number
	r.sockets[number] = k
	err := unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, k.end.sock.FD(), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(number)})
	if err != nil {
		r.sockets[number] = nil
		r.unused = append(r.unused, number)
	}
	return os.NewSyscallError("epoll_ctl", err)
}

// forget ends the reading of the socket with that number.
func (r *reader) forget(number uint32, fd int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	// Not left to close(2): a child that is being started may have a copy.
	_ = unix.EpollCtl(r.epoll, unix.EPOLL_CTL_DEL, fd, nil)
	r.sockets[number] = nil
	r.unused = append(r.unused, number)
}

// close is called once, when nobody uses the descriptor any more.
func (e *endpoint) close() {
	e.reader.forget(e.number, e.sock.FD())
	_ = e.sock.Close()
}
