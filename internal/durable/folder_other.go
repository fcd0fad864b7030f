//go:build !unix

package durable

// SyncFolder does nothing: a folder cannot be synced here.
func SyncFolder(string) error { return nil }
