//go:build linux

package listen

import (
	"bytes"
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/waymark-dns/waymark/internal/stats"
)

// Responses in a row to one client, all of one size but for a shorter last one,
// go to the kernel as one message that it cuts itself (UDP_SEGMENT): the way to
// the client is then looked up once for all of them. A forwarder that asks from
// one port gets such rows; for others nothing changes.

// maxSegmented is the most octets of one message: the kernel takes 65,507 less
// some headers. It cuts a message into 64 pieces or more, and a batch has 32.
// maxPiece is the most octets of a piece: the kernel cuts none that are longer
// than a packet on the way out, and this fits every way that IPv6 takes.
const (
	maxSegmented = 60_000
	maxPiece     = 1280 - 40 - 8
)

// merge joins the first n messages of out where it can and returns how many are
// left.
func (u *udpReader) merge(n int) int {
	if u.whole || n < 2 {
		return n
	}
	last, size, total := 0, u.outVec[0].Len, u.outVec[0].Len
	closed := size > maxPiece
	for i := 1; i < n; i++ {
		m, next := &u.out[last].hdr, u.outVec[i].Len
		if !closed && next <= size && total+next <= maxSegmented && u.sameWay(i, m) {
			m.Iovlen++
			total += next
			closed = next < size
			continue
		}
		u.cutInto(last, int(size))
		last++
		u.out[last].hdr, u.from[last] = u.out[i].hdr, u.from[i]
		size, total, closed = next, next, next > maxPiece
	}
	u.cutInto(last, int(size))
	return last + 1
}

// cutInto tells the kernel the size of the pieces of message m, where it has
// several, behind what it is told already.
func (u *udpReader) cutInto(m, size int) {
	h := &u.out[m].hdr
	if h.Iovlen < 2 {
		return
	}
	room := u.controls[int(u.from[m])*controlSize:][:controlSize]
	told := int(h.Controllen)
	c := (*unix.Cmsghdr)(unsafe.Pointer(&room[told]))
	c.Level, c.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	c.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(room[told+unix.CmsgLen(0):], uint16(size))
	h.Control = &room[0]
	h.SetControllen(told + unix.CmsgSpace(2))
}

// sameWay tells whether response i goes to the client of message m, and leaves
// from the same address.
func (u *udpReader) sameWay(i int, m *unix.Msghdr) bool {
	o := &u.out[i].hdr
	if o.Namelen != m.Namelen || o.Controllen != m.Controllen {
		return false
	}
	if o.Namelen == unix.SizeofSockaddrInet4 { // family, port and address are the first eight octets
		if *(*[8]byte)(unsafe.Pointer(o.Name)) != *(*[8]byte)(unsafe.Pointer(m.Name)) {
			return false
		}
	} else if *(*[unix.SizeofSockaddrInet6]byte)(unsafe.Pointer(o.Name)) != *(*[unix.SizeofSockaddrInet6]byte)(unsafe.Pointer(m.Name)) {
		return false
	}
	return o.Controllen == 0 || bytes.Equal(unsafe.Slice(o.Control, int(o.Controllen)), unsafe.Slice(m.Control, int(m.Controllen)))
}

// sendEach sends the pieces of a message that the kernel did not take for the
// reason why, each for itself. Where it cannot cut, no others are joined.
func (u *udpReader) sendEach(fd uintptr, h *unix.Msghdr, why syscall.Errno) {
	u.whole = why == unix.EIO || why == unix.EINVAL || why == unix.EOPNOTSUPP || why == unix.EMSGSIZE
	told := int(h.Controllen) - unix.CmsgSpace(2)
	pieces := unsafe.Slice(h.Iov, int(h.Iovlen))
	for i := range pieces {
		one := unix.Msghdr{Name: h.Name, Namelen: h.Namelen, Iov: &pieces[i], Iovlen: 1}
		if told > 0 {
			one.Control = h.Control
			one.SetControllen(told)
		}
		if _, _, e := syscall.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&one)), unix.MSG_DONTWAIT); e != 0 {
			u.counts[stats.SendFailed]++
		}
	}
}
