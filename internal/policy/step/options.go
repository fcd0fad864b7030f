package step

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
)

// Options says which EDNS options the client's query may hand on to upstreams, and
// their responses to the client. Whoever asks the upstream copies them.
type Options []uint16

// NewOptions reads codes of options.
func NewOptions(args string) (any, error) {
	var codes Options
	for _, word := range strings.Fields(args) {
		n, err := strconv.ParseUint(word, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("reading option code: %w", err)
		}
		if !slices.Contains(codes, uint16(n)) {
			codes = append(codes, uint16(n))
		}
	}
	return codes, nil
}

// Do is part of policy.Step. Where another rule has named codes already, those of
// both hold.
func (a Options) Do(r *serve.Request) policy.Next {
	if len(r.Ask.Options) == 0 {
		r.Ask.Options = a
		return policy.Go
	}
	for _, code := range a {
		if !slices.Contains(r.Ask.Options, code) {
			r.Ask.Options = append(slices.Clip(r.Ask.Options), code)
		}
	}
	return policy.Go
}
