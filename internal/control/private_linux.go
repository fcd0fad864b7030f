package control

import "syscall"

// private gives the socket the mode that its file will have.
func private(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) } // chmod follows
