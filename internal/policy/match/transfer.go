package match

import (
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Transfer matches AXFR and IXFR (RFC 5936, 1995).
type Transfer struct{}

// Match is part of policy.Matcher.
func (Transfer) Match(r *serve.Request) bool {
	return r.Ask.Type == wire.TypeAXFR || r.Ask.Type == wire.TypeIXFR
}
