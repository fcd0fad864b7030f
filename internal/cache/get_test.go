package cache

import (
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

const addr = "www.example. 100 IN A 192.0.2.1"

// step is something that happens to one entry, which was put in at 0 s with a
// life of 100 s.
type step struct {
	at     int    // seconds
	do     string // get, stale, failed, servfail, refused, nxdomain, put
	want   Verdict
	ask    bool   // the caller wins the refresh
	stored Stored // of those that put
	ttl    uint32 // of what is replayed, where not 0
}

func TestStale(t *testing.T) {
	day := 86400 * second
	for _, c := range []struct {
		name, rfc string
		conf      Config
		steps     []step
	}{
		{"no stale data", "8767 §5", Config{}, []step{{at: 99, do: "get", want: Fresh, ttl: 1}, {at: 100, do: "get"}, {at: 100, do: "stale"}}},
		{"the upstream is tried first", "8767 §5", Config{MaxStale: day}, []step{
			{at: 100, do: "get", want: Expired}, {at: 101, do: "get", want: Expired}, {at: 101, do: "stale", want: Stale, ttl: 30}}},
		{"until MaxStale", "8767 §5", Config{MaxStale: 50 * second}, []step{
			{at: 149, do: "stale", want: Stale, ttl: 30}, {at: 150, do: "stale"}, {at: 150, do: "get"}}},
		{"for 30 s after a failure, then again", "8767 §5", Config{MaxStale: day}, []step{
			{at: 100, do: "get", want: Expired}, {at: 102, do: "failed"},
			{at: 102, do: "get", want: Stale, ttl: 30}, {at: 131, do: "get", want: Stale, ttl: 30}, {at: 132, do: "get", want: Expired}}},
		{"at once, with one refresh", "8767 §5", Config{MaxStale: day, Immediate: true}, []step{
			{at: 99, do: "get", want: Fresh}, {at: 100, do: "get", want: Stale, ask: true, ttl: 30}, {at: 100, do: "get", want: Stale, ttl: 30},
			{at: 104, do: "get", want: Stale}, {at: 105, do: "get", want: Stale, ask: true}, {at: 105, do: "failed"},
			{at: 134, do: "get", want: Stale}, {at: 135, do: "get", want: Stale, ask: true}, {at: 135, do: "put", stored: Kept}, {at: 136, do: "get", want: Fresh, ttl: 99}}},
		{"Stale takes what is fresh", "8767 §5", Config{MaxStale: day}, []step{{at: 50, do: "stale", want: Fresh, ttl: 50}}},
		{"SERVFAIL leaves good data alone", "8767 §4", Config{MaxStale: day}, []step{
			{at: 50, do: "servfail", stored: KeptOld}, {at: 51, do: "get", want: Fresh, ttl: 49},
			{at: 120, do: "servfail", stored: KeptOld}, {at: 121, do: "get", want: Stale, ttl: 30}, {at: 150, do: "get", want: Expired}}},
		{"REFUSED does as well", "8767 §4", Config{MaxStale: day}, []step{
			{at: 120, do: "refused", stored: KeptOld}, {at: 121, do: "get", want: Stale, ttl: 30}}},
		{"and is not cacheable", "2308 §7", Config{}, []step{{at: 120, do: "refused", stored: NotCacheable}}},
		{"SERVFAIL after all", "9520 §3.2", Config{}, []step{
			{at: 120, do: "servfail", stored: Kept}, {at: 124, do: "get", want: Fresh}, {at: 125, do: "get"}}},
		{"SERVFAIL is never stale, and gives way", "9520 §3.2", Config{MaxStale: 10 * second}, []step{
			{at: 120, do: "servfail", stored: Kept}, {at: 125, do: "get"}, {at: 125, do: "stale"},
			{at: 125, do: "servfail", stored: Kept}, {at: 126, do: "put", stored: Kept}, {at: 127, do: "get", want: Fresh, ttl: 99}}},
		{"a refresh that failed does not find SERVFAIL", "9520 §3.2", Config{MaxStale: day, Immediate: true}, []step{
			{at: 100 + 86400, do: "servfail", stored: Kept}, {at: 101 + 86400, do: "failed"}, {at: 102 + 86400, do: "refused", stored: NotCacheable}}},
		{"NXDOMAIN replaces data", "8767 §4", Config{MaxStale: day}, []step{
			{at: 120, do: "nxdomain", stored: Kept}, {at: 121, do: "get", want: Fresh}, {at: 180, do: "get", want: Expired}, {at: 180, do: "stale", want: Stale}}},
		{"prefetch of what is popular, once", "8767 §5", Config{Prefetch: true}, []step{
			{at: 89, do: "get", want: Fresh}, {at: 90, do: "get", want: Fresh}, {at: 91, do: "get", want: Fresh, ask: true}, {at: 91, do: "get", want: Fresh}, {at: 95, do: "get", want: Fresh},
			{at: 96, do: "get", want: Fresh, ask: true}, {at: 97, do: "put", stored: Kept}, {at: 110, do: "get", want: Fresh, ttl: 87}}},
		{"no prefetch of what was asked for once", "8767 §5", Config{Prefetch: true}, []step{{at: 95, do: "get", want: Fresh}, {at: 95, do: "get", want: Fresh, ask: true}}},
		{"prefetch waits after a failure", "8767 §5", Config{Prefetch: true}, []step{
			{at: 1, do: "get", want: Fresh}, {at: 91, do: "get", want: Fresh, ask: true}, {at: 92, do: "failed"}, {at: 99, do: "get", want: Fresh}}},
		{"a prefetch under way is no failure", "8767 §5", Config{Prefetch: true, MaxStale: day}, []step{
			{at: 1, do: "get", want: Fresh}, {at: 99, do: "get", want: Fresh, ask: true}, {at: 101, do: "get", want: Expired}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAsker(t, open(t, c.conf))
			a.ask("www.example. A")
			a.stores(response(t, "www.example. A", 0, addr), 0)
			for i, s := range c.steps {
				s.run(t, a, i+1, c.rfc)
			}
		})
	}
}

func (s *step) run(t *testing.T, a *asker, number int, rfc string) {
	t.Helper()
	now := time.Duration(s.at) * second
	const q = "www.example. A"
	var stored Stored
	switch s.do {
	case "failed":
		a.cache.Failed(&a.key, now)
		return
	case "put":
		stored = a.put(response(t, q, 0, addr), now)
	case "servfail":
		stored = a.put(response(t, q, 2), now)
	case "refused":
		stored = a.put(response(t, q, 5), now)
	case "nxdomain":
		stored = a.put(response(t, q, 3, ";; authority", soa), now)
	default:
		var h Hit
		var msg *dns.Msg
		if s.do == "get" {
			h, msg = a.get(now, false)
		} else {
			h, msg = a.stale(now)
		}
		if h.Verdict != s.want || h.Refresh != s.ask || h.Verdict == Miss && h != (Hit{}) {
			t.Errorf("RFC %s: step %d, %s at %d s: %+v, want %d, refresh %v", rfc, number, s.do, s.at, h, s.want, s.ask)
		}
		if s.ttl != 0 && (msg == nil || msg.Answer[0].Header().Ttl != s.ttl) {
			t.Errorf("RFC %s: step %d: replayed %v, want TTL %d", rfc, number, msg, s.ttl)
		}
		return
	}
	if stored != s.stored {
		t.Errorf("RFC %s: step %d, %s at %d s: Put says %d, want %d", rfc, number, s.do, s.at, stored, s.stored)
	}
}

// scopes sets the scope of a key.
func subnet(s string) func(*Key) {
	return func(k *Key) {
		if s != "" {
			k.Scope = netip.MustParsePrefix(s)
		}
	}
}

func TestScope(t *testing.T) {
	type fill struct{ scope, addr string }
	many := []fill{{"", "192.0.2.9"}}
	for i, s := range []string{"10.0.0.0/8", "10.0.0.0/9", "10.0.0.0/10", "10.0.0.0/11", "10.0.0.0/12", "10.0.0.0/13", "10.0.0.0/14", "10.0.0.0/15", "10.0.0.0/16"} {
		many = append(many, fill{s, "192.0.2." + string(rune('1'+i))})
	}
	for _, c := range []struct {
		name, rfc string
		fills     []fill
		gets      map[string]string // client's subnet, address found
	}{
		{"only its subnet", "7871 §7.3.1", []fill{{"198.51.100.0/24", "192.0.2.1"}},
			map[string]string{"198.51.100.0/24": "192.0.2.1", "198.51.100.77/32": "192.0.2.1", "198.51.101.0/24": "", "198.51.0.0/16": "", "198.51.100.77/16": "", "": ""}},
		{"the longest prefix", "7871 §7.3.1", []fill{{"198.51.0.0/16", "192.0.2.1"}, {"198.51.100.0/24", "192.0.2.2"}},
			map[string]string{"198.51.100.0/24": "192.0.2.2", "198.51.101.0/24": "192.0.2.1", "198.52.0.0/24": ""}},
		{"/0 is for everybody", "7871 §7.3.1", []fill{{"0.0.0.0/0", "192.0.2.1"}},
			map[string]string{"": "192.0.2.1", "198.51.100.0/24": "192.0.2.1", "2001:db8::/56": "192.0.2.1"}},
		{"a subnet before everybody", "7871 §7.3.1", []fill{{"", "192.0.2.1"}, {"198.51.100.0/24", "192.0.2.2"}},
			map[string]string{"": "192.0.2.1", "198.51.100.0/24": "192.0.2.2", "198.51.101.0/24": "192.0.2.1"}},
		{"host bits do not count", "7871 §6", []fill{{"198.51.100.77/24", "192.0.2.1"}}, map[string]string{"198.51.100.1/32": "192.0.2.1"}},
		{"families are apart", "7871 §6", []fill{{"32.1.13.184/32", "192.0.2.1"}, {"2001:db8::/32", "192.0.2.2"}},
			map[string]string{"32.1.13.184/32": "192.0.2.1", "2001:db8:1::/56": "192.0.2.2", "2001:db9::/56": ""}},
		{"IPv6 to the last bit", "7871 §6", []fill{{"2001:db8::1/128", "192.0.2.2"}},
			map[string]string{"2001:db8::1/128": "192.0.2.2", "2001:db8::2/128": ""}},
		{"of nine lengths the shortest goes", "7871 §7.3.1", many,
			map[string]string{"10.0.0.0/24": "192.0.2.9", "10.1.0.0/24": "192.0.2.8", "10.64.0.0/24": "192.0.2.2", "10.128.0.0/24": "192.0.2.9"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAsker(t, open(t, Config{}))
			for _, f := range c.fills {
				a.ask("www.example. A", subnet(f.scope))
				a.stores(response(t, "www.example. A", 0, "www.example. 300 IN A "+f.addr), 0)
			}
			for client, want := range c.gets {
				a.ask("www.example. A", subnet(client))
				got := ""
				if hit, m := a.get(0, false); hit.Verdict == Fresh {
					got = m.Answer[0].String()
					got = got[len("www.example.\t300\tIN\tA\t"):]
				}
				if got != want {
					t.Errorf("RFC %s: for %q found %q, want %q", c.rfc, client, got, want)
				}
			}
		})
	}
}

// The Builder's question is another one: nothing is replayed.
func TestOtherQuestion(t *testing.T) {
	a := newAsker(t, open(t, Config{}))
	a.ask("www.example. A")
	a.stores(response(t, "www.example. A", 0, addr), 0)
	key := a.key
	key.Name = append(wire.Name(nil), key.Name...)
	a.ask("longer.example. A")
	a.reply.Begin(&a.query, a.buf)
	if hit := a.cache.Get(&key, 0, &a.reply, false); hit != (Hit{}) || a.reply.Count(wire.Answer) != 0 {
		t.Errorf("replayed into another question: %+v", hit)
	}
}

func TestAllocs(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	c := open(t, Config{MaxStale: 1000 * second, Prefetch: true})
	a := newAsker(t, c)
	a.ask("www.example. A")
	plain := response(t, "www.example. A", 0, addr)
	signed := response(t, "www.example. A", 0, addr, "www.example. 100 IN"+rrsig)
	negative := response(t, "www.example. A", 3, ";; authority", soa)
	hit := Hit{}
	get := func(now time.Duration, dnssec bool) func() {
		return func() {
			a.reply.Begin(&a.query, a.buf)
			hit = c.Get(&a.key, now, &a.reply, dnssec)
		}
	}
	for _, m := range []struct {
		name string
		msg  []byte
		run  func()
		want Verdict
	}{
		{"fresh", plain, get(second, false), Fresh},
		{"fresh, signed, DNSSEC wanted", signed, get(second, true), Fresh},
		{"fresh, signed, not wanted", signed, get(second, false), Fresh},
		{"negative", negative, get(second, false), Fresh},
		{"with prefetch", plain, get(95*second, false), Fresh},
		{"expired", plain, get(200*second, false), Expired},
		{"stale", plain, func() {
			a.reply.Begin(&a.query, a.buf)
			hit = c.Stale(&a.key, 200*second, &a.reply, true)
		}, Stale},
		{"failed", plain, func() { c.Failed(&a.key, 200*second); hit.Verdict = Miss }, Miss},
		{"put", plain, func() { c.Put(&a.key, plain, 0, 1); hit.Verdict = Miss }, Miss},
		{"put, signed", plain, func() { c.Put(&a.key, signed, 0, 1); hit.Verdict = Miss }, Miss},
		{"miss", plain, get(2000*second, false), Miss},
	} {
		a.stores(m.msg, 0)
		if n := testing.AllocsPerRun(200, m.run); n != 0 || hit.Verdict != m.want {
			t.Errorf("%s: %v allocations, verdict %d", m.name, n, hit.Verdict)
		}
	}
}
