package plan

import "time"

// Default is a plan in which everything that has a default has it, and
// everything else is off: no listener, no zone, no forwarding, no cache, no
// metrics, no control socket.
func Default() *Plan {
	return &Plan{Server: DefaultServer(), Limits: DefaultLimits(), Log: Log{Level: "info"}, ZoneStore: ZoneStore{Serial: "increment"}}
}

// DefaultServer has the limits of a server that was told nothing else. They
// were chosen, not measured: they bound the memory that clients can claim and
// stay far above what a client needs.
func DefaultServer() Server {
	return Server{
		// Fits the smallest IPv6 MTU: 1280 less 40 (IPv6) and 8 (UDP), so a
		// response is not fragmented. The value of the DNS flag day of 2020.
		UDPSize: 1232,
		// Each has room for the longest response while it waits, 64 KiB: 1 GiB at
		// the most. No program of this version waits yet.
		Parked: 16384,
		// As long as a stub resolver waits before it asks again (resolv.conf's
		// timeout is 5 seconds): who has not been answered by then has left.
		Drain:   5 * time.Second,
		History: DefaultHistory(),
		TCP: TCP{
			// File descriptors and one goroutine each; a server that mostly
			// speaks UDP sees a few hundred.
			Conns: 4096,
			// A resolver needs one or two; a company behind one address needs
			// dozens. One client cannot take more than 1/32 of the places.
			PerClient: 128,
			// More than a pipelining resolver sends before it reads
			// (RFC 7766 §6.2.1.1).
			Inflight: 128,
			// RFC 7766 §6.2.3: in the order of seconds.
			Idle: 10 * time.Second,
			// A client that asks just often enough never becomes idle; this is
			// when it must give its place back. Long, because a connection in
			// use is cheaper than a new one.
			Total: 10 * time.Minute,
			// Longer than a lost segment takes to be sent again twice.
			Write: 5 * time.Second,
		},
	}
}
