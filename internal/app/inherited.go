package app

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

// inherited is the sockets that the service manager opened for us, by what they
// listen on, in the form of plan.Listen.String.
type inherited struct {
	udp map[string][]net.PacketConn
	tcp map[string]net.Listener
	err error // of a descriptor that is no socket of ours
}

// takeInherited takes the sockets over. The variables that told of them are
// removed, so that no child takes them for its own.
func takeInherited() inherited {
	in := inherited{udp: map[string][]net.PacketConn{}, tcp: map[string]net.Listener{}}
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
func (in *inherited) take(f *os.File) {
	defer f.Close()
	if conn, err := net.FilePacketConn(f); err == nil {
		if addr, ok := conn.LocalAddr().(*net.UDPAddr); ok {
			key := "udp://" + plainAddr(addr.AddrPort()).String()
			in.udp[key] = append(in.udp[key], conn)
			return
		}
		_ = conn.Close()
	} else if l, err := net.FileListener(f); err == nil {
		addr, ok := l.Addr().(*net.TCPAddr)
		if ok && in.tcp["tcp://"+plainAddr(addr.AddrPort()).String()] == nil {
			in.tcp["tcp://"+plainAddr(addr.AddrPort()).String()] = l
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

// unused is an error where a socket was passed that no listener wants.
func (in *inherited) unused() error {
	var keys []string
	for key := range in.udp {
		keys = append(keys, key)
	}
	for key := range in.tcp {
		keys = append(keys, key)
	}
	if len(keys) > 0 {
		return fmt.Errorf("taking inherited sockets: %s: not under listen: in the configuration", strings.Join(keys, ", "))
	}
	return in.err
}
