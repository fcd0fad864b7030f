package act

import (
	"sync/atomic"

	"github.com/waymark-dns/waymark/internal/serve"
)

// Counter counts what requests do, on lines of memory that workers seldom share.
type Counter struct {
	parts [8]struct {
		n atomic.Uint64
		_ [56]byte
	}
}

// Add counts one.
func (c *Counter) Add(r *serve.Request) { c.parts[r.Client.Port()%8].n.Add(1) }

// Load is how many were counted.
func (c *Counter) Load() (n uint64) {
	for i := range c.parts {
		n += c.parts[i].n.Load()
	}
	return n
}
