package upstream

import (
	"os"

	"golang.org/x/sys/unix"
)

// leaveBy makes the packets of a socket leave as s wants them to.
func (s *Server) leaveBy(fd int) error {
	if s.Mark != 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, s.Mark); err != nil {
			return os.NewSyscallError("setsockopt SO_MARK", err)
		}
	}
	if s.Device != "" {
		return os.NewSyscallError("setsockopt SO_BINDTODEVICE", unix.BindToDevice(fd, s.Device))
	}
	return nil
}
