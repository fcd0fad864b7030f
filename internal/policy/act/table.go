package act

import (
	"fmt"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
)

// Env is the engines of one configuration, for actions to stand on.
type Env struct {
	Zones             *zone.Table
	Identity, Version string // of CHAOS answers; empty is off
}

// Kind is one action that rules can name.
type Kind struct {
	Name string
	Args string // what the arguments are; empty is none
	Doc  string
	Make func(e *Env, args string) (policy.Step, error)
}

// Kinds is all actions.
func Kinds() []Kind {
	return []Kind{
		{"zone", "", "answers from the zones; names in none of them go on", makeZone},
		{"chaos", "", "answers id.server and version.server of class CHAOS, where they are configured", makeChaos},
		{"reject", "an rcode's mnemonic", "answers with that code and no records", makeReject},
	}
}

func makeZone(e *Env, args string) (policy.Step, error) {
	return Zone{e.Zones}, noArgs("zone", args)
}

func makeChaos(e *Env, args string) (policy.Step, error) {
	return NewChaos(e.Identity, e.Version), noArgs("chaos", args)
}

func makeReject(_ *Env, args string) (policy.Step, error) {
	for rcode := range wire.Rcode(16) {
		if rcode.String() == args {
			return Reject{rcode}, nil
		}
	}
	return nil, fmt.Errorf("reading rcode %q: no such mnemonic", args)
}

func noArgs(name, args string) error {
	if args != "" {
		return fmt.Errorf("reading %q: %s takes no arguments", args, name)
	}
	return nil
}
