package cache

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

func name(t testing.TB, s string) wire.Name {
	t.Helper()
	n, err := wire.ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// listed is the entries of a cache as text, sorted.
func listed(c *Cache, now time.Duration) (all []string) {
	c.Each(now, func(e Entry) bool {
		s := fmt.Sprintf("%s %d %s view %d", e.Name, e.Class, wire.TypeString(e.Type), e.View)
		if e.CD {
			s += " CD"
		}
		if e.Scope.IsValid() {
			s += " " + e.Scope.String()
		}
		all = append(all, fmt.Sprintf("%s %s %v", s, e.Rcode, e.Left))
		return true
	})
	slices.Sort(all)
	return all
}

// fillAll puts in an entry of each kind, at 10 s.
func fillAll(t *testing.T, a *asker) {
	t.Helper()
	now := 10 * second
	a.ask("www.example. A")
	a.stores(response(t, "www.example. A", 0, addr, "www.example. 100 IN"+rrsig), now)
	a.ask("www.example. AAAA", func(k *Key) { k.View = 1 << 31 })
	a.stores(response(t, "www.example. AAAA", 0, ";; authority", soa), now)
	a.ask("WWW.example. TXT", func(k *Key) { k.CD = true })
	a.stores(response(t, "WWW.example. TXT", 0, `WWW.example. 50 IN TXT "x"`), now)
	a.ask("no.sub.Example. A")
	a.stores(response(t, "no.sub.Example. A", 3, ";; authority", soa), now)
	a.ask("fail.example. A")
	a.stores(response(t, "fail.example. A", 2), now)
	a.ask("net.example. A", subnet("198.51.100.0/24"))
	a.stores(response(t, "net.example. A", 0, "net.example. 100 IN A 192.0.2.4"), now)
	a.ask("net.example. A", subnet("2001:db8::/48"))
	a.stores(response(t, "net.example. A", 0, "net.example. 100 IN A 192.0.2.6"), now)
	a.ask("notexample. A")
	a.stores(response(t, "notexample. A", 0, "notexample. 100 IN A 192.0.2.7"), now)
}

func TestEach(t *testing.T) {
	a := newAsker(t, open(t, Config{MaxStale: 60 * second}))
	fillAll(t, a)
	want := []string{
		"WWW.example. 1 TXT view 0 CD NOERROR -5s",
		"net.example. 1 A view 0 198.51.100.0/24 NOERROR 45s",
		"net.example. 1 A view 0 2001:db8::/48 NOERROR 45s",
		"no.sub.Example. 1 A view 0 NXDOMAIN 5s",
		"notexample. 1 A view 0 NOERROR 45s",
		"www.example. 1 A view 0 NOERROR 45s",
		"www.example. 1 AAAA view 2147483648 NOERROR 5s",
	}
	if got := listed(a.cache, 65*second); !slices.Equal(got, want) {
		t.Errorf("listed are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := listed(a.cache, 10*second); len(got) != len(want)+1 {
		t.Errorf("with what has not ended yet there are %d", len(got))
	}
	a.ask("www.example. A")
	a.get(65*second, true)
	a.get(65*second, true)
	calls := 0
	a.cache.Each(65*second, func(e Entry) bool {
		calls++
		if e.Type == wire.TypeA && string(e.Name) == string(name(t, "www.example.")) && (e.Freq != 2 || e.Size < 150 || e.Size > 300) {
			t.Errorf("%+v was asked for twice", e)
		}
		return calls < 7
	})
	if calls != 7 {
		t.Errorf("called %d times", calls)
	}
	a.cache.Each(65*second, func(Entry) bool { calls++; return false })
	if calls != 8 {
		t.Errorf("called %d times more after false", calls-7)
	}
}

func TestFlush(t *testing.T) {
	for _, c := range []struct {
		name  string
		flush func(*Cache) int
		want  int
		left  int
	}{
		{"a name, all types and letters", func(c *Cache) int { return c.Flush(name(t, "wWw.example.")) }, 3, 5},
		{"a name without entries", func(c *Cache) int { return c.Flush(name(t, "sub.example.")) }, 0, 8},
		{"subnets", func(c *Cache) int { return c.Flush(name(t, "net.example.")) }, 2, 6},
		{"a tree", func(c *Cache) int { return c.FlushTree(name(t, "Example.")) }, 7, 1},
		{"a tree below", func(c *Cache) int { return c.FlushTree(name(t, "sub.example.")) }, 1, 7},
		{"the root's tree", func(c *Cache) int { return c.FlushTree(wire.Root) }, 8, 0},
		{"all", func(c *Cache) int { c.FlushAll(); return 0 }, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAsker(t, open(t, Config{}))
			fillAll(t, a)
			if got := c.flush(a.cache); got != c.want {
				t.Errorf("%d flushed, want %d", got, c.want)
			}
			if got := listed(a.cache, 11*second); len(got) != c.left {
				t.Errorf("left are %d, want %d: %v", len(got), c.left, got)
			}
			consistent(t, a.cache)
			fillAll(t, a)
			if got := listed(a.cache, 11*second); len(got) != 8 {
				t.Errorf("filled again it has %d", len(got))
			}
		})
	}
}

func TestStats(t *testing.T) {
	a := newAsker(t, open(t, Config{Size: 2 << 20}))
	if st := a.cache.Stats(); st != (Stats{Size: 2 << 20}) {
		t.Errorf("an empty cache has %+v", st)
	}
	fillAll(t, a)
	st := a.cache.Stats()
	// Nine entries: one is a marker, which was written once for each family.
	if st.Entries != 9 || st.Fills != 10 || st.Used < 9*80 || st.Used > 9*200 {
		t.Errorf("filled it has %+v", st)
	}
	a.ask("www.example. A")
	a.stores(response(t, "www.example. A", 0, addr), 11*second)
	if now := a.cache.Stats(); now.Entries != st.Entries || now.Used >= st.Used || now.Fills != st.Fills+1 {
		t.Errorf("an entry replaced by a smaller one: %+v, before %+v", now, st)
	}
}
