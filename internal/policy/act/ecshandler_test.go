package act

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
	"github.com/waymark-dns/waymark/internal/serve"
)

func TestECSHandler(t *testing.T) {
	handler := func(set func(*ECSHandlerArgs)) policy.Rule {
		return rule(mustObject(t, plainEnv(), "ecs_handler", set))
	}
	quick := func(args string) policy.Rule { return rule(made(t, plainEnv(), "ecs", args)) }
	forward := handler(func(a *ECSHandlerArgs) { a.Forward, a.Preset, a.Send = true, "192.0.2.200", true })
	send := handler(func(a *ECSHandlerArgs) { a.Send = true })
	const v4, v6 = "198.51.100.77", "2001:db8:1:2:3::4"
	for _, c := range []struct {
		name   string
		rules  []policy.Rule
		client string
		with   how
		want   string // of Ask.Subnet; empty is none
		back   bool
	}{
		{"forward: the client's own, as long as it gives it", []policy.Rule{forward}, v4, subnet("203.0.113.128/25"), "203.0.113.128/25", true},
		{"forward: of length 0 as well", []policy.Rule{forward}, v4, subnet("0.0.0.0/0"), "0.0.0.0/0", true},
		{"forward, but the client gives none: preset", []policy.Rule{forward}, v4, edns, "192.0.2.0/24", false},
		{"forward, but what the client gives is malformed", []policy.Rule{forward}, v4, option(8, "\x00\x01\x21\x00"), "192.0.2.0/24", false},
		{"no forward: what the client gives does not count", []policy.Rule{handler(func(a *ECSHandlerArgs) { a.Preset = "192.0.2.200" })}, v4, subnet("203.0.113.0/24"), "192.0.2.0/24", false},
		{"preset before send", []policy.Rule{handler(func(a *ECSHandlerArgs) { a.Preset, a.Send = "2001:db8:ffff:ffff::", true })}, v4, edns, "2001:db8:ffff::/48", false},
		{"preset, IPv4 in IPv6", []policy.Rule{handler(func(a *ECSHandlerArgs) { a.Preset = "::ffff:192.0.2.200" })}, v4, edns, "192.0.2.0/24", false},
		{"send", []policy.Rule{send}, v4, edns, "198.51.100.0/24", false},
		{"send, IPv6", []policy.Rule{send}, v6, edns, "2001:db8:1::/48", false},
		{"send, IPv4 in IPv6", []policy.Rule{send}, "::ffff:" + v4, edns, "198.51.100.0/24", false},
		{"send, for clients without EDNS too", []policy.Rule{send}, v4, noRD, "198.51.100.0/24", false},
		{"mask4", []policy.Rule{handler(func(a *ECSHandlerArgs) { a.Send, a.Mask4 = true, 16 })}, v4, edns, "198.51.0.0/16", false},
		{"mask6", []policy.Rule{handler(func(a *ECSHandlerArgs) { a.Send, a.Mask6 = true, 32 })}, v6, edns, "2001:db8::/32", false},
		{"masks of 0 are the defaults", []policy.Rule{handler(func(a *ECSHandlerArgs) { *a = ECSHandlerArgs{Send: true} })}, v4, edns, "198.51.100.0/24", false},
		{"class IN alone (RFC 7871 §5)", []policy.Rule{forward}, v4, class(3), "", false},
		{"nothing is asked for", []policy.Rule{handler(func(*ECSHandlerArgs) {})}, v4, subnet("203.0.113.0/24"), "", false},
		{"the first that settles it counts", []policy.Rule{quick("192.0.2.200"), forward}, v4, subnet("203.0.113.0/24"), "192.0.2.0/24", false},
		{"the client's option is handed on already", []policy.Rule{rule(made(t, plainEnv(), "forward_edns0opt", "8")), send}, v4, subnet("203.0.113.0/24"), "", false},
		{"it would be, but there is none", []policy.Rule{rule(made(t, plainEnv(), "forward_edns0opt", "8")), send}, v4, edns, "198.51.100.0/24", false},
		{"ecs", []policy.Rule{quick("")}, v4, edns, "", false},
		{"ecs with an address", []policy.Rule{quick("2001:db8:1:2::")}, v4, edns, "2001:db8:1::/48", false},
		{"ecs with a length, and with two addresses", []policy.Rule{quick("192.0.2.200/32 2001:db8::/64")}, v4, edns, "192.0.2.0/24", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := received(t, c.client, overUDP, query(t, "www.example.", dns.TypeA, c.with))
			for _, rule := range c.rules {
				if next := rule.Do.Do(r); next != policy.Go {
					t.Errorf("next %d", next)
				}
			}
			want := netip.Prefix{}
			if c.want != "" {
				want = netip.MustParsePrefix(c.want)
			}
			if r.Ask.Subnet != want || r.Ask.SubnetBack != c.back {
				t.Errorf("subnet %v, back %v; want %v, %v", r.Ask.Subnet, r.Ask.SubnetBack, want, c.back)
			}
		})
	}
}

