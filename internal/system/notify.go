package system

import (
	"fmt"
	"net"
	"os"
	"time"
)

// Notify tells systemd how the server is (sd_notify(3)). Without systemd, and
// where it does not listen, nothing happens: serving does not depend on it.
func Notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if path[0] == '@' { // abstract socket
		path = "\x00" + path[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}

// Reloading is the state while a reload runs; systemd wants the monotonic time
// of the machine beside it.
func Reloading(monotonic time.Duration) string {
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic.Microseconds())
}
