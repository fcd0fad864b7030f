package listen

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/waymark-dns/waymark/internal/stats"
)

// batchSize is how many messages one system call receives or sends.
const batchSize = 32

// socketBuffer is asked for both ways: at 1,000,000 queries a second it holds the
// packets of a few milliseconds, the time a collection of garbage may take.
const socketBuffer = 4 << 20

// drainBatches is more than a socket buffer holds, so that a flood does not keep
// the server from stopping.
const drainBatches = socketBuffer / (256 * batchSize)

// controlSize holds one PKTINFO control message of either family and one
// UDP_SEGMENT.
const controlSize = 64

// SharesPort tells whether several sockets can have one port, as several workers
// need.
const SharesPort = true

// mmsg is struct mmsghdr of recvmmsg(2), with the padding that Go and C agree on.
type mmsg struct {
	hdr  unix.Msghdr
	size uint32
}

// batchIO is the slots of one reader: slot i has in[i] and out[i] with a buffer
// each. Its pointers are into memory that lives as long as the reader.
type batchIO struct {
	raw      syscall.RawConn
	in, out  [batchSize]mmsg
	inVec    [batchSize]unix.Iovec
	outVec   [batchSize]unix.Iovec
	names    [batchSize]unix.RawSockaddrInet6
	queries  []byte
	replies  []byte
	controls []byte // of both directions, controlSize for each slot
	readErr  syscall.Errno
	step     func(fd uintptr) bool

	pktinfo bool             // the kernel tells which address a query came to
	from    [batchSize]uint8 // slot of each response
	whole   bool             // the kernel, or the way out, does not cut messages
}

// socketOptions prepares a socket before it is bound.
func socketOptions(network, _ string, c syscall.RawConn) error {
	var err error
	set := func(fd, level, opt, value int) {
		if err == nil {
			err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, level, opt, value))
		}
	}
	outer := c.Control(func(p uintptr) {
		fd := int(p)
		set(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		buffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
		buffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
		// The path's MTU is ignored, so that nobody can lower it by forged
		// messages; responses are small enough (RFC 9715).
		if network == "udp4" {
			set(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT)
			set(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
			return
		}
		set(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_OMIT)
		set(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		// For the IPv4 that the socket may take as well: Go calls it udp6 either way.
		set(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT)
	})
	return errors.Join(err, outer)
}

// buffer asks for large buffers, beyond the system's limit where we may.
func buffer(fd, force, plain int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, socketBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, socketBuffer) // as much as the system allows
	}
}

func (b *batchIO) open(conn *net.UDPConn, c *UDPConfig) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	b.raw = raw
	b.queries = make([]byte, batchSize*querySize)
	b.replies = make([]byte, batchSize*replySize)
	b.controls = make([]byte, batchSize*controlSize)
	b.pktinfo = conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().IsUnspecified()
	if !b.pktinfo {
		raw.Control(func(fd uintptr) { // costs 3 % and tells nothing new
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 0)
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 0)
		})
	}
	for i := range b.in {
		b.inVec[i] = unix.Iovec{Base: &b.queries[i*querySize], Len: querySize}
		h := &b.in[i].hdr
		h.Name, h.Iov, h.Iovlen = (*byte)(unsafe.Pointer(&b.names[i])), &b.inVec[i], 1
		if b.pktinfo {
			h.Control = &b.controls[i*controlSize]
		}
	}
	return nil
}

// steer makes the kernel choose the socket by the CPU that received the packet.
func (u *udpReader) steer(sockets int) error {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0xfffff000 + 36}, // SKF_AD_OFF + SKF_AD_CPU
		{Code: unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K, K: uint32(sockets)},
		{Code: unix.BPF_RET | unix.BPF_A},
	}
	var err error
	outer := u.raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
	return errors.Join(os.NewSyscallError("setsockopt", err), outer)
}

// readLoop serves batches until Drain, and then what the kernel still holds. It
// is an ordinary goroutine: the network poller waits for it.
func (u *udpReader) readLoop() {
	u.step = u.batch
	for u.raw.Read(u.step) == nil {
		if u.readErr != 0 {
			u.readErr = 0
			u.counts[stats.SendFailed]++
		}
	}
	_ = u.raw.Control(func(fd uintptr) {
		for range drainBatches {
			if !u.batch(fd) {
				break
			}
		}
	})
}

// batch receives, serves and sends one batch. It is false where nothing was there
// to be read.
func (u *udpReader) batch(fd uintptr) bool {
	n := u.receive(fd)
	if n <= 0 {
		return n < 0
	}
	h := u.cfg.Entry.load() // one configuration for the whole batch
	u.req.At = u.cfg.Now()
	ready := 0
	for i := range n {
		m := &u.in[i]
		out := u.serveOne(h, u.queries[i*querySize:][:m.size:querySize], u.replies[i*replySize:][:replySize:replySize], source{u, i})
		if out == nil {
			continue
		}
		o := &u.out[ready]
		u.outVec[ready] = unix.Iovec{Base: &out[0]}
		u.outVec[ready].SetLen(len(out))
		o.hdr.Name, o.hdr.Namelen = m.hdr.Name, m.hdr.Namelen
		o.hdr.Iov, o.hdr.Iovlen = &u.outVec[ready], 1
		o.hdr.Control, o.hdr.Controllen = nil, 0
		if u.pktinfo {
			u.answerFrom(i, o)
		}
		u.from[ready] = uint8(i)
		ready++
	}
	u.publish() // first: who has an answer finds it counted
	u.send(fd, u.merge(ready))
	u.rest(n == batchSize)
	return true
}

