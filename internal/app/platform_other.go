//go:build !linux

package app

import (
	"errors"
	"time"
)

// machineTime is asked for by systemd alone.
func machineTime() time.Duration { return 0 }

// dropPrivileges is Linux's: elsewhere the server is started as the user that it
// is to be.
func dropPrivileges(name, _ string) error {
	if name != "" {
		return errors.New("becoming another user: only on Linux; start the server as that user and leave server.user out")
	}
	return nil
}
