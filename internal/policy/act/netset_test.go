package act

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/netsets"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
)

// netSet is an action and the function that tells how many addresses it gave to
// its writer. None arrive: there are no such sets.
func netSet(t *testing.T, name, args string) (policy.Step, func() uint64) {
	t.Helper()
	var log bytes.Buffer
	w := netsets.NewWriter(func() time.Duration { return 0 }, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	a, err := kind(t, name).Make(&Env{NetSets: w}, args)
	if err != nil {
		t.Fatal(err)
	}
	return a.(policy.Step), func() uint64 {
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w.Counts().Failed
	}
}

// responded is a request whose response has those records in its answer, and an
// address in its additional section.
func responded(t *testing.T, records ...string) *serve.Request {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion("www.example.", dns.TypeA)
	m.Response = true
	for _, s := range records {
		rr, err := dns.NewRR(s)
		if err != nil {
			t.Fatal(err)
		}
		m.Answer = append(m.Answer, rr)
	}
	glue, err := dns.NewRR("ns.example. 60 IN A 192.0.2.53")
	if err != nil {
		t.Fatal(err)
	}
	m.Extra = []dns.RR{glue}
	out, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r := received(t, "198.51.100.1", overUDP, query(t, "www.example.", dns.TypeA))
	r.Out = out
	return r
}

func TestNetSet(t *testing.T) {
	// Names that no host has: on one that has sets, nothing is added to them.
	const (
		ipset  = "waymark-test-none,inet,24"
		ipset6 = "waymark-test-none6,inet6,48"
		nftset = "inet,waymark-test-none,none,ipv4_addr,24"
	)
	answer := []string{"www.example. 60 IN CNAME a.example.", "a.example. 60 IN A 192.0.2.1", "a.example. 60 IN A 192.0.2.2",
		"a.example. 60 IN AAAA 2001:db8::1"}
	for _, c := range []struct {
		name, kind, args string
		answer           []string
		want             uint64
	}{
		{"both families", "ipset", ipset + " " + ipset6, answer, 3},
		{"one family", "ipset", ipset6, answer, 1},
		{"nftables", "nftset", nftset, answer, 2},
		{"no addresses", "ipset", ipset, answer[:1], 0},
		{"no answer", "ipset", ipset, nil, 0},
	} {
		a, given := netSet(t, c.kind, c.args)
		if next := a.Do(responded(t, c.answer...)); next != policy.Go {
			t.Errorf("%s: next %d", c.name, next)
		}
		if got := given(); got != c.want {
			t.Errorf("%s: %d addresses, want %d", c.name, got, c.want)
		}
	}
	a, given := netSet(t, "ipset", ipset)
	r := responded(t)
	for _, out := range [][]byte{nil, {}, r.Out[:11], r.Out[:20]} {
		r.Out = out
		if next := a.Do(r); next != policy.Go {
			t.Errorf("%x: next %d", out, next)
		}
	}
	if got := given(); got != 0 {
		t.Errorf("without a response: %d addresses", got)
	}
}

func TestNetSetMake(t *testing.T) {
	w := netsets.NewWriter(func() time.Duration { return 0 }, slog.New(slog.DiscardHandler))
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		kind, args string
		with       *netsets.Writer
		want       string // in the error; - for no action, empty for one
	}{
		{"ipset", "s,inet,24", w, ""},
		{"ipset", "", w, "-"},
		{"ipset", "s,inet,99", w, "mask"},
		{"ipset", "s,inet,24", nil, "nothing here writes"},
		{"nftset", "inet,t,s,ipv4_addr,24", w, ""},
		{"nftset", "inet,t,s", w, "3 parts"},
		{"nftset", "inet,t,s,ipv4_addr,24", nil, "nothing here writes"},
	} {
		a, err := kind(t, c.kind).Make(&Env{NetSets: c.with}, c.args)
		switch {
		case err != nil:
			if c.want == "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %q: %v, want %q", c.kind, c.args, err, c.want)
			}
		case c.want == "" && a == nil, c.want == "-" && a != nil, c.want != "" && c.want != "-":
			t.Errorf("%s %q: %v, want %q", c.kind, c.args, a, c.want)
		}
	}
}

func TestNetSetAllocations(t *testing.T) {
	w := netsets.NewWriter(func() time.Duration { return 0 }, slog.New(slog.DiscardHandler))
	if err := w.Close(); err != nil { // what its goroutine allocates is not the query's
		t.Fatal(err)
	}
	a, err := kind(t, "ipset").Make(&Env{NetSets: w}, "waymark-test-none,inet,24 waymark-test-none6,inet6,48")
	if err != nil {
		t.Fatal(err)
	}
	r := responded(t, "www.example. 60 IN CNAME a.example.", "a.example. 60 IN A 192.0.2.1", "a.example. 60 IN AAAA 2001:db8::1")
	allocates(t, func() { a.(policy.Step).Do(r) })
}
