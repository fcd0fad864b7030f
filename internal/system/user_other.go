//go:build !linux

package system

import (
	"errors"
	"time"
)

// MachineTime is asked for by systemd alone.
func MachineTime() time.Duration { return 0 }

// DropPrivileges is Linux's: elsewhere the server is started as the user that it
// is to be.
func DropPrivileges(name, _ string) error {
	if name != "" {
		return errors.New("becoming another user: only on Linux; start the server as that user and leave server.user out")
	}
	return nil
}
