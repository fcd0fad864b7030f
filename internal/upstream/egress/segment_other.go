//go:build !linux

package egress

// Elsewhere each query is a message of its own: see WriteBatch in socket_other.go.
