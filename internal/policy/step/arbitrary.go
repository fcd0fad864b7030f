package step

import (
	"bytes"
	"fmt"
	"os"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// ArbitraryArgs is records in presentation format. Each rule and each file stands
// for itself: neither an origin nor a TTL goes from one to the next.
type ArbitraryArgs struct {
	Rules []string `key:"rules"`
	Files []string `key:"files"`
}

// Arbitrary answers with the records of just the name, type and class that are
// asked for.
type Arbitrary struct {
	byKey map[arbitraryKey][]arbitrarySet
}

type arbitraryKey struct {
	hash       uint64 // of the owner
	typ, class uint16
}

// arbitrarySet is records of one owner and TTL, in the order they were written.
type arbitrarySet struct {
	owner wire.Name
	set   wire.RRset
}

// NewArbitrary reads the records of a configuration.
func NewArbitrary(args *ArbitraryArgs) (any, error) {
	a := &Arbitrary{map[arbitraryKey][]arbitrarySet{}}
	read := func(name, text string) error {
		return zonefile.ReadText(name, text, zonefile.Options{Classes: true}, a.add)
	}
	for i, rule := range args.Rules {
		if err := read(fmt.Sprintf("rule %d", i+1), rule); err != nil {
			return nil, fmt.Errorf("reading records: %w", err)
		}
	}
	for _, file := range args.Files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = read(file, string(text))
		}
		if err != nil {
			return nil, fmt.Errorf("reading records: %w", err)
		}
	}
	return a, nil
}

func (a *Arbitrary) add(records []zonefile.Record) error {
	for i := range records {
		rec := &records[i]
		k := arbitraryKey{wire.HashName(rec.Owner), rec.Type, rec.Class}
		sets := a.byKey[k]
		if n := len(sets); n == 0 || !wire.EqualFold(sets[n-1].owner, rec.Owner) || sets[n-1].set.TTL != rec.TTL {
			sets = append(sets, arbitrarySet{bytes.Clone(rec.Owner), wire.RRset{Type: rec.Type, Class: rec.Class, TTL: rec.TTL}})
		}
		appendRecord(&sets[len(sets)-1].set, rec.RDATA)
		a.byKey[k] = sets
	}
	return nil
}

// Do is part of policy.Step.
func (a *Arbitrary) Do(r *serve.Request) policy.Next {
	sets := a.byKey[arbitraryKey{r.Ask.Labels.Hash[0], r.Ask.Type, r.Ask.Class}]
	found := false
	for i := range sets {
		if !wire.EqualFold(sets[i].owner, r.Ask.Name) {
			continue
		}
		if !found {
			found = true
			r.Empty()
		}
		r.Reply.Add(wire.Answer, r.Ask.Name, &sets[i].set, nil)
	}
	if !found {
		return policy.Go
	}
	return answered(r)
}
