package act

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
)

// rights is a list as the configuration makes it.
func rights(of map[string]Right) AccessList {
	var all []addrset.Entry[Right]
	for p, right := range of {
		all = append(all, addrset.Entry[Right]{Prefix: netip.MustParsePrefix(p), Value: right})
	}
	return addrset.NewMap(all)
}

func privateOnly() AccessList {
	var all []addrset.Entry[Right]
	for _, p := range addrset.Private() {
		all = append(all, addrset.Entry[Right]{Prefix: p, Value: Everything})
	}
	return addrset.NewMap(all)
}

// admit is what becomes of a client: refused, a stranger or a guest.
func admit(t *testing.T, a *Access, client string, peer *serve.Peer) string {
	t.Helper()
	r := received(t, client, peer, query(t, "www.example.", dns.TypeA))
	next := a.Do(r)
	switch {
	case next == policy.Stop && r.Out != nil:
		m := fitted(t, r)
		if m.Rcode != dns.RcodeRefused || m.RecursionAvailable || r.Note.Source != serve.SourceRefused || r.Note.EDE != edeProhibited+1 {
			t.Errorf("%s: answered %v, note %+v", client, m, r.Note)
		}
		return "refused"
	case next != policy.Go || r.Out != nil:
		t.Fatalf("%s: next %d, response %x", client, next, r.Out)
	}
	r.Finish(0)
	if ra := fitted(t, r).RecursionAvailable; ra != (r.Who == serve.Guest) {
		t.Errorf("%s: RA is %v for client group %d", client, ra, r.Who)
	}
	if r.Who == serve.Guest {
		return "guest"
	}
	return "stranger"
}

func TestAccessDefault(t *testing.T) {
	a := &Access{Default: privateOnly(), Recursive: true}
	zones := &Access{Default: privateOnly()}
	for client, want := range map[string]string{
		"127.0.0.1": "guest", "10.1.2.3": "guest", "192.168.0.9": "guest", "172.16.0.1": "guest",
		"::1": "guest", "fe80::1%eth0": "guest", "fd00::1": "guest", "100.64.0.1": "guest", "::ffff:10.1.2.3": "guest",
		"192.0.2.1": "stranger", "172.32.0.1": "stranger", "2001:db8::1": "stranger", "::ffff:192.0.2.1": "stranger",
	} {
		if got := admit(t, a, client, overUDP); got != want {
			t.Errorf("%s is a %s, want %s", client, got, want)
		}
		// Where there is nothing but zones there is no recursion to be had.
		if got := admit(t, zones, client, overUDP); got != "stranger" {
			t.Errorf("%s is a %s of a server with zones only", client, got)
		}
	}
}

func TestAccessLists(t *testing.T) {
	a := &Access{
		Default: rights(map[string]Right{
			"192.0.2.0/24": Everything, "192.0.2.128/25": Nothing, "192.0.2.200/32": Everything,
			"2001:db8::/32": Nothing, "2001:db8:1::/48": Everything,
		}),
		Listeners: map[string]AccessList{
			overTCP.Listener: rights(map[string]Right{"0.0.0.0/0": Nothing, "198.51.100.0/24": Everything}),
		},
		Recursive: true,
	}
	for _, c := range []struct {
		name, client string
		peer         *serve.Peer
		want         string
	}{
		{"allowed", "192.0.2.1", overUDP, "guest"},
		{"a longer prefix denies", "192.0.2.129", overUDP, "refused"},
		{"a longer one allows again", "192.0.2.200", overUDP, "guest"},
		{"in none", "203.0.113.1", overUDP, "stranger"},
		{"denied", "2001:db8::1", overUDP, "refused"},
		{"allowed by a longer prefix", "2001:db8:1::1", overUDP, "guest"},
		{"the listener's own list, not the default", "192.0.2.1", overTCP, "refused"},
		{"the listener's own list", "198.51.100.1", overTCP, "guest"},
		{"in none of the listener's", "2001:db8:1::1", overTCP, "stranger"},
		{"the default knows nothing of it", "198.51.100.1", overUDP, "stranger"},
	} {
		if got := admit(t, a, c.client, c.peer); got != c.want {
			t.Errorf("%s: %s is a %s, want %s", c.name, c.client, got, c.want)
		}
	}
	if got := admit(t, &Access{Recursive: true}, "127.0.0.1", overUDP); got != "stranger" {
		t.Errorf("without a list 127.0.0.1 is a %s", got)
	}
}

