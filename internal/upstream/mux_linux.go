package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	maxReaders   = 4
	eventBatch   = 64
	socketBuffer = 256 << 10
	readBatch    = 16
	maxDatagram  = 1 << 16
	portsTried   = 5
	lowestPort   = 1024
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
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, uintptr(k.end.fd), uintptr(unsafe.Pointer(&r.in[0])), readBatch, unix.MSG_DONTWAIT, 0, 0)
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
	fd     int
	reader *reader
	number uint32
	whole  bool // the kernel, or the way out, does not cut messages
}

// open gives k a socket of its own on a random port, connected to the server.
func (m *mux) open(k *socket) error {
	d := m.group.dice
	fd, err := newSocket(&k.server.cfg, d)
	if err != nil {
		return err
	}
	r := m.readers[d.between(0, len(m.readers)-1)]
	k.end = endpoint{fd: fd, reader: r}
	if err := r.watch(k); err != nil {
		return errors.Join(err, unix.Close(fd))
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
	err := unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, k.end.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(number)})
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
	e.reader.forget(e.number, e.fd)
	_ = unix.Close(e.fd)
}

// write sends one message.
func (e *endpoint) write(msg []byte) error {
	for {
		_, _, err := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(e.fd), uintptr(unsafe.Pointer(&msg[0])), uintptr(len(msg)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch err {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return asFull(err)
		}
	}
}

// asFull is errFull where the socket is as good as before.
func asFull(err error) error {
	switch err {
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM, unix.EMSGSIZE:
		return errFull
	}
	return err
}

// newSocket is a UDP socket on a random port, connected to a server.
func newSocket(s *Server, d *dice) (int, error) {
	addr := s.Addr
	family, level, option, omit := unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT
	if !addr.Addr().Unmap().Is4() {
		family, level, option, omit = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_OMIT
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	// Buffers as large as the system allows. The path's MTU is ignored, so that
	// nobody can lower it by forged messages.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer)
	_ = unix.SetsockoptInt(fd, level, option, omit)
	to, err := sockaddr(addr)
	if err == nil {
		err = s.leaveBy(fd)
	}
	if err == nil {
		err = bindSomewhere(fd, family, d)
	}
	if err == nil {
		err = os.NewSyscallError("connect", unix.Connect(fd, to))
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// bindSomewhere binds to a random port, or to one of the system's choice where
// those tried are all taken.
func bindSomewhere(fd, family int, d *dice) error {
	for range portsTried {
		if bind(fd, family, d.between(lowestPort, 65535)) == nil {
			return nil
		}
	}
	return os.NewSyscallError("bind", bind(fd, family, 0))
}

func bind(fd, family, port int) error {
	if family == unix.AF_INET {
		return unix.Bind(fd, &unix.SockaddrInet4{Port: port})
	}
	return unix.Bind(fd, &unix.SockaddrInet6{Port: port})
}

// sockaddr is addr as the system wants it. The zone of a link-local address is the
// name or number of an interface.
func sockaddr(addr netip.AddrPort) (unix.Sockaddr, error) {
	ip := addr.Addr().Unmap()
	if ip.Is4() {
		return &unix.SockaddrInet4{Port: int(addr.Port()), Addr: ip.As4()}, nil
	}
	sa := &unix.SockaddrInet6{Port: int(addr.Port()), Addr: ip.As16()}
	zone := ip.Zone()
	if zone == "" {
		return sa, nil
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		sa.ZoneId = uint32(n)
		return sa, nil
	}
	i, err := net.InterfaceByName(zone)
	if err != nil {
		return nil, fmt.Errorf("finding the interface of %s: %w", addr, err)
	}
	sa.ZoneId = uint32(i.Index)
	return sa, nil
}
