// Package act holds the actions of policy rules, one file each: they take a
// Request to the engine that does the work.
package act

import (
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
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
	if !found {
		return policy.Go
	}
	r.Finish(rcode)
	return policy.Stop
}
