package act

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

func TestCollector(t *testing.T) {
	e := plainEnv()
	now := time.Hour
	e.Now = func() time.Duration { return now }
	a := rule(made(t, e, "metrics_collector", " home "))
	c := a.Do.(*Collector)
	respond := answers(t, wire.ServFail, 0)
	takes := func(d time.Duration, end policy.Next) doing {
		return func(r *serve.Request) policy.Next {
			if got := c.Thread.Load(); got != 1 {
				t.Errorf("%d queries on their way", got)
			}
			now += d
			if end == policy.Stop {
				respond(r)
			}
			return end
		}
	}
	for _, d := range []time.Duration{0, time.Millisecond, 1999 * time.Microsecond, 2 * time.Millisecond, 5 * time.Millisecond, time.Second, 6 * time.Second} {
		done(t, asks(t, "www.example.", dns.TypeA), a, rule(takes(d, policy.Stop)))
	}
	done(t, asks(t, "www.example.", dns.TypeA), a, rule(takes(time.Second, policy.Go)))   // nobody answers
	done(t, asks(t, "www.example.", dns.TypeA), a, rule(takes(time.Second, policy.Fail))) // a failure
	classes, sum := c.Latency()
	if c.Name != "home" || c.Queries.Load() != 9 || c.Errors.Load() != 1 || c.Thread.Load() != 0 {
		t.Errorf("%s: %d queries, %d errors, %d on their way", c.Name, c.Queries.Load(), c.Errors.Load(), c.Thread.Load())
	}
	// Up to 1 ms, 5 ms, and so on: a time that is a bound is below it.
	if want := [12]uint64{0: 3, 1: 2, 8: 1, 11: 1}; classes != want || sum != 0+1+1+2+5+1000+6000 {
		t.Errorf("responses by time %d, %d ms together", classes, sum)
	}
}

func TestCollectorNames(t *testing.T) {
	e := plainEnv()
	for _, name := range []string{"a", "b"} {
		made(t, e, "metrics_collector", name)
	}
	if _, err := kind(t, "metrics_collector").Make(e, "a"); err == nil {
		t.Error("two collectors have one name")
	}
	if all := e.Metrics.All(); len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" {
		t.Errorf("collectors %v", all)
	}
}
