package act

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/limit"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// clock stands still.
func clock() uint32 { return 1_700_000_000 }

// two grants two queries at once, and one per second.
func two() *limit.Rate { return limit.NewRate(limit.RateConfig{PerSecond: 1, Burst: 2}) }

// limited is a program of limits in front of something that answers.
func limited(a *Limits, rcode wire.Rcode) *policy.Set {
	return program(policy.Rule{Do: a, After: a}, policy.Rule{Do: doing(func(r *serve.Request) policy.Next {
		set := wire.RRset{Type: wire.TypeA, Class: wire.ClassIN, TTL: 60, Count: 1, RDATA: []byte{0, 4, 192, 0, 2, 1}}
		if rcode == wire.NoError {
			r.Reply.Flags |= wire.FlagAA
			r.Reply.Add(wire.Answer, r.Ask.Name, &set, nil)
		}
		r.Finish(rcode)
		return policy.Stop
	})})
}

// outcome puts a query to a program at that time and tells what comes of it in
// one word.
func outcome(t testing.TB, s *policy.Set, client string, peer *serve.Peer, at time.Duration, msg []byte) (string, *serve.Request, *dns.Msg) {
	t.Helper()
	r := received(t, client, peer, msg)
	r.At = at
	switch got := s.Serve(r); got {
	case serve.Drop:
		return "dropped", r, nil
	case serve.Done:
	default:
		t.Fatalf("Serve says %d: a query that is held back waits for something", got)
	}
	m := fitted(t, r)
	switch {
	case m.Truncated && len(m.Answer) == 0 && !m.Authoritative:
		return "truncated " + dns.RcodeToString[m.Rcode], r, m
	case m.Rcode != dns.RcodeSuccess:
		return dns.RcodeToString[m.Rcode], r, m
	case len(m.Answer) != 1 || m.Truncated:
		t.Errorf("answered %v", m)
	}
	return "answered", r, m
}

// outcomes checks what comes of equal queries, one after the other.
func outcomes(t *testing.T, s *policy.Set, client string, peer *serve.Peer, with how, want ...string) {
	t.Helper()
	for i, w := range want {
		got, r, _ := outcome(t, s, client, peer, time.Minute, query(t, "www.example.", dns.TypeA, with))
		if got != w {
			t.Errorf("query %d of %s over %v is %s, want %s", i+1, client, peer.Proto, got, w)
		}
		if over := r.Note.Limit != serve.Unlimited; over != (w != "answered") {
			t.Errorf("query %d of %s: noted as %d", i+1, client, r.Note.Limit)
		}
	}
}

func TestLimitsRate(t *testing.T) {
	const cookie = "clientco"
	for _, c := range []struct {
		name   string
		limits Limits
		client string
		peer   *serve.Peer
		with   how
		third  string // what becomes of the third query
	}{
		{"to come again over TCP", Limits{Truncate: true}, "192.0.2.1", overUDP, edns, "truncated NOERROR"},
		{"dropped", Limits{}, "192.0.2.1", overUDP, edns, "dropped"},
		{"with a cookie to come again with ours", Limits{Cookies: limit.NewCookies([16]byte{1})}, "192.0.2.1", overUDP, option(wire.OptCookie, cookie), "BADCOOKIE"},
		{"without cookies of ours a cookie is nothing", Limits{}, "192.0.2.1", overUDP, option(wire.OptCookie, cookie), "dropped"},
		{"over a stream", Limits{Truncate: true}, "192.0.2.1", overTCP, edns, "REFUSED"},
		{"exempt", Limits{Exempt: set("192.0.2.0/24")}, "192.0.2.1", overUDP, edns, "answered"},
		{"exempt, over a stream", Limits{Exempt: set("192.0.2.0/24")}, "192.0.2.1", overTCP, edns, "answered"},
		{"another is exempt", Limits{Exempt: set("192.0.3.0/24")}, "192.0.2.1", overUDP, edns, "dropped"},
		{"private clients are limited where it was set", Limits{}, "10.0.0.1", overUDP, edns, "dropped"},
		{"by default: a public listener", Limits{Public: map[string]bool{overUDP.Listener: true}}, "192.0.2.1", overUDP, edns, "dropped"},
		{"by default: a private client", Limits{Public: map[string]bool{overUDP.Listener: true}}, "10.0.0.1", overUDP, edns, "answered"},
		{"by default: another listener", Limits{Public: map[string]bool{overTCP.Listener: true}}, "192.0.2.1", overUDP, edns, "answered"},
		{"by default: no public listener", Limits{Public: map[string]bool{}}, "192.0.2.1", overUDP, edns, "answered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := c.limits
			a.Rate, a.Streams, a.Private, a.Unix = two(), two(), addrset.New(addrset.Private()), clock
			s := limited(&a, wire.NoError)
			outcomes(t, s, c.client, c.peer, c.with, "answered", "answered", c.third, c.third)
			if c.third == "answered" {
				return
			}
			other := overTCP
			if c.peer == overTCP {
				other = overUDP
			}
			got, _, _ := outcome(t, s, c.client, other, time.Minute, query(t, "www.example.", dns.TypeA))
			if got != "answered" {
				t.Errorf("over %v it is %s: each has a bucket of its own", other.Proto, got)
			}
			got, _, _ = outcome(t, s, "198.51.100.1", c.peer, time.Minute, query(t, "www.example.", dns.TypeA))
			if got != "answered" {
				t.Errorf("another client's is %s", got)
			}
		})
	}
}

