package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	socketBuffer = 256 << 10
	portsTried   = 5
	// LowestPort is the lowest that a query leaves from.
	LowestPort = 1024
)

// Socket is a UDP socket that is connected to a server.
type Socket struct {
	fd    int
	whole bool // the kernel, or the way out, does not cut messages
}

// FD is its descriptor.
func (e *Socket) FD() int { return e.fd }

// Close closes it; nobody may use the descriptor any more.
func (e *Socket) Close() error { return unix.Close(e.fd) }

// Write sends one message. It does not wait.
func (e *Socket) Write(msg []byte) error {
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

// asFull is ErrFull where the socket is as good as before.
func asFull(err error) error {
	switch err {
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM, unix.EMSGSIZE:
		return ErrFull
	}
	return err
}

// Open opens a UDP socket on a random port, connected to addr.
func (w *Way) Open(addr netip.AddrPort, d *Dice) (Socket, error) {
	fd, err := w.open(addr, d)
	return Socket{fd: fd}, err
}

func (w *Way) open(addr netip.AddrPort, d *Dice) (int, error) {
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
		err = w.Take(fd)
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
func bindSomewhere(fd, family int, d *Dice) error {
	for range portsTried {
		if bind(fd, family, d.Between(LowestPort, 65535)) == nil {
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