// receive reads a batch. It is 0 where there is none, and -1 on an error, such
// as a port unreachable, which leaves the socket as good as before.
func (u *udpReader) receive(fd uintptr) int {
	for i := range u.in {
		u.in[i].hdr.Namelen = unix.SizeofSockaddrInet6
		if u.pktinfo {
			u.in[i].hdr.SetControllen(controlSize)
		}
	}
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&u.in[0])), batchSize, unix.MSG_DONTWAIT, 0, 0)
	switch e {
	case 0:
		return int(n)
	case unix.EAGAIN:
		return 0
	case unix.EINTR:
		return -1
	}
	u.readErr = e
	return -1
}

// send sends the first n responses. A response that the kernel does not take is
// counted and left out; a full socket buffer is waited for by trying again.
func (u *udpReader) send(fd uintptr, n int) {
	tries := 0
	for off := 0; off < n; {
		sent, _, e := syscall.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&u.out[off])), uintptr(n-off), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case e == 0:
			off += int(sent)
			tries = 0
		case e == unix.EINTR:
		case e == unix.EAGAIN && tries < sendTries:
			tries++
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			_, _ = unix.Poll(poll, 1)
		case u.out[off].hdr.Iovlen > 1:
			u.sendEach(fd, &u.out[off].hdr, e)
			off++
		default:
			u.counts[stats.SendFailed]++
			off++
			tries = 0
		}
	}
}

// sendTries is how many milliseconds a full socket buffer is waited for.
const sendTries = 20

// source is the sender of the message in a slot.
type source struct {
	u *udpReader
	i int
}

// addr is the address, IPv4 as such also where the socket is IPv6.
func (s source) addr() netip.AddrPort {
	sa := &s.u.names[s.i]
	if sa.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), port(v4.Port))
	}
	a := netip.AddrFrom16(sa.Addr).Unmap()
	return netip.AddrPortFrom(a, port(sa.Port))
}

// port turns a port in network order, as the kernel has it, around.
func port(p uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&p))
	return uint16(b[0])<<8 | uint16(b[1])
}

// kept is where a parked response goes, with the local address to send from. It
// is used again and again: what send needs is made once.
type kept struct {
	to      unix.RawSockaddrInet6
	size    uint32
	control [controlSize]byte
	used    int // octets of control
	raw     syscall.RawConn
	m       mmsg
	vec     unix.Iovec
	errno   syscall.Errno
	step    func(fd uintptr) bool
}

// keep copies what the slot knows.
func (s source) keep(k *kept) {
	k.to, k.size, k.used = s.u.names[s.i], s.u.in[s.i].hdr.Namelen, 0
	if s.u.pktinfo {
		var o mmsg
		s.u.answerFrom(s.i, &o)
		k.used = copy(k.control[:], s.u.controls[s.i*controlSize:][:o.hdr.Controllen])
	}
	if k.step == nil {
		k.raw, k.step = s.u.raw, k.sendNow
	}
}

// send sends one response outside a batch.
func (k *kept) send(_ *net.UDPConn, msg []byte) error {
	k.vec = unix.Iovec{Base: &msg[0]}
	k.vec.SetLen(len(msg))
	k.m = mmsg{hdr: unix.Msghdr{Name: (*byte)(unsafe.Pointer(&k.to)), Namelen: k.size, Iov: &k.vec, Iovlen: 1}}
	if k.used > 0 {
		k.m.hdr.Control = &k.control[0]
		k.m.hdr.SetControllen(k.used)
	}
	if err := k.raw.Write(k.step); err != nil {
		return err
	}
	if k.errno != 0 {
		return k.errno
	}
	return nil
}

// sendNow does not leave the waiting for a full socket buffer to the network
// poller: whoever woke the request has others to wake.
func (k *kept) sendNow(fd uintptr) bool {
	for range sendTries {
		_, _, k.errno = syscall.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&k.m)), 1, unix.MSG_DONTWAIT, 0, 0)
		if k.errno != unix.EAGAIN && k.errno != unix.EINTR {
			break
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		_, _ = unix.Poll(poll, 1)
	}
	return true
}

// answerFrom makes o leave from the address that slot i's query came to: the
// control message that the kernel gave is given back, without the interface
// where the address says enough.
func (u *udpReader) answerFrom(i int, o *mmsg) {
	size := int(u.in[i].hdr.Controllen)
	c := u.controls[i*controlSize:][:size]
	if size < unix.SizeofCmsghdr {
		return
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
	data := c[unix.CmsgLen(0):]
	switch {
	case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		(*unix.Inet4Pktinfo)(unsafe.Pointer(&data[0])).Ifindex = 0
	case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		if p := (*unix.Inet6Pktinfo)(unsafe.Pointer(&data[0])); !netip.AddrFrom16(p.Addr).IsLinkLocalUnicast() {
			p.Ifindex = 0
		}
	default:
		return
	}
	o.hdr.Control = &c[0]
	o.hdr.SetControllen(size)
}
