package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/config"
	"github.com/waymark-dns/waymark/internal/plan"
)

// level2 is a site with a file of plugins, whose main program is called main. UP0,
// UP1 and so on in it are the addresses of the others.
func level2(t *testing.T, text string, others ...*other) *site {
	t.Helper()
	for i, o := range others {
		text = strings.ReplaceAll(text, fmt.Sprintf("UP%d", i), o.addr.String())
	}
	text += `
  - {type: udp_server, args: {entry: main, listen: "127.0.0.1:1"}}
  - {type: tcp_server, args: {entry: main, listen: "127.0.0.1:1"}}
`
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, problems, err := config.Load(file)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", problems, err)
	}
	for i := range p.Listen {
		p.Listen[i].Addr = addrOf("127.0.0.1:0")
	}
	return &site{t: t, dir: filepath.Dir(file), plan: p}
}

// serial answers with the number of queries that came.
func counted(t *testing.T, ttl int) func(q *dns.Msg, tcp bool) []*dns.Msg {
	n := 0
	return func(q *dns.Msg, tcp bool) []*dns.Msg {
		n++
		return gives(t, fmt.Sprintf("%d A 192.0.2.%d", ttl, n))(q, tcp)
	}
}

const lazyProgram = `
plugins:
  - {tag: keep, type: cache, args: {size: 1024, lazy_cache_ttl: 86400}}
  - {tag: up, type: forward, args: {upstreams: [{addr: UP0}]}}
  - tag: main
    type: sequence
    args:
      - exec: $keep
      - {matches: has_resp, exec: accept}
      - exec: $up
`

