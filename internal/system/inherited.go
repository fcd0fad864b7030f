// Package system is what the operating system and its service manager do for a
// server: sockets that were opened beforehand, news of its state, another user with
// fewer rights. It knows nothing of DNS; internal/app calls it.
package system

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// firstInherited is the first descriptor that systemd passes (sd_listen_fds(3)).
const firstInherited = 3

// Inherited is the sockets that the service manager opened for us, by what they
// listen on, such as "udp://127.0.0.1:53". Who takes one out of a map owns it.
type Inherited struct {
	UDP map[string][]net.PacketConn
	TCP map[string]net.Listener
	err error // of a descriptor that is no socket of ours
}

// TakeInherited takes the sockets over. The variables that told of them are
// removed, so that no child takes them for its own.
func TakeInherited() Inherited {
	in := Inherited{UDP: map[string][]net.PacketConn{}, TCP: map[string]net.Listener{}}
	pid, _ := strconv.Atoi(os.Getenv("LISTEN_PID"))
	count, _ := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name)
	}
	if pid != os.Getpid() {
		return in
	}
	for fd := firstInherited; fd < firstInherited+count; fd++ {
		in.take(os.NewFile(uintptr(fd), "inherited"))
	}
	return in
}

// take takes one descriptor over; f is closed, since net works on a copy.
func (in *Inherited) take(f *os.File) {
	defer f.Close()
	if conn, err := net.FilePacketConn(f); err == nil {
		if addr, ok := conn.LocalAddr().(*net.UDPAddr); ok {
			key := "udp://" + plainAddr(addr.AddrPort()).String()
			in.UDP[key] = append(in.UDP[key], conn)
			return
		}
		_ = conn.Close()
	} else if l, err := net.FileListener(f); err == nil {
		addr, ok := l.Addr().(*net.TCPAddr)
		if ok && in.TCP["tcp://"+plainAddr(addr.AddrPort()).String()] == nil {
			in.TCP["tcp://"+plainAddr(addr.AddrPort()).String()] = l
			return
		}
		_ = l.Close()
	}
	in.err = fmt.Errorf("taking inherited descriptor %d: neither a UDP nor a listening TCP socket, or one of an address that came before", f.Fd())
}

// plainAddr is a without an IPv4 address dressed as IPv6.
func plainAddr(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// Unused is an error where a socket was passed that no listener wants.
func (in *Inherited) Unused() error {
	var keys []string
	for key := range in.UDP {
		keys = append(keys, key)
	}
	for key := range in.TCP {
		keys = append(keys, key)
	}
	if len(keys) > 0 {
		return fmt.Errorf("taking inherited sockets: %s: not under listen: in the configuration", strings.Join(keys, ", "))
	}
	return in.err
}