// RFC 8914 §4.19: code 18 is Prohibited. Without OPT in the query there is none in
// the response (RFC 6891 §7).
func TestAccessError(t *testing.T) {
	a := &Access{Default: rights(map[string]Right{"0.0.0.0/0": Nothing})}
	r := received(t, "192.0.2.1", overUDP, query(t, "www.example.", dns.TypeA, edns))
	a.Do(r)
	checkError(t, fitted(t, r), edeProhibited)
	r = received(t, "192.0.2.1", overUDP, query(t, "www.example.", dns.TypeA))
	a.Do(r)
	if m := fitted(t, r); m.IsEdns0() != nil {
		t.Errorf("answered %v, with OPT", m)
	}
	r = received(t, "192.0.2.1", overUDP, query(t, "www.example.", dns.TypeA, edns))
	Refuse{20}.Do(r)
	checkError(t, fitted(t, r), 20)
}

func TestAccessViews(t *testing.T) {
	set := func(prefixes ...string) *addrset.Set {
		var all []netip.Prefix
		for _, p := range prefixes {
			all = append(all, netip.MustParsePrefix(p))
		}
		return addrset.New(all)
	}
	tcp := map[string]bool{overTCP.Listener: true}
	a := &Access{Views: []View{
		{Clients: set("192.0.2.0/28")},
		{Clients: set("192.0.2.0/24"), Listener: tcp},
		{Listener: tcp},
		{Clients: set("198.51.100.0/24", "2001:db8::/32")},
		{Clients: set("198.51.100.0/25")},
	}}
	for _, c := range []struct {
		name, client string
		peer         *serve.Peer
		want         uint16
	}{
		{"by client", "192.0.2.1", overUDP, 1},
		{"by client, whatever the listener", "192.0.2.1", overTCP, 1},
		{"by client and listener", "192.0.2.99", overTCP, 2},
		{"the listener does not fit", "192.0.2.99", overUDP, 0},
		{"by listener", "203.0.113.1", overTCP, 3},
		{"the first that fits, not the longest prefix", "198.51.100.1", overUDP, 4},
		{"an earlier one fits by listener", "198.51.100.1", overTCP, 3},
		{"IPv6", "2001:db8::1", overUDP, 4},
		{"none", "203.0.113.1", overUDP, 0},
	} {
		r := received(t, c.client, c.peer, query(t, "www.example.", dns.TypeA))
		a.Do(r)
		if r.View != c.want {
			t.Errorf("%s: view %d, want %d", c.name, r.View, c.want)
		}
	}
}

func TestAccessAllocs(t *testing.T) {
	a := &Access{
		Default: privateOnly(), Recursive: true,
		Listeners: map[string]AccessList{overTCP.Listener: rights(map[string]Right{"0.0.0.0/0": Nothing})},
		Views:     []View{{Clients: addrset.New(addrset.Private()), Listener: map[string]bool{"x": true}}, {}},
	}
	guest := received(t, "10.0.0.1", overUDP, query(t, "www.example.", dns.TypeA, edns))
	denied := received(t, "10.0.0.1", overTCP, query(t, "www.example.", dns.TypeA, edns))
	out, other := make([]byte, 1232), make([]byte, 1232)
	allocates(t, func() {
		guest.Start(out)
		denied.Start(other)
		if a.Do(guest) != policy.Go || a.Do(denied) != policy.Stop {
			t.Error("not as expected")
		}
	})
}