// The cache of a program: what the rules behind it answer is kept, expired answers
// are given at once and refreshed behind.
func TestLazyCache(t *testing.T) {
	o := newOther(t, counted(t, 60))
	s := level2(t, lazyProgram, o)
	ahead := s.settable()
	r := s.run(nil)
	for range 2 {
		if data, ttl := told(r.ask("www.example", dns.TypeA)); data != "192.0.2.1 " || ttl > 60 {
			t.Errorf("%s %d", data, ttl)
		}
	}
	ahead.Add(int64(2 * time.Minute))
	if data, ttl := told(r.ask("www.example", dns.TypeA)); data != "192.0.2.1 " || ttl != 5 {
		t.Errorf("expired: %s %d, want the old answer with a TTL of 5", data, ttl)
	}
	r.await("the refresh", func() bool { return o.asked.Load() == 2 && r.world.Load().engines.forks.Len() == 0 })
	if data, ttl := told(r.ask("www.example", dns.TypeA)); data != "192.0.2.2 " || ttl < 55 {
		t.Errorf("behind the refresh: %s %d", data, ttl)
	}
	o.answers(denies)
	for range 2 {
		if m := r.ask("no.example", dns.TypeA); m.Rcode != dns.RcodeNameError {
			t.Errorf("%v", m)
		}
	}
	if n := o.asked.Load(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
}

// Where the rules behind a cache run on after a hit, and put another answer in its
// place, that is what is kept.
func TestLazyCacheReplaced(t *testing.T) {
	o := newOther(t, counted(t, 60))
	s := level2(t, `
plugins:
  - {tag: keep, type: cache, args: {size: 1024}}
  - {tag: up, type: forward, args: {upstreams: [{addr: UP0}]}}
  - tag: main
    type: sequence
    args:
      - exec: $keep
      - exec: $up
`, o)
	r := s.run(nil)
	for want := 1; want <= 3; want++ {
		if data, _ := told(r.ask("www.example", dns.TypeA)); data != fmt.Sprintf("192.0.2.%d ", want) {
			t.Errorf("got %s, want the upstream's answer %d", data, want)
		}
	}
}

// A cache in front of has_resp and accept is fused with them, and a name that was
// put in place of another is cached under its own.
func TestFuse(t *testing.T) {
	o := newOther(t, counted(t, 60))
	s := level2(t, `
plugins:
  - {tag: keep, type: cache, args: {size: 1024}}
  - {tag: up, type: forward, args: {upstreams: [{addr: UP0}]}}
  - {tag: other, type: redirect, args: {rules: ["full:old.example new.example"]}}
  - tag: main
    type: sequence
    args:
      - exec: $other
      - exec: $keep
      - {matches: has_resp, exec: accept}
      - exec: $up
`, o)
	r := s.run(nil)
	for range 2 {
		m := r.ask("old.example", dns.TypeA)
		if len(m.Answer) != 2 || m.Question[0].Name != "old.example." || m.Answer[0].Header().Name != "old.example." || m.Answer[1].Header().Name != "new.example." {
			t.Errorf("answered %v", m)
		}
	}
	if data, _ := told(r.ask("new.example", dns.TypeA)); data != "192.0.2.1 " {
		t.Errorf("the name itself: %s", data)
	}
	if n := o.asked.Load(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	set := r.world.Load().root.policy
	if step := fmt.Sprintf("%+v", set.Programs[0].Rules[1].Do); !strings.Contains(step, "ends:true") {
		t.Errorf("not fused: %s", step)
	}
}

// A relay gives whatever code an upstream gives; that nobody answers is a failure.
func TestRelayCodes(t *testing.T) {
	o := newOther(t, fails(dns.RcodeRefused))
	s := level2(t, `
plugins:
  - tag: main
    type: sequence
    args:
      - exec: forward UP0
      - {matches: rcode 5, exec: reject 3}
`, o)
	r := s.run(nil)
	if m := r.ask("www.example", dns.TypeA); m.Rcode != dns.RcodeNameError {
		t.Errorf("REFUSED was not seen by the next rule: %v", m)
	}
	o.answers(gives(t, "60 A 192.0.2.1"))
	q := new(dns.Msg)
	q.SetQuestion("www.example.", dns.TypeA)
	q.SetEdns0(4096, true)
	q.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"}}
	if m := r.exchange("udp", q); len(m.Answer) != 1 || m.IsEdns0() == nil || !m.IsEdns0().Do() {
		t.Errorf("answered %v", m)
	}
	v, _ := o.seen.Load("www.example.A")
	if m := v.(*dns.Msg); m.IsEdns0() == nil || m.IsEdns0().Do() || len(m.IsEdns0().Option) != 0 {
		t.Errorf("the upstream was asked %v; want an OPT record of our own, without DO", m)
	}
}

// Rules may name some of the upstreams of a relay.
func TestRelayTags(t *testing.T) {
	a, b := newOther(t, gives(t, "60 A 192.0.2.1")), newOther(t, gives(t, "60 A 192.0.2.2"))
	s := level2(t, `
plugins:
  - {tag: up, type: forward, args: {upstreams: [{tag: a, addr: UP0}, {tag: b, addr: "tcp://UP1"}]}}
  - tag: main
    type: sequence
    args:
      - {matches: "qname full:a.example", exec: $up a}
      - {matches: "qname full:b.example", exec: $up b}
`, a, b)
	r := s.run(nil)
	for range 5 {
		for name, want := range map[string]string{"a.example": "192.0.2.1 ", "b.example": "192.0.2.2 "} {
			if data, _ := told(r.ask(name, dns.TypeA)); data != want {
				t.Errorf("%s: %s, want %s", name, data, want)
			}
		}
	}
	if m := r.ask("c.example", dns.TypeA); m.Rcode != dns.RcodeRefused || !m.RecursionAvailable {
		t.Errorf("without an answer: %v, want REFUSED with RA", m)
	}
}

// A reload of a file of plugins keeps the caches and swaps the rest.
func TestReloadLevel2(t *testing.T) {
	o := newOther(t, counted(t, 600))
	s := level2(t, lazyProgram, o)
	var next *plan.Plan
	r := s.run(func() (*plan.Plan, error) { return next, nil })
	r.ask("www.example", dns.TypeA)
	next = level2(t, lazyProgram+`      - exec: reject 3`, o).plan
	if _, err := r.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if data, _ := told(r.ask("www.example", dns.TypeA)); data != "192.0.2.1 " {
		t.Errorf("the cache is gone: %s", data)
	}
	if m := r.ask("other.example", dns.TypeA); m.Rcode != dns.RcodeNameError {
		t.Errorf("the new rule does not count: %v", m)
	}
}
