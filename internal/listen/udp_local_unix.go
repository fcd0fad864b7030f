//go:build darwin || dragonfly || freebsd || openbsd

package listen

import (
	"net/netip"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Options that the syscall packages of some systems lack.
const (
	ipRecvPktinfo = 26      // macOS: IP_RECVPKTINFO, and IP_PKTINFO
	reusePortLB   = 0x10000 // FreeBSD: SO_REUSEPORT_LB, spread over the sockets
)

// platformOptions lets many sockets have one port and makes the kernel tell to
// which address each message came.
func platformOptions(network string, p uintptr) error {
	fd := int(p)
	reuse := unix.SO_REUSEPORT
	if runtime.GOOS == "freebsd" {
		reuse = reusePortLB
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, reuse, 1); err != nil {
		return err
	}
	if network != "udp4" {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
	option := unix.IP_RECVDSTADDR // the number is IP_SENDSRCADDR's too
	if runtime.GOOS == "darwin" {
		option = ipRecvPktinfo
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, option, 1)
}

// answerFrom makes the control message that came with a query the one that its
// response leaves with: it is the same, without the interface where the address
// says enough.
func answerFrom(control []byte) []byte {
	if len(control) < unix.CmsgLen(unix.SizeofInet6Pktinfo) {
		return control
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	if h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO {
		p := (*unix.Inet6Pktinfo)(unsafe.Pointer(&control[unix.CmsgLen(0)]))
		if !netip.AddrFrom16(p.Addr).IsLinkLocalUnicast() {
			p.Ifindex = 0
		}
	}
	return control
}

// SharesPort tells whether several sockets can have one port, as several workers
// need.
const SharesPort = true
