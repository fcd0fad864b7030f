//go:build !linux

package egress

import "errors"

// Take is Linux's.
func (w *Way) Take(int) error {
	if w.Mark != 0 || w.Device != "" {
		return errors.New("marks and devices of upstreams: only on Linux")
	}
	return nil
}
