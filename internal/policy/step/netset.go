package step

import (
	"github.com/waymark-dns/waymark/internal/netsets"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/match"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// NetSet adds the addresses in the answer to sets of the kernel: each to the
// targets of its family. The response goes on at once; the writer works behind
// it.
type NetSet struct {
	Writer  *netsets.Writer
	Targets []netsets.Target
}

// Do is part of policy.Step.
func (a NetSet) Do(r *serve.Request) policy.Next {
	var resp wire.Response
	if r.Out == nil || !resp.Read(r.Out) {
		return policy.Go
	}
	var rec wire.Record
	for resp.Next(&rec) && rec.Section == wire.Answer {
		addr, ok := match.Address(r.Out, &rec)
		if !ok {
			continue
		}
		for i := range a.Targets {
			if t := &a.Targets[i]; t.Takes(addr) {
				a.Writer.Add(t, addr)
			}
		}
	}
	return policy.Go
}
