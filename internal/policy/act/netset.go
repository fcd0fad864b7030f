package act

import (
	"errors"

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

// errNoNetSets is a server without a writer, which only some ways to run one have.
var errNoNetSets = errors.New("nothing here writes to sets of the kernel")

// makeNetSet is the Make of an action whose targets parse reads.
func makeNetSet(parse func(args string) ([]netsets.Target, error)) func(*Env, string) (any, error) {
	return func(e *Env, args string) (any, error) {
		targets, err := parse(args)
		switch {
		case err != nil:
			return nil, err
		case len(targets) == 0:
			return nil, nil
		case e.NetSets == nil:
			return nil, errNoNetSets
		}
		return NetSet{e.NetSets, targets}, nil
	}
}
