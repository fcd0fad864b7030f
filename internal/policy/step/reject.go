package step

import (
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Reject answers with a code and no records.
type Reject struct{ Rcode wire.Rcode }

// Do is part of policy.Step.
func (a Reject) Do(r *serve.Request) policy.Next {
	r.Note.Source = serve.SourceRefused
	r.Empty()
	r.Finish(a.Rcode)
	return policy.Stop
}
