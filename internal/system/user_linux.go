package system

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MachineTime is CLOCK_MONOTONIC, which systemd compares with its own.
func MachineTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return time.Duration(ts.Nano())
}

// errCgo: with C code in the program, nobody can reach all of its threads.
var errCgo = errors.New("becoming another user: this binary was built with cgo; build it with CGO_ENABLED=0, as make does")

// DropPrivileges becomes name and group on every thread. Of what root may do
// only CAP_NET_BIND_SERVICE stays, so that a reload can open port 53. An empty
// name changes nothing.
func DropPrivileges(name, group string) error {
	if name == "" {
		return nil
	}
	uid, gid, err := identity(name, group)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		if os.Geteuid() == uid {
			return nil
		}
		return fmt.Errorf("becoming user %s: only root can", name)
	}
	// Capabilities survive the change of user where this is asked for first.
	if _, _, e := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1, 0); e != 0 {
		if e == unix.ENOTSUP {
			return errCgo
		}
		return fmt.Errorf("keeping capabilities: %w", e)
	}
	err = errors.Join(syscall.Setgroups(nil), syscall.Setgid(gid), syscall.Setuid(uid))
	if err != nil {
		return fmt.Errorf("becoming user %s: %w", name, err)
	}
	return onlyBind()
}

// onlyBind leaves every thread CAP_NET_BIND_SERVICE and nothing else, and lets no
// program that is started gain more.
func onlyBind() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_NET_BIND_SERVICE, Permitted: 1 << unix.CAP_NET_BIND_SERVICE}}
	if _, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0); e != 0 {
		return fmt.Errorf("dropping capabilities: %w", e)
	}
	if _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("forbidding new privileges: %w", e)
	}
	return nil
}

// identity is the numbers of a user and a group, each by name or number. A number
// needs no entry in the user database; its group is then to be named, or is the
// same number.
func identity(name, group string) (uid, gid int, err error) {
	uid, err = strconv.Atoi(name)
	gidText := name
	if err != nil {
		u, lookup := user.Lookup(name)
		if lookup != nil {
			return 0, 0, fmt.Errorf("looking up user: %w", lookup)
		}
		if uid, err = strconv.Atoi(u.Uid); err != nil {
			return 0, 0, fmt.Errorf("looking up user %s: %w", name, err)
		}
		gidText = u.Gid
	}
	if group != "" {
		gidText = group
	}
	if gid, err = strconv.Atoi(gidText); err == nil {
		return uid, gid, nil
	}
	g, err := user.LookupGroup(gidText)
	if err != nil {
		return 0, 0, fmt.Errorf("looking up group: %w", err)
	}
	gid, err = strconv.Atoi(g.Gid)
	return uid, gid, err
}
