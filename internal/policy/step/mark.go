package step

import (
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
)

// Mark sets marks, by their numbers in the configuration.
type Mark []uint16

// Do is part of policy.Step.
func (a Mark) Do(r *serve.Request) policy.Next {
	for _, n := range a {
		r.Policy.Mark(n)
	}
	return policy.Go
}
