package upstream

import "time"

type connPool struct{}

func (p *connPool) close() {}

func (s *server) sendTCP(msg []byte, sl *slot, t throw) line { _ = time.Second; return nil }
