// Package act holds the actions of policy rules, one file each: they take a
// Request to the engine that does the work.
package act

import (
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
)

// Zone answers from our zones; names in none of them go on to the next rule.
type Zone struct{ Table *zone.Table }

// ViewZones answers from the zones that the client's view has.
type ViewZones struct{ Tables []*zone.Table }

// Do is part of policy.Step.
func (a ViewZones) Do(r *serve.Request) policy.Next { return Zone{a.Tables[r.View]}.Do(r) }

// Do is part of policy.Step.
func (a Zone) Do(r *serve.Request) policy.Next {
	rcode, found := a.Table.Answer(r)
	if r.Trace != nil {
		a.trace(r, found)
	}
	if !found {
		return policy.Go
	}
	r.Finish(rcode)
	return policy.Stop
}

func (a Zone) trace(r *serve.Request, found bool) {
	if !found {
		r.Trace.Say("zone", "", "none of ours holds %s", r.Ask.Name)
		return
	}
	z := a.Table.Find(r.Ask.Name, r.Ask.Labels, 0)
	if r.Ask.Type == wire.TypeDS { // the parent's (RFC 4035 §3.1.4.1)
		if parent := a.Table.Find(r.Ask.Name, r.Ask.Labels, 1); parent != nil {
			z = parent
		}
	}
	if z.Broken() {
		r.Trace.Say("zone", "", "%s could not be loaded", z.Name())
		return
	}
	r.Trace.Say("zone", "", "%s, serial %d", z.Name(), z.Serial())
}
