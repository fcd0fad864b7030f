package step

import (
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
)

// DropResp takes the response away.
type DropResp struct{}

// Do is part of policy.Step.
func (DropResp) Do(r *serve.Request) policy.Next {
	r.Empty()
	return policy.Go
}
