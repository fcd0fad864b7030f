package match

import "github.com/waymark-dns/waymark/internal/serve"

// Stranger matches clients that may ask for our own zones only.
type Stranger struct{}

// Match is part of policy.Matcher.
func (Stranger) Match(r *serve.Request) bool { return r.Who == serve.Stranger }