// Who writes what does not count is told so.
func TestECSWarns(t *testing.T) {
	for args, lines := range map[string]int{"": 0, "192.0.2.1": 0, "192.0.2.1/24": 1, "192.0.2.1/24 2001:db8::1": 2} {
		e, log := logged(slog.LevelWarn)
		made(t, e, "ecs", args)
		if n := strings.Count(log.String(), "level=WARN"); n != lines {
			t.Errorf("ecs %s: logged %s", args, log)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []uint16
	}{
		{[]string{""}, nil},
		{[]string{"10 65001 10"}, []uint16{10, 65001}},
		{[]string{"10", "12 10"}, []uint16{10, 12}},
		{[]string{"10 12", "12", "8"}, []uint16{10, 12, 8}},
		{[]string{"10 12 8", "3"}, []uint16{10, 12, 8, 3}},
	} {
		r := asks(t, "www.example.", dns.TypeA)
		var first step.Options
		for i, args := range c.args {
			a := made(t, plainEnv(), "forward_edns0opt", args)
			if i == 0 {
				first = a.(step.Options)
			}
			if next := a.(policy.Step).Do(r); next != policy.Go {
				t.Errorf("next %d", next)
			}
		}
		if !slices.Equal(r.Ask.Options, c.want) || len(first) > len(c.want) {
			t.Errorf("%q: codes %d, want %d", c.args, r.Ask.Options, c.want)
		}
		if len(first) > 0 && len(c.want) > len(first) && &first[0] == &r.Ask.Options[0] {
			t.Errorf("%q: codes are added in the configuration's own memory", c.args)
		}
	}
}

func TestSets(t *testing.T) {
	e := plainEnv()
	e.Match.Objects["base"] = mustObject(t, e, "domain_set", func(a *DomainSetArgs) { a.Exps = []string{"base.example"} })
	e.Match.Objects["net"] = mustObject(t, e, "ip_set", func(a *IPSetArgs) { a.IPs = []string{"192.0.2.0/24"} })
	e.Match.Objects["names"] = mustObject(t, e, "domain_set", func(a *DomainSetArgs) {
		a.Exps, a.Sets = []string{"full:own.example"}, []string{"base"}
	})
	e.Match.Objects["nets"] = mustObject(t, e, "ip_set", func(a *IPSetArgs) { a.IPs, a.Sets = []string{"2001:db8::1"}, []string{"net"} })
	if _, err := objectOf(t, e, "domain_set", func(a *DomainSetArgs) { a.Sets = []string{"net"} }); err == nil {
		t.Error("a set of addresses is taken for one of names")
	}
	matches := func(name, args string, r *serve.Request) bool {
		return matcher(t, e, name, args).Match(r)
	}
	for name, want := range map[string]bool{"own.example.": true, "a.base.example.": true, "a.own.example.": false} {
		if got := matches("qname", "$names", asks(t, name, dns.TypeA)); got != want {
			t.Errorf("%s in the set: %v", name, got)
		}
	}
	for client, want := range map[string]bool{"192.0.2.9": true, "2001:db8::1": true, "2001:db8::2": false} {
		if got := matches("client_ip", "$nets", received(t, client, overUDP, query(t, "www.example.", dns.TypeA))); got != want {
			t.Errorf("%s in the set: %v", client, got)
		}
	}
}
