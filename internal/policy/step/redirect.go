package step

import (
	"errors"
	"sync"

	"github.com/waymark-dns/waymark/internal/nameset"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// RedirectArgs says which names are asked for as others: "pattern target", in
// rules or one a line in files. A pattern without a kind is a full name.
type RedirectArgs struct {
	Rules []string `key:"rules"`
	Files []string `key:"files"`
}

// Redirect asks for another name. What wraps it sees the name that was asked for,
// as an alias of the other.
type Redirect struct {
	names   *nameset.Set // values are numbers of targets
	targets *targets
	scratch sync.Pool // of *[]byte
}

// targets numbers the names that the redirects of one configuration lead to. It is
// not changed when a query runs.
type targets struct {
	all      []*target
	byName   map[string]uint32
	byLabels map[*wire.Labels]uint32
}

type target struct {
	name   wire.Name
	labels wire.Labels
	alias  wire.RRset // CNAME
}

const aliasTTL = 1

// NewRedirect makes a redirect. others is the objects that the configuration has
// made so far.
func NewRedirect(others map[string]any, args *RedirectArgs) (any, error) {
	a := &Redirect{targets: targetsOf(others)}
	a.scratch.New = func() any { return new([]byte) }
	var err error
	a.names, err = readValues(args.Rules, args.Files, func(words []string) (uint32, error) {
		if len(words) != 1 {
			return 0, errors.New("write a pattern and one target")
		}
		name, err := wire.ParseName(words[0])
		if err != nil {
			return 0, err
		}
		return a.targets.number(name), nil
	})
	return a, err
}

// targetsOf is what the redirects among others have, or a new list.
func targetsOf(others map[string]any) *targets {
	for _, o := range others {
		if other, ok := o.(*Redirect); ok {
			return other.targets
		}
	}
	return &targets{byName: map[string]uint32{}, byLabels: map[*wire.Labels]uint32{}}
}

// number is the number of a target, a new one where the name has none.
func (t *targets) number(name wire.Name) uint32 {
	n, ok := t.byName[string(name)]
	if !ok {
		n = uint32(len(t.all))
		to := &target{name: name, alias: wire.RRset{Type: wire.TypeCNAME, Class: wire.ClassIN, TTL: aliasTTL}}
		to.labels.Scan(name)
		appendRecord(&to.alias, name)
		t.all = append(t.all, to)
		t.byName[string(name)], t.byLabels[&to.labels] = n, n
	}
	return n
}

// Do is part of policy.Step. The frame has the numbers of the target that was
// asked for before and of the new one, each plus one; 0 is the client's question,
// and no target.
func (a *Redirect) Do(r *serve.Request) policy.Next {
	f := policy.NewFrame(r)
	if f == nil {
		return policy.Fail
	}
	if r.Ask.Class != wire.ClassIN {
		return policy.Go
	}
	n, ok := a.names.Find(r.Ask.Name, r.Ask.Labels)
	if !ok {
		return policy.Go
	}
	if before, ok := a.targets.byLabels[r.Ask.Labels]; ok {
		f.A = uint64(before) + 1
	}
	f.B = uint64(n) + 1
	to := a.targets.all[n]
	r.Ask.Name, r.Ask.Labels = to.name, &to.labels
	return policy.Go
}

// After is part of policy.Finisher.
func (a *Redirect) After(r *serve.Request, f *serve.Frame) {
	if f.B == 0 {
		return
	}
	r.Ask.Name, r.Ask.Labels = r.Name, &r.Suffixes
	if f.A > 0 {
		before := a.targets.all[f.A-1]
		r.Ask.Name, r.Ask.Labels = before.name, &before.labels
	}
	if r.Out != nil {
		a.alias(r, a.targets.all[f.B-1])
	}
}

// alias writes the response anew, behind a CNAME that leads to its records.
func (a *Redirect) alias(r *serve.Request, to *target) {
	scratch := a.scratch.Get().(*[]byte)
	defer a.scratch.Put(scratch)
	msg := append((*scratch)[:0], r.Out...)
	*scratch = msg
	reply := &r.Reply
	flags, referral, cut, rcode := reply.Flags, reply.Referral, reply.Truncated(), reply.Rcode()
	r.Grow(len(msg) + 2*wire.MaxName + wire.MinBuffer)
	r.Empty()
	reply.Flags, reply.Referral = flags, referral
	reply.Add(wire.Answer, r.Ask.Name, &to.alias, nil)
	if !reply.AddMessage(msg) {
		r.Policy.Failed = true
		return
	}
	if cut {
		reply.Truncate()
	}
	r.Finish(rcode)
}
