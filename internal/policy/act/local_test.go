package act

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// localNames is the names that must not leave the site, written from the RFCs and
// not from the code.
func localNames() []string {
	all := strings.Fields(`
		localhost. test. invalid. local. onion. alt. home.arpa. resolver.arpa.
		10.in-addr.arpa. 168.192.in-addr.arpa.
		16.172.in-addr.arpa. 17.172.in-addr.arpa. 18.172.in-addr.arpa. 19.172.in-addr.arpa.
		20.172.in-addr.arpa. 21.172.in-addr.arpa. 22.172.in-addr.arpa. 23.172.in-addr.arpa.
		24.172.in-addr.arpa. 25.172.in-addr.arpa. 26.172.in-addr.arpa. 27.172.in-addr.arpa.
		28.172.in-addr.arpa. 29.172.in-addr.arpa. 30.172.in-addr.arpa. 31.172.in-addr.arpa.
		0.in-addr.arpa. 127.in-addr.arpa. 254.169.in-addr.arpa. 2.0.192.in-addr.arpa.
		100.51.198.in-addr.arpa. 113.0.203.in-addr.arpa. 255.255.255.255.in-addr.arpa.
		0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.
		1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.
		d.f.ip6.arpa. 8.e.f.ip6.arpa. 9.e.f.ip6.arpa. a.e.f.ip6.arpa. b.e.f.ip6.arpa.
		8.b.d.0.1.0.0.2.ip6.arpa.`)
	for n := 64; n < 128; n++ { // RFC 7793
		all = append(all, fmt.Sprintf("%d.100.in-addr.arpa.", n))
	}
	return all
}

