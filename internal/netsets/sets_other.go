//go:build !linux

package netsets

import "net/netip"

// noSets is a kernel without sets.
type noSets struct{}

func newSets() sets { return noSets{} }

func (noSets) look(*Target) (about, error) { return about{}, errSystem }

func (noSets) add(*Target, about, []netip.Addr) (narrow bool, err error) { return false, errSystem }

func (noSets) close() error { return nil }
