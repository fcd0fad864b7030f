package act

import (
	"time"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/upstream"
	"github.com/waymark-dns/waymark/internal/wire"
)

// What actions say to a person who asks why: each is called where r.Trace is there.

func traceExchange(r *serve.Request, x *upstream.Exchange, servers []string) {
	if x.Err != nil {
		r.Trace.Say("upstream", "", "no answer from %s, %d queries sent: %v", list(servers), x.Tries, x.Err)
		return
	}
	code := wire.Rcode(x.Response[3] & 15)
	r.Trace.Say("upstream", "", "%s answered %s, %d octets, in %s; %d sent", servers[x.Upstream], code, len(x.Response), x.RTT.Round(time.Microsecond), x.Tries)
}

// list is some of the servers.
func list(servers []string) string {
	text := ""
	for i, s := range servers {
		switch {
		case i == 3:
			return text + ", …"
		case i > 0:
			text += ", "
		}
		text += s
	}
	return text
}

func traceJoin(t *serve.Trace, joined cache.Joined, servers []string) {
	switch joined {
	case cache.Leads:
		t.Say("upstream", "", "asks %s", list(servers))
	case cache.Waits:
		t.Say("upstream", "", "the same is being asked for another client: waits for that answer")
	default:
		t.Say("upstream", "", "the same has been asked for long: takes what has expired")
	}
}

func traceCache(r *serve.Request, c *cache.Cache, k *cache.Key, v cache.Verdict) {
	switch v {
	case cache.Miss:
		r.Trace.Say("cache", "", "nothing for %s %s", r.Ask.Name, wire.TypeString(r.Ask.Type))
		return
	case cache.Expired:
		r.Trace.Say("cache", "", "what it has for %s %s has expired: the upstream is asked first", r.Ask.Name, wire.TypeString(r.Ask.Type))
		return
	}
	what := "has"
	if v == cache.Stale {
		what = "has, expired,"
	}
	age, left := c.Life(k, r.At)
	r.Trace.Say("cache", "", "%s %s %s: stored %s ago, %s left", what, r.Ask.Name, wire.TypeString(r.Ask.Type), age.Round(time.Second), left.Round(time.Second))
}

func traceAccess(r *serve.Request, views int) {
	may := "may ask for our own zones"
	if r.Who == serve.Guest {
		may = "may ask for everything"
	}
	if views > 0 && r.View > 0 {
		r.Trace.Say("access", "", "%s %s; view %d", r.Client.Addr(), may, r.View)
		return
	}
	r.Trace.Say("access", "", "%s %s", r.Client.Addr(), may)
}