// A query over the limit costs one look at the bucket: the second after it, the
// client may ask once.
func TestLimitsRateTakesOnce(t *testing.T) {
	a := &Limits{Rate: two(), Truncate: true}
	s := limited(a, wire.NoError)
	for i, want := range []string{"answered", "answered", "truncated NOERROR", "answered", "truncated NOERROR"} {
		at := time.Minute
		if i > 2 {
			at += 1100 * time.Millisecond
		}
		if got, _, _ := outcome(t, s, "192.0.2.1", overUDP, at, query(t, "www.example.", dns.TypeA)); got != want {
			t.Errorf("query %d is %s, want %s", i+1, got, want)
		}
	}
}

func TestLimitsOff(t *testing.T) {
	s := limited(&Limits{}, wire.NoError)
	outcomes(t, s, "192.0.2.1", overUDP, edns, "answered", "answered", "answered")
}

// cookieOf is the COOKIE option of a response.
func cookieOf(t *testing.T, m *dns.Msg) string {
	t.Helper()
	var found []string
	for _, o := range m.IsEdns0().Option {
		if c, ok := o.(*dns.EDNS0_COOKIE); ok {
			b, err := hex.DecodeString(c.Cookie)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, string(b))
		}
	}
	if len(found) != 1 || len(found[0]) != limit.CookieSize {
		t.Fatalf("cookies %q, want one of %d octets", found, limit.CookieSize)
	}
	return found[0]
}

// RFC 7873 §5.2.3, §5.2.5: the cookie that comes with BADCOOKIE opens both limits.
func TestLimitsCookie(t *testing.T) {
	a := &Limits{
		Rate: two(), RRL: limit.NewRRL(limit.RRLConfig{PerSecond: 1}),
		Cookies: limit.NewCookies([16]byte{1}), Unix: clock,
	}
	s := limited(a, wire.NoError)
	var m *dns.Msg
	for range 3 {
		_, _, m = outcome(t, s, "192.0.2.1", overUDP, time.Minute, query(t, "www.example.", dns.TypeA, option(wire.OptCookie, "clientco")))
	}
	if m == nil || m.Rcode != dns.RcodeBadCookie {
		t.Fatalf("the third query is answered %v, want BADCOOKIE", m)
	}
	good := cookieOf(t, m)
	for i := range 5 {
		got, r, m := outcome(t, s, "192.0.2.1", overUDP, time.Minute, query(t, "www.example.", dns.TypeA, option(wire.OptCookie, good)))
		if got != "answered" || !r.Note.Trusted {
			t.Errorf("query %d with a good cookie is %s", i+1, got)
			continue
		}
		if fresh := cookieOf(t, m); fresh[:8] != "clientco" {
			t.Errorf("cookie %x", fresh)
		}
	}
	for name, c := range map[string]struct{ client, cookie string }{
		"of another client": {"192.0.2.2", good},
		"forged":            {"192.0.2.3", good[:20] + "\x00\x00\x00\x00"},
	} {
		var last string
		for range 3 {
			_, r, m := outcome(t, s, c.client, overUDP, time.Minute, query(t, "www.example.", dns.TypeA, option(wire.OptCookie, c.cookie)))
			if r.Note.Trusted {
				t.Errorf("%s: trusted", name)
			}
			if m != nil {
				last = dns.RcodeToString[m.Rcode]
			}
		}
		if last != "BADCOOKIE" {
			t.Errorf("%s: %s, want BADCOOKIE", name, last)
		}
	}
}

// RFC 7873 §5.2.2.
func TestLimitsCookieMalformed(t *testing.T) {
	s := limited(&Limits{Cookies: limit.NewCookies([16]byte{1}), Unix: clock}, wire.NoError)
	off := limited(&Limits{Rate: two()}, wire.NoError)
	for _, c := range []struct {
		octets int
		want   string
	}{{0, "FORMERR"}, {7, "FORMERR"}, {8, "answered"}, {9, "FORMERR"}, {15, "FORMERR"}, {16, "answered"}, {24, "answered"}, {40, "answered"}, {41, "FORMERR"}} {
		msg := query(t, "www.example.", dns.TypeA, option(wire.OptCookie, string(bytes.Repeat([]byte{1}, c.octets))))
		got, r, _ := outcome(t, s, "192.0.2.1", overUDP, 0, msg)
		if got != c.want || (r.Note.Source == serve.SourceError) != (got == "FORMERR") {
			t.Errorf("a cookie of %d octets is %s (%v), want %s", c.octets, got, r.Note.Source, c.want)
		}
		if got, _, _ := outcome(t, off, fmt.Sprintf("192.0.2.%d", c.octets), overUDP, 0, msg); got != "answered" {
			t.Errorf("a cookie of %d octets is %s where there are none", c.octets, got)
		}
	}
}