func newLocal(t *testing.T, test bool, groups ...RouteGroup) *Local {
	t.Helper()
	a, err := NewLocal(NewRoutes(groups), test)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// local is the answer of a to a question that was routed, nil where it goes on.
func local(t *testing.T, a *Local, name string, typ uint16) *dns.Msg {
	t.Helper()
	r := received(t, "192.0.2.1", overUDP, query(t, name, typ))
	a.Routes.Do(r)
	if a.Do(r) == policy.Go {
		if r.Out != nil || r.Note.Source != serve.SourceNone {
			t.Errorf("%s goes on, answered", name)
		}
		return nil
	}
	if r.Note.Source != serve.SourceLocal || r.Note.Zone != 0 {
		t.Errorf("%s: noted as %v of zone %d", name, r.Note.Source, r.Note.Zone)
	}
	return fitted(t, r)
}

// checkLocalSOA checks a negative response (RFC 2308 §3, RFC 6303 §3).
func checkLocalSOA(t *testing.T, m *dns.Msg, zone string) {
	t.Helper()
	if len(m.Answer) != 0 || len(m.Ns) != 1 {
		t.Errorf("%s: answered %v, want a SOA alone", zone, m)
		return
	}
	want := zone + "\t10800\tIN\tSOA\t" + zone + " nobody.invalid. 1 3600 1200 604800 10800"
	if got := m.Ns[0].String(); !strings.EqualFold(got, want) {
		t.Errorf("SOA %s, want %s", got, want)
	}
}

func TestLocalZones(t *testing.T) {
	a := newLocal(t, true, RouteGroup{})
	for _, zone := range localNames() {
		name := "x.y." + zone
		if zone == "localhost." {
			continue // everything below it is there
		}
		m := local(t, a, name, dns.TypeA)
		switch {
		case m == nil:
			t.Errorf("%s is sent on", name)
			continue
		case m.Rcode != dns.RcodeNameError || !m.Authoritative:
			t.Errorf("%s: answered %v, want NXDOMAIN with AA", name, m)
		}
		checkLocalSOA(t, m, zone)
		m = local(t, a, strings.ToUpper(zone), dns.TypeMX)
		if m == nil || m.Rcode != dns.RcodeSuccess || !m.Authoritative {
			t.Errorf("%s: answered %v, want NODATA with AA", zone, m)
			continue
		}
		checkLocalSOA(t, m, zone)
		m = local(t, a, zone, dns.TypeNS)
		if len(m.Answer) != 1 || m.Answer[0].String() != zone+"\t10800\tIN\tNS\t"+zone { // RFC 6303 §3
			t.Errorf("%s: answered %v", zone, m)
		}
	}
	if got, want := len(a.Table.Zones()), len(localNames()); got != want {
		t.Errorf("%d zones, want %d: not all of them are tested", got, want)
	}
}

func TestLocalNot(t *testing.T) {
	a := newLocal(t, true, RouteGroup{})
	for _, name := range []string{
		".", "com.", "www.example.", "arpa.", "in-addr.arpa.", "172.in-addr.arpa.", "15.172.in-addr.arpa.",
		"32.172.in-addr.arpa.", "63.100.in-addr.arpa.", "128.100.in-addr.arpa.", "192.in-addr.arpa.", "1.in-addr.arpa.",
		"ip6.arpa.", "f.ip6.arpa.", "c.f.ip6.arpa.", "c.e.f.ip6.arpa.", "2.0.0.0.ip6.arpa.",
		"testing.", "notlocalhost.", "nolocal.", "example.home.", "ipv4only.arpa.",
	} {
		if m := local(t, a, name, dns.TypePTR); m != nil {
			t.Errorf("%s is answered: %v", name, m)
		}
	}
}

// RFC 6761 §6.3: localhost and all below it are the loopback address.
func TestLocalLocalhost(t *testing.T) {
	a := newLocal(t, true, RouteGroup{})
	for _, c := range []struct {
		name string
		typ  uint16
		want string
	}{
		{"localhost.", dns.TypeA, "localhost.\t10800\tIN\tA\t127.0.0.1"},
		{"localhost.", dns.TypeAAAA, "localhost.\t10800\tIN\tAAAA\t::1"},
		{"a.localhost.", dns.TypeA, "a.localhost.\t10800\tIN\tA\t127.0.0.1"},
		{"a.b.localhost.", dns.TypeAAAA, "a.b.localhost.\t10800\tIN\tAAAA\t::1"},
		{"LocalHost.", dns.TypeA, "LocalHost.\t10800\tIN\tA\t127.0.0.1"},
		{"1.0.0.127.in-addr.arpa.", dns.TypePTR, "1.0.0.127.in-addr.arpa.\t10800\tIN\tPTR\tlocalhost."},
		{nibbles(1), dns.TypePTR, nibbles(1) + "\t10800\tIN\tPTR\tlocalhost."},
	} {
		m := local(t, a, c.name, c.typ)
		if m == nil || m.Rcode != 0 || !m.Authoritative || len(m.Answer) != 1 || m.Answer[0].String() != c.want {
			t.Errorf("%s: answered %v, want %s", c.name, m, c.want)
		}
	}
	for _, name := range []string{"localhost.", "a.localhost."} {
		m := local(t, a, name, dns.TypeMX)
		if m == nil || m.Rcode != 0 {
			t.Errorf("%s: answered %v, want NODATA", name, m)
			continue
		}
		checkLocalSOA(t, m, "localhost.")
	}
	if m := local(t, a, "2.0.0.127.in-addr.arpa.", dns.TypePTR); m == nil || m.Rcode != dns.RcodeNameError {
		t.Errorf("answered %v, want NXDOMAIN", m)
	}
}

// A group that is for such a name has it, as a site's own servers do.
func TestLocalRouted(t *testing.T) {
	for _, c := range []struct {
		what   string
		groups []RouteGroup
		name   string
		want   bool // answered here
	}{
		{"a group for every name", []RouteGroup{{}}, "1.10.in-addr.arpa.", true},
		{"a group for the root is for every name", []RouteGroup{{For: []wire.Name{wire.Root}}}, "1.10.in-addr.arpa.", true},
		{"and for another name", []RouteGroup{{For: append(names(t, "corp."), wire.Root)}}, "1.10.in-addr.arpa.", true},
		{"no group", nil, "1.10.in-addr.arpa.", true},
		{"a group for the name", []RouteGroup{{}, {For: names(t, "10.in-addr.arpa.")}}, "1.10.in-addr.arpa.", false},
		{"for another", []RouteGroup{{}, {For: names(t, "11.in-addr.arpa.")}}, "1.10.in-addr.arpa.", true},
		{"for one above it", []RouteGroup{{}, {For: names(t, "arpa.")}}, "1.10.in-addr.arpa.", false},
		{"for one below it", []RouteGroup{{}, {For: names(t, "1.10.in-addr.arpa.")}}, "2.10.in-addr.arpa.", true},
		{"for one below it, asked for", []RouteGroup{{}, {For: names(t, "1.10.in-addr.arpa.")}}, "1.10.in-addr.arpa.", false},
		{"letters are folded", []RouteGroup{{For: names(t, "home.arpa.")}}, "nas.HOME.arpa.", false},
		{"for other clients", []RouteGroup{{}, {For: names(t, "home.arpa."), Clients: set("10.0.0.0/8")}}, "nas.home.arpa.", true},
		{"for this client", []RouteGroup{{}, {For: names(t, "home.arpa."), Clients: set("192.0.2.0/24")}}, "nas.home.arpa.", false},
	} {
		if m := local(t, newLocal(t, true, c.groups...), c.name, dns.TypePTR); (m != nil) != c.want {
			t.Errorf("%s: answered %v, want that to be %v", c.what, m, c.want)
		}
	}
}

// RFC 6761 §6.2: names below test. may be the site's.
func TestLocalTest(t *testing.T) {
	for _, with := range []bool{true, false} {
		a := newLocal(t, with, RouteGroup{})
		if m := local(t, a, "www.test.", dns.TypeA); (m != nil) != with {
			t.Errorf("with test. %v: answered %v", with, m)
		}
		if m := local(t, a, "www.invalid.", dns.TypeA); m == nil {
			t.Errorf("with test. %v: invalid. is sent on", with)
		}
	}
}
