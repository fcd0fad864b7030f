package act

import (
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// lazy is a cache of a program, and rules behind it that answer where it does not.
// They count how often they do.
func lazy(t *testing.T, between ...policy.Rule) (rules []policy.Rule, count *int) {
	t.Helper()
	e := plainEnv()
	e.Now = func() time.Duration { return 0 }
	e.NewCache = func(_ string, c cache.Config) (*cache.Cache, error) {
		made, err := cache.New(c)
		if err == nil {
			t.Cleanup(func() { _ = made.Close() })
		}
		return made, err
	}
	made, err := makeLazyCache(e, "", &LazyCacheArgs{})
	if err != nil {
		t.Fatal(err)
	}
	count = new(int)
	answer := answers(t, 0, 0, "www.example. 60 IN A 192.0.2.1")
	behind := doing(func(r *serve.Request) policy.Next {
		if r.Out != nil {
			return policy.Go
		}
		*count++
		return answer(r)
	})
	return slices.Concat([]policy.Rule{rule(made)}, between, []policy.Rule{rule(behind)}), count
}

// What a cache gave is not kept again where a redirect behind it puts an alias in
// front: it would be longer with each hit.
func TestLazyHitRedirected(t *testing.T) {
	to := mustObject(t, plainEnv(), "redirect", func(a *step.RedirectArgs) { a.Rules = []string{"old.example www.example"} })
	rules, count := lazy(t, rule(to))
	for i, want := range []int{2, 3, 3, 3} { // a hit has the alias, and gets one more
		m := done(t, asks(t, "old.example.", dns.TypeA), rules...)
		if len(m.Answer) != want || *count != 1 {
			t.Errorf("question %d: %d records, want %d; answered %d times:\n%v", i+1, len(m.Answer), want, *count, m)
		}
	}
}

// AD in a query asks for AD in the response (RFC 6840 §5.7), so the two have
// answers of their own. What came without RD is kept for nobody, but whoever asks
// without RD has what is kept.
func TestLazyKeys(t *testing.T) {
	rules, count := lazy(t)
	for i, c := range []struct {
		with []how
		want int // answers made so far
	}{
		{[]how{noRD}, 1}, {[]how{noRD}, 2}, {nil, 3}, {nil, 3}, {[]how{noRD}, 3},
		{[]how{wantsAD}, 4}, {[]how{wantsAD}, 4}, {nil, 4}, {[]how{wantsCD}, 5}, {[]how{wantsDO}, 5},
	} {
		m := done(t, asks(t, "www.example.", dns.TypeA, c.with...), rules...)
		if len(m.Answer) != 1 || *count != c.want {
			t.Errorf("question %d: answered %d times, want %d:\n%v", i+1, *count, c.want, m)
		}
	}
}

// What refreshes an expired answer asks for recursion, whoever has met with it: the
// answer is kept for all.
func TestLazyRefreshRecursion(t *testing.T) {
	e := plainEnv()
	var now time.Duration
	e.Now = func() time.Duration { return now }
	e.Run = &policy.Runner{Forks: policy.NewForks(t.Context(), 1)}
	e.NewCache = func(_ string, c cache.Config) (*cache.Cache, error) { return cache.New(c) }
	made, err := makeLazyCache(e, "", &LazyCacheArgs{LazyCacheTTL: 3600})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.(*LazyCache).Cache().Close() })
	var asked []bool // with RD
	answer := answers(t, 0, 0, "www.example. 60 IN A 192.0.2.1")
	e.Run.Set = program(rule(made.(*LazyCache).Fuse()), rule(doing(func(r *serve.Request) policy.Next {
		asked = append(asked, r.Flags&wire.FlagRD != 0)
		return answer(r)
	})))
	for _, c := range []struct {
		now  time.Duration
		with []how
		ttl  uint32
	}{{time.Second, nil, 60}, {3 * time.Minute, []how{noRD}, 5}, {3 * time.Minute, nil, 60}} {
		now = c.now
		r := at(asks(t, "www.example.", dns.TypeA, c.with...), now)
		if got := e.Run.Set.Serve(r); got != serve.Done {
			t.Fatalf("Serve says %d", got)
		}
		if m := fitted(t, r); len(m.Answer) != 1 || m.Answer[0].Header().Ttl != c.ttl {
			t.Errorf("at %v: answered %v, want TTL %d", now, m, c.ttl)
		}
	}
	if !slices.Equal(asked, []bool{true, true}) {
		t.Errorf("asked with RD: %v", asked)
	}
}
