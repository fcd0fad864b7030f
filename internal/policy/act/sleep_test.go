package act

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// goesOn is a Waker that goes on with a request, as a listener does.
type goesOn struct {
	set  *policy.Set
	r    *serve.Request
	done chan serve.Status
}

func (w *goesOn) Wake() { w.done <- w.set.Start(w.r) }

func TestSleep(t *testing.T) {
	object := func(ms int) any {
		return mustObject(t, plainEnv(), "sleep", func(a *step.SleepArgs) { a.Duration = ms })
	}
	for _, c := range []struct {
		name   string
		action any
		want   time.Duration
	}{
		{"duration", object(500), 500 * time.Millisecond},
		{"milliseconds", made(t, plainEnv(), "sleep", " 20"), 20 * time.Millisecond},
		{"no time", object(0), 0},
		{"below no time", made(t, plainEnv(), "sleep", "-3"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := program(rule(c.action), rule(c.action), rule(answers(t, wire.NXDomain, 0)))
				r := asks(t, "www.example.", dns.TypeA)
				begin := time.Now()
				if got := set.Serve(r); got != serve.Wait {
					t.Fatalf("Serve says %d", got)
				}
				var own serve.Request
				r.Detach(&own, make([]byte, len(r.Msg)), make([]byte, 4096))
				w := &goesOn{set, &own, make(chan serve.Status, 2)}
				own.Waker = w
				status := set.Start(&own)
				if (status == serve.Pending) != (c.want > 0) {
					t.Errorf("Start says %d", status)
				}
				for status == serve.Pending {
					status = <-w.done
				}
				if took := time.Since(begin); status != serve.Done || took != 2*c.want {
					t.Errorf("status %d after %v, want twice %v", status, took, c.want)
				}
				if m := fitted(t, &own); m.Rcode != dns.RcodeNameError || own.Pending != nil {
					t.Errorf("left behind: %v, response\n%v", own.Pending, m)
				}
			})
		})
	}
}
