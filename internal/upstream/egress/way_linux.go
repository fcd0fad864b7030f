package egress

import (
	"os"

	"golang.org/x/sys/unix"
)

// Take makes the packets of a socket leave that way.
func (w *Way) Take(fd int) error {
	if w.Mark != 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, w.Mark); err != nil {
			return os.NewSyscallError("setsockopt SO_MARK", err)
		}
	}
	if w.Device != "" {
		return os.NewSyscallError("setsockopt SO_BINDTODEVICE", unix.BindToDevice(fd, w.Device))
	}
	return nil
}
