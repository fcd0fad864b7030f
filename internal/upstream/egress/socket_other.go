//go:build !linux

package egress

import (
	"net"
	"net/netip"
)

const (
	portsTried = 5
	// LowestPort is the lowest that a query leaves from.
	LowestPort = 1024
)

// Socket is a UDP socket that is connected to a server.
type Socket struct{ conn *net.UDPConn }

// Open opens a UDP socket on a random port, connected to addr.
func (w *Way) Open(addr netip.AddrPort, d *Dice) (Socket, error) {
	if err := w.Take(0); err != nil {
		return Socket{}, err
	}
	conn, err := dialSomewhere(addr, d)
	return Socket{conn: conn}, err
}

// Read waits for a message.
func (e *Socket) Read(buf []byte) (int, error) { return e.conn.Read(buf) }

// Close closes it and ends a Read.
func (e *Socket) Close() error { return e.conn.Close() }

// Write sends one message.
func (e *Socket) Write(msg []byte) error {
	_, err := e.conn.Write(msg)
	return err
}

// WriteBatch sends what has not been sent of g.
func (e *Socket) WriteBatch(g *Batch) error {
	for ; g.done < len(g.ends); g.done++ {
		if err := e.Write(g.At(g.done)); err != nil {
			return err
		}
	}
	return nil
}

// dialSomewhere connects from a random port, or from one of the system's choice
// where those tried are all taken.
func dialSomewhere(addr netip.AddrPort, d *Dice) (*net.UDPConn, error) {
	network, local := "udp4", netip.IPv4Unspecified()
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	if !addr.Addr().Is4() {
		network, local = "udp6", netip.IPv6Unspecified()
	}
	to := net.UDPAddrFromAddrPort(addr)
	for range portsTried {
		from := netip.AddrPortFrom(local, uint16(d.Between(LowestPort, 65535)))
		if conn, err := net.DialUDP(network, net.UDPAddrFromAddrPort(from), to); err == nil {
			return conn, nil
		}
	}
	return net.DialUDP(network, nil, to)
}
