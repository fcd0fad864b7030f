package sink

import (
	"io"
	"net"
)

// openJSON opens a sink of JSON lines.
func openJSON(c Config, env Env) (parts, error) {
	p := parts{encode: appendLine, rows: streamRows}
	switch {
	case c.File != "":
		p.out = &file{path: c.File, Files: c.Files}
	case c.To == "stdout":
		p.out = writer{env.Stdout}
	default:
		network, address, _ := c.address()
		p.out = &connection{network: network, address: address, env: env, watch: discard}
	}
	return p, nil
}

// discard reads what a peer says that has nothing to say.
func discard(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) } // any end is an end
