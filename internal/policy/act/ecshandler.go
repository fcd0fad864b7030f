package act

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// ECSHandlerArgs says which subnet is passed on: the client's own that it gives,
// the preset address's, or that of the client's address.
type ECSHandlerArgs struct {
	Forward bool   `key:"forward"`
	Send    bool   `key:"send"`
	Preset  string `key:"preset"`
	Mask4   int    `key:"mask4"`
	Mask6   int    `key:"mask6"`
}

// ECSHandler settles the subnet that is passed on (RFC 7871).
type ECSHandler struct {
	forward, send bool
	preset        netip.Prefix
	mask4, mask6  int
}

func newECSHandler(_ *Env, _ string, args *ECSHandlerArgs) (any, error) {
	a := &ECSHandler{forward: args.Forward, send: args.Send}
	var err error
	if a.mask4, err = step.MaskLength("mask4", args.Mask4, 24, 32); err != nil {
		return nil, err
	}
	if a.mask6, err = step.MaskLength("mask6", args.Mask6, 48, 128); err != nil {
		return nil, err
	}
	if args.Preset != "" {
		addr, err := netip.ParseAddr(args.Preset)
		if err != nil {
			return nil, fmt.Errorf("reading preset: %w", err)
		}
		a.preset = a.subnet(addr)
	}
	return a, nil
}

// makeECS reads one address. Lengths and further addresses are of old
// configurations and say nothing.
func makeECS(e *Env, args string) (any, error) {
	var own ECSHandlerArgs
	words := strings.Fields(args)
	if len(words) > 0 {
		var cut bool
		if own.Preset, _, cut = strings.Cut(words[0], "/"); cut {
			e.logger().Warn("ecs takes no length of a prefix: that of IPv4 is 24, of IPv6 48", "args", args)
		}
	}
	if len(words) > 1 {
		e.logger().Warn("ecs takes one address: the others are not used", "args", args)
	}
	return newECSHandler(e, "", &own)
}

// subnet is the prefix of an address that is passed on.
func (a *ECSHandler) subnet(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := a.mask6
	if addr.Is4() {
		bits = a.mask4
	}
	p, _ := addr.Prefix(bits)
	return p
}

// Do is part of policy.Step.
func (a *ECSHandler) Do(r *serve.Request) policy.Next {
	option, given := r.EDNS.Option(wire.OptECS)
	if r.Ask.Subnet.IsValid() || given && slices.Contains(r.Ask.Options, wire.OptECS) {
		return policy.Go // something else has settled it
	}
	if r.Ask.Class != wire.ClassIN { // RFC 7871 §5
		return policy.Go
	}
	if a.forward && given {
		if p, _, ok := readSubnet(option); ok {
			r.Ask.Subnet, r.Ask.SubnetBack = p, true
			return policy.Go
		}
	}
	switch client := r.Client.Addr(); {
	case a.preset.IsValid():
		r.Ask.Subnet = a.preset
	case a.send && client.IsValid():
		r.Ask.Subnet = a.subnet(client)
	}
	return policy.Go
}