func TestLimitsRRL(t *testing.T) {
	for _, c := range []struct {
		name   string
		slip   int
		client string
		peer   *serve.Peer
		rcode  wire.Rcode
		want   []string
	}{
		{"each slips", 1, "192.0.2.1", overUDP, wire.NoError, []string{"answered", "truncated NOERROR", "truncated NOERROR"}},
		{"every second slips", 2, "192.0.2.1", overUDP, wire.NoError, []string{"answered", "truncated NOERROR", "dropped", "truncated NOERROR", "dropped"}},
		{"none slips", 0, "192.0.2.1", overUDP, wire.NoError, []string{"answered", "dropped", "dropped"}},
		{"NXDOMAIN keeps its code", 1, "192.0.2.1", overUDP, wire.NXDomain, []string{"NXDOMAIN", "truncated NXDOMAIN"}},
		{"errors too", 1, "192.0.2.1", overUDP, wire.Refused, []string{"REFUSED", "truncated REFUSED"}},
		{"no stream is used for amplification", 0, "192.0.2.1", overTCP, wire.NoError, []string{"answered", "answered", "answered"}},
		{"exempt", 0, "203.0.113.1", overUDP, wire.NoError, []string{"answered", "answered", "answered"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &Limits{RRL: limit.NewRRL(limit.RRLConfig{PerSecond: 1, Slip: c.slip}), Exempt: set("203.0.113.0/24")}
			s := limited(a, c.rcode)
			for i, want := range c.want {
				got, r, _ := outcome(t, s, c.client, c.peer, time.Minute, query(t, "www.example.", dns.TypeA, edns))
				if got != want || (r.Note.Limit == serve.OverRRL) != (i > 0 && c.peer == overUDP && c.name != "exempt") {
					t.Errorf("response %d is %s, limit %d; want %s", i+1, got, r.Note.Limit, want)
				}
			}
		})
	}
}

// What is counted together.
func TestLimitsRRLKinds(t *testing.T) {
	for _, c := range []struct {
		name  string
		rcode wire.Rcode
		first string
		other string
		typ   uint16
		want  string // of the other
	}{
		{"one name, letters aside", wire.NoError, "www.example.", "WWW.example.", dns.TypeA, "dropped"},
		{"another name", wire.NoError, "www.example.", "ftp.example.", dns.TypeA, "answered"},
		{"another type", wire.NoError, "www.example.", "www.example.", dns.TypeAAAA, "answered"},
		{"random names of one zone", wire.NXDomain, "a.www.example.com.", "b.ftp.example.com.", dns.TypeA, "dropped"},
		{"of another zone", wire.NXDomain, "a.example.com.", "a.example.net.", dns.TypeA, "NXDOMAIN"},
		{"errors, whatever the name", wire.Refused, "www.example.", "ftp.test.", dns.TypeA, "dropped"},
	} {
		s := limited(&Limits{RRL: limit.NewRRL(limit.RRLConfig{PerSecond: 1})}, c.rcode)
		outcome(t, s, "192.0.2.1", overUDP, time.Minute, query(t, c.first, dns.TypeA))
		if got, _, _ := outcome(t, s, "192.0.2.99", overUDP, time.Minute, query(t, c.other, c.typ)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestLimitsAllocs(t *testing.T) {
	a := &Limits{
		Rate: two(), Streams: two(), Truncate: true, Private: addrset.New(addrset.Private()),
		Public:  map[string]bool{overUDP.Listener: true},
		RRL:     limit.NewRRL(limit.RRLConfig{PerSecond: 1, Slip: 1}),
		Cookies: limit.NewCookies([16]byte{1}), Unix: clock,
	}
	s := limited(a, wire.NoError)
	plain := received(t, "192.0.2.1", overUDP, query(t, "www.example.", dns.TypeA))
	cookie := received(t, "192.0.2.2", overUDP, query(t, "www.example.", dns.TypeA, option(wire.OptCookie, "clientco")))
	private := netip.MustParseAddrPort("10.0.0.1:53")
	out := make([]byte, 1232)
	allocates(t, func() {
		for _, r := range []*serve.Request{plain, cookie} {
			r.Start(out)
			s.Serve(r)
		}
		plain.Client = private
		plain.Start(out)
		s.Serve(plain)
	})
}
