package cache

import (
	"encoding/binary"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

// replayed is what a client gets of an answer.
func (a *asker) replayed(ans *Answer, dnssec bool) *dns.Msg {
	a.t.Helper()
	a.reply.Begin(&a.query, a.buf)
	if !ans.Replay(&a.reply, dnssec) {
		a.t.Fatal("the answer is to another question")
	}
	msg := a.reply.End(ans.Rcode)
	if len(msg) > ans.Size(dnssec) {
		a.t.Errorf("%d octets, and %d were told", len(msg), ans.Size(dnssec))
	}
	m := new(dns.Msg)
	if err := m.Unpack(msg); err != nil {
		a.t.Fatalf("unpacking %x: %v", msg, err)
	}
	return m
}

const (
	wwwA   = "www.example. 300 IN A 192.0.2.1"
	wwwSig = "www.example. 300 IN RRSIG A 8 2 300 20300101000000 20200101000000 1 example. c2ln"
	apex   = "example. 600 IN SOA ns.example. root.example. 1 2 3 4 60"
)

// What an answer says does not depend on what was read into it before.
func TestAnswerRead(t *testing.T) {
	c := open(t, Config{})
	a := newAsker(t, c)
	k := a.ask("www.example. A")
	edit := func(msg []byte, f func([]byte)) []byte { f(msg); return msg }
	flag := func(bits uint16) func([]byte) {
		return func(m []byte) { binary.BigEndian.PutUint16(m[2:], binary.BigEndian.Uint16(m[2:])|bits) }
	}
	q := "www.example. A"
	cases := []struct {
		name  string
		msg   []byte
		want  Stored
		rcode wire.Rcode
		flags uint16
		plain string // what a client without DNSSEC gets; "" where there is nothing to give
	}{
		{"an answer", response(t, q, 0, wwwA), Kept, wire.NoError, 0, "www.example. 300 IN A 192.0.2.1\n"},
		{"signed, with AD", edit(response(t, q, 0, wwwA, wwwSig), flag(wire.FlagAD)), Kept, wire.NoError, wire.FlagAD, "www.example. 300 IN A 192.0.2.1\n"},
		{"letters of the question", edit(response(t, q, 0, wwwA), func(m []byte) { m[13] = 'W' }), Kept, wire.NoError, 0, "www.example. 300 IN A 192.0.2.1\n"},
		{"NXDOMAIN", response(t, q, 3, ";; authority", apex), Kept, wire.NXDomain, 0, ";; authority\nexample. 60 IN SOA ns.example. root.example. 1 2 3 4 60\n"},
		{"negative without SOA", response(t, q, 3), NotCacheable, wire.NXDomain, 0, "-"},
		{"TTL 0", response(t, q, 0, "www.example. 0 IN A 192.0.2.1"), NotCacheable, wire.NoError, 0, "www.example. 0 IN A 192.0.2.1\n"},
		{"truncated", edit(response(t, q, 0, wwwA), flag(wire.FlagTC)), NotCacheable, wire.NoError, wire.FlagTC, "www.example. 300 IN A 192.0.2.1\n"},
		{"SERVFAIL", response(t, q, 2), Kept, wire.ServFail, 0, ""},
		{"REFUSED", response(t, q, 5), NotCacheable, wire.Refused, 0, ""},
		{"another question", response(t, "ftp.example. A", 0), Malformed, 0, 0, ""},
		{"another type", response(t, "www.example. AAAA", 0), Malformed, 0, 0, ""},
		{"cut", response(t, q, 0, wwwA)[:40], Malformed, 0, 0, ""},
		{"octets behind the end", append(response(t, q, 0, wwwA), 0), Malformed, 0, 0, ""},
		{"a query", edit(response(t, q, 0, wwwA), func(m []byte) { m[2] &^= 0x80 }), Malformed, 0, 0, ""},
		{"nothing", nil, Malformed, 0, 0, ""},
	}
	var ans Answer
	for _, before := range cases {
		for _, c2 := range cases {
			ans.Read(c, k, before.msg)
			if got := ans.Read(c, k, c2.msg); got != c2.want || ans.Rcode != c2.rcode || ans.Flags != c2.flags || ans.EDE != 0 {
				t.Errorf("%s behind %s: %d, code %v, flags %x; want %d, %v, %x", c2.name, before.name, got, ans.Rcode, ans.Flags, c2.want, c2.rcode, c2.flags)
			}
			if c2.plain == "" {
				continue
			}
			want := c2.plain
			if want == "-" {
				want = ""
			}
			if got := lines(a.replayed(&ans, false)); got != want {
				t.Errorf("%s behind %s: without DNSSEC\n%s, want\n%s", c2.name, before.name, got, want)
			}
		}
	}
	ans.Read(c, k, cases[1].msg)
	if got := lines(a.replayed(&ans, true)); got != "www.example. 300 IN A 192.0.2.1\nwww.example. 300 IN RRSIG A 8 2 300 20300101000000 20200101000000 1 example. c2ln\n" {
		t.Errorf("with DNSSEC\n%s", got)
	}
}

// A question whose response is not read as far as its code is malformed, whatever
// was read before.
func TestAnswerReadMeta(t *testing.T) {
	c := open(t, Config{})
	a := newAsker(t, c)
	var ans Answer
	for _, rcode := range []int{0, 2, 3, 5} {
		ans.Read(c, a.ask("www.example. A"), response(t, "www.example. A", rcode))
		if got := ans.Read(c, a.ask("www.example. AXFR"), response(t, "www.example. AXFR", 0)); got != Malformed || ans.Rcode != 0 {
			t.Errorf("behind code %d: %d, code %v", rcode, got, ans.Rcode)
		}
	}
}

// Without a cache TTLs stay as they came.
func TestAnswerWithoutCache(t *testing.T) {
	c := open(t, Config{MaxTTL: 100 * second})
	a := newAsker(t, c)
	k := a.ask("www.example. A")
	msg := response(t, "www.example. A", 0, "www.example. 1000000 IN A 192.0.2.1")
	var ans Answer
	for want, of := range map[string]*Cache{"www.example. 1000000 IN A 192.0.2.1\n": nil, "www.example. 100 IN A 192.0.2.1\n": c} {
		if got := ans.Read(of, k, msg); got != Kept {
			t.Errorf("Read says %d", got)
		}
		if got := lines(a.replayed(&ans, false)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestAnswerReplayElsewhere(t *testing.T) {
	a := newAsker(t, nil)
	var ans Answer
	ans.Read(nil, a.ask("www.example. A"), response(t, "www.example. A", 0, wwwA))
	a.ask("wwww.example. A")
	a.reply.Begin(&a.query, a.buf)
	if ans.Replay(&a.reply, false) {
		t.Error("written behind another question")
	}
}

func TestAnswerKeep(t *testing.T) {
	c := open(t, Config{})
	a := newAsker(t, c)
	k := a.ask("www.example. A")
	var ans Answer
	msg := response(t, "www.example. A", 0, wwwA)
	ans.Read(c, k, msg)
	clear(msg) // nothing of it is kept
	if got := c.Keep(k, &ans, second, 3); got != Kept {
		t.Fatalf("Keep says %d", got)
	}
	if hit, m := a.get(11*second, false); hit.Verdict != Fresh || hit.Upstream != 3 || lines(m) != "www.example. 290 IN A 192.0.2.1\n" {
		t.Errorf("%+v, %v", hit, m)
	}
	k = a.ask("zero.example. A")
	ans.Read(c, k, response(t, "zero.example. A", 0, "zero.example. 0 IN A 192.0.2.1"))
	if got := c.Keep(k, &ans, second, 3); got != NotCacheable {
		t.Errorf("Keep says %d of TTL 0", got)
	}
	if hit, _ := a.get(second, false); hit.Verdict != Miss {
		t.Errorf("%+v, want a miss", hit)
	}
}

// RFC 9520 §3.2, RFC 8767 §5.
func TestAnswerFail(t *testing.T) {
	c := open(t, Config{MaxStale: 3600 * second})
	a := newAsker(t, c)
	for _, silent := range []bool{false, true} {
		name, life := "told.example. A", 5*second
		if silent {
			name, life = "silent.example. A", second
		}
		k := a.ask(name)
		c.Fail(k, 100*second, 23, silent)
		if hit, m := a.get(100*second+life-1, true); hit.Verdict != Fresh || hit.Rcode != wire.ServFail || hit.EDE != 23 || hit.Upstream != 0 || len(m.Answer) != 0 {
			t.Errorf("%s: %+v, %v", name, hit, m)
		}
		if hit, _ := a.get(100*second+life, true); hit.Verdict != Miss {
			t.Errorf("%s: %+v at its end, and failures are never stale", name, hit)
		}
	}
	k := a.ask("www.example. A")
	a.stores(response(t, "www.example. A", 0, wwwA), 0)
	c.Fail(k, 400*second, 23, false)
	if hit, m := a.get(401*second, false); hit.Verdict != Stale || lines(m) != "www.example. 30 IN A 192.0.2.1\n" {
		t.Errorf("%+v, %v: what was there is better", hit, m)
	}
	if hit, _ := a.get(430*second, false); hit.Verdict != Expired {
		t.Errorf("%+v, want that the upstream is tried again", hit)
	}
}
