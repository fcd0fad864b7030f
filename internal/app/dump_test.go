package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/plan"
)

// What was cached is there after the next start, older by the time that passed;
// what has expired meanwhile is given out as stale at the most.
func TestDumpOverRestart(t *testing.T) {
	o := newOther(t, gives(t, "600 A 192.0.2.1"))
	file := filepath.Join(t.TempDir(), "cache.dump")
	start := func() *running {
		s := newSite(t)
		s.forward(nil, o)
		s.cached(func(c *plan.Cache) { c.File = file })
		return s.run(nil)
	}
	r := start()
	r.ask("www.example", dns.TypeA)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	o.answers(fails(dns.RcodeServerFailure))
	r = start()
	if m := r.ask("www.example", dns.TypeA); len(m.Answer) != 1 || m.Answer[0].Header().Ttl > 600 || m.Answer[0].Header().Ttl < 500 {
		t.Errorf("after the restart: %v", m)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.log.String(), "loaded the cache") {
		t.Errorf("the log says nothing of it:\n%s", r.log)
	}
}

// A dump that is damaged, or cut, is told in one line, and the cache begins empty.
func TestDumpDamaged(t *testing.T) {
	o := newOther(t, gives(t, "600 A 192.0.2.1"))
	file := filepath.Join(t.TempDir(), "cache.dump")
	start := func() *running {
		s := newSite(t)
		s.forward(nil, o)
		s.cached(func(c *plan.Cache) { c.File = file })
		return s.run(nil)
	}
	r := start()
	r.ask("www.example", dns.TypeA)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 1
	for _, damaged := range [][]byte{whole[:len(whole)/2], whole[:3], {}, flipped, []byte("something else altogether")} {
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		before := o.asked.Load()
		r := start()
		if n := strings.Count(r.log.String(), "the cache begins empty"); n != 1 {
			t.Errorf("%d octets: told %d times:\n%s", len(damaged), n, r.log)
		}
		if m := r.ask("www.example", dns.TypeA); len(m.Answer) != 1 || o.asked.Load() != before+1 {
			t.Errorf("%d octets: %v", len(damaged), m)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// Dumps are written at intervals too.
func TestDumpInterval(t *testing.T) {
	o := newOther(t, gives(t, "6000 A 192.0.2.1"))
	file := filepath.Join(t.TempDir(), "cache.dump")
	s := newSite(t)
	s.forward(nil, o)
	s.cached(func(c *plan.Cache) { c.File, c.Interval = file, time.Hour })
	ahead := s.settable()
	r := s.run(nil)
	r.ask("www.example", dns.TypeA)
	ahead.Add(int64(61 * time.Minute))
	r.await("the dump", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

// A dump that cannot be written is told, and nothing else happens.
func TestDumpUnwritable(t *testing.T) {
	o := newOther(t, gives(t, "600 A 192.0.2.1"))
	dir := t.TempDir()
	s := newSite(t)
	s.forward(nil, o)
	s.cached(func(c *plan.Cache) { c.File = filepath.Join(dir, "gone", "cache.dump") })
	r := s.run(nil)
	r.ask("www.example", dns.TypeA)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.log.String(), "dumping the cache failed") {
		t.Errorf("nothing is told:\n%s", r.log)
	}
}

// A reload keeps the cache, also where its options change, and upstreams that stay
// the same.
func TestReloadKeepsCache(t *testing.T) {
	o := newOther(t, gives(t, "600 A 192.0.2.1"))
	s := newSite(t)
	s.forward(nil, o)
	s.cached(nil)
	next := *s.plan
	r := s.run(func() (*plan.Plan, error) { return &next, nil })
	r.ask("www.example", dns.TypeA)
	group := r.world.Load().engines.groups[0].Group
	for _, edit := range []func(){
		func() {},
		func() { next.Cache.Size *= 2 },
		func() { next.Cache.MaxTTL = time.Hour },
	} {
		edit()
		if _, err := r.reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m := r.ask("www.example", dns.TypeA); len(m.Answer) != 1 || o.asked.Load() != 1 {
			t.Errorf("after the reload: %v, asked %d times", m, o.asked.Load())
		}
		if r.world.Load().engines.groups[0].Group != group {
			t.Error("the group is another")
		}
	}
	f := plan.DefaultForward()
	f.To = []plan.Upstream{{Scheme: "udp", Addr: newOther(t, gives(t, "600 A 192.0.2.7")).addr}}
	next.Forward = []plan.Forward{f}
	if _, err := r.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if data, _ := told(r.ask("other.example", dns.TypeA)); data != "192.0.2.7 " {
		t.Errorf("the new upstream: %s", data)
	}
}
