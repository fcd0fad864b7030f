//go:build !linux

package upstream

import "errors"

// leaveBy is Linux's.
func (s *Server) leaveBy(int) error {
	if s.Mark != 0 || s.Device != "" {
		return errors.New("marks and devices of upstreams: only on Linux")
	}
	return nil
}
