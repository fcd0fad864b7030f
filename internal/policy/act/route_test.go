package act

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/wire"
)

// routed is where a question goes, and what keeps its answers apart.
func routed(t *testing.T, routes *Routes, client string, view uint16, name string) (route uint16, part uint32) {
	t.Helper()
	r := received(t, client, overUDP, query(t, name, dns.TypeA))
	r.View = view
	r.Route = 99 // of an earlier use
	if next := routes.Do(r); next != policy.Go || r.Out != nil {
		t.Fatalf("next %d", next)
	}
	return r.Route, routes.part(r)
}

func set(prefix string) *addrset.Set {
	return addrset.New([]netip.Prefix{netip.MustParsePrefix(prefix)})
}

func TestRouteNames(t *testing.T) {
	routes := NewRoutes([]RouteGroup{
		{For: names(t, "example.", "corp.test.")},
		{For: names(t, "a.example.", "B.C.a.example.")},
		{},
	})
	for name, want := range map[string]uint16{
		"example.": 1, "www.example.": 1, "WWW.ExAmPlE.": 1, "corp.test.": 1, "x.y.corp.test.": 1,
		"a.example.": 2, "x.a.example.": 2, "c.a.example.": 2, "b.c.a.example.": 2, "x.B.c.A.example.": 2,
		"xa.example.": 1, "example.net.": 3, "test.": 3, "notexample.": 3, ".": 3,
	} {
		if got, part := routed(t, routes, "192.0.2.1", 0, name); got != want || part != 0 {
			t.Errorf("%s goes to group %d, part %d; want %d", name, got, part, want)
		}
	}
}

func TestRouteNone(t *testing.T) {
	routes := NewRoutes([]RouteGroup{{For: names(t, "example.")}, {For: names(t, "test."), Clients: set("10.0.0.0/8")}})
	for _, name := range []string{".", "com.", "www.example.com.", "www.test."} {
		if got, _ := routed(t, routes, "192.0.2.1", 0, name); got != 0 {
			t.Errorf("%s goes to group %d, want nowhere", name, got)
		}
	}
	if got, _ := routed(t, NewRoutes(nil), "192.0.2.1", 0, "www.example."); got != 0 {
		t.Errorf("without groups there is group %d", got)
	}
	// Every name is the root and all below it.
	for _, root := range [][]wire.Name{nil, {wire.Root}} {
		if got, _ := routed(t, NewRoutes([]RouteGroup{{For: root}}), "192.0.2.1", 0, "."); got != 1 {
			t.Errorf("the root goes to group %d, want 1", got)
		}
	}
}

func TestRouteOrder(t *testing.T) {
	routes := NewRoutes([]RouteGroup{
		{For: names(t, "example.")},                                      // 1
		{For: names(t, "example."), Views: []uint16{2, 3}},               // 2
		{For: names(t, "example."), Clients: set("10.0.0.0/8"), Part: 3}, // 3
		{For: names(t, "example."), Clients: set("10.1.0.0/16"), Part: 4},
		{For: names(t, "example."), Views: []uint16{3}},
		{Clients: set("10.0.0.0/8"), Views: []uint16{4}, Part: 6}, // 6
		{}, // 7
		{}, // 8
	})
	for _, c := range []struct {
		what, client string
		view         uint16
		name         string
		route        uint16
		part         uint32
	}{
		{"open to all", "192.0.2.1", 0, "www.example.", 1, 0},
		{"for certain clients, before the open one", "10.0.0.1", 0, "www.example.", 3, 3},
		{"of two for certain clients the first, not the longer prefix", "10.1.0.1", 0, "www.example.", 3, 3},
		{"for certain views, before the open one", "192.0.2.1", 2, "www.example.", 2, 0},
		{"of two for certain views the first", "192.0.2.1", 3, "www.example.", 2, 0},
		{"clients before views", "10.0.0.1", 2, "www.example.", 3, 3},
		{"another view", "192.0.2.1", 4, "www.example.", 1, 0},
		{"the name before everything", "10.0.0.1", 4, "www.example.", 3, 3},
		{"clients and view", "10.0.0.1", 4, "www.test.", 6, 6},
		{"not the view", "10.0.0.1", 3, "www.test.", 7, 0},
		{"not the client; of two the first", "192.0.2.1", 4, "www.test.", 7, 0},
	} {
		if route, part := routed(t, routes, c.client, c.view, c.name); route != c.route || part != c.part {
			t.Errorf("%s: group %d, part %d; want %d, %d", c.what, route, part, c.route, c.part)
		}
	}
}

// A group that does not take a client leaves it to one with a shorter name.
func TestRouteFallsBack(t *testing.T) {
	routes := NewRoutes([]RouteGroup{
		{For: names(t, "a.example."), Clients: set("10.0.0.0/8")},
		{For: names(t, "example."), Views: []uint16{1}},
		{},
	})
	for _, c := range []struct {
		client string
		view   uint16
		want   uint16
	}{{"10.0.0.1", 0, 1}, {"192.0.2.1", 1, 2}, {"192.0.2.1", 0, 3}} {
		if got, _ := routed(t, routes, c.client, c.view, "www.a.example."); got != c.want {
			t.Errorf("%s with view %d: group %d, want %d", c.client, c.view, got, c.want)
		}
	}
}

func TestRouteAllocs(t *testing.T) {
	routes := NewRoutes([]RouteGroup{
		{For: names(t, "example.", "a.b.c.example."), Clients: set("10.0.0.0/8"), Views: []uint16{1}, Part: 1}, {},
	})
	r := received(t, "10.0.0.1", overUDP, query(t, "www.A.b.c.example.", dns.TypeA))
	r.View = 1
	allocates(t, func() {
		if routes.Do(r); r.Route != 1 || !routes.named(r) || routes.part(r) != 1 {
			t.Errorf("group %d", r.Route)
		}
	})
}
