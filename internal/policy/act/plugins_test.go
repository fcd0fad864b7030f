package act

import (
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/match"
	"github.com/waymark-dns/waymark/internal/policy/step"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

func plainEnv() *Env {
	return &Env{Match: &match.Env{Objects: map[string]any{}, Marks: &match.Marks{}}}
}

// made is an action with its arguments.
func made(t testing.TB, e *Env, name, args string) any {
	t.Helper()
	for _, k := range Kinds() {
		if k.Name == name {
			a, err := k.Make(e, args)
			if err != nil {
				t.Fatalf("%s %s: %v", name, args, err)
			}
			return a
		}
	}
	t.Fatalf("no action %s", name)
	return nil
}

// objectOf makes an object of that type; set changes its arguments.
func objectOf[A any](t testing.TB, e *Env, typ string, set func(*A)) (any, error) {
	t.Helper()
	for _, k := range ObjectKinds() {
		if k.Type == typ {
			args := k.Args().(*A)
			set(args)
			return k.Make(e, "tag", args)
		}
	}
	t.Fatalf("no object %s", typ)
	return nil, nil
}

// mustObject is objectOf without an error.
func mustObject[A any](t testing.TB, e *Env, typ string, set func(*A)) any {
	t.Helper()
	o, err := objectOf(t, e, typ, set)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// rule is a rule with that action.
func rule(action any) policy.Rule {
	var r policy.Rule
	r.Do, _ = action.(policy.Step)
	r.Start, _ = action.(policy.Starter)
	r.After, _ = action.(policy.Finisher)
	return r
}

// answers is a step with a response of its own, records in each section, that does
// not end the program.
func answers(t testing.TB, rcode wire.Rcode, flags uint16, sections ...string) doing {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion("www.example.", dns.TypeA)
	for i, into := range []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
		if i >= len(sections) {
			break
		}
		for line := range strings.Lines(sections[i]) {
			rr, err := dns.NewRR(line)
			if err != nil {
				t.Fatal(err)
			}
			*into = append(*into, rr)
		}
	}
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return func(r *serve.Request) policy.Next {
		r.Empty()
		if !r.Reply.AddMessage(msg) {
			t.Error("the response is not sound")
		}
		r.Reply.Flags |= flags
		r.Finish(rcode)
		return policy.Go
	}
}

// asks is a request for "name" and a type over UDP.
func asks(t testing.TB, name string, typ uint16, with ...how) *serve.Request {
	t.Helper()
	return received(t, "192.0.2.7", overUDP, query(t, name, typ, with...))
}

func class(n uint16) how { return func(m *dns.Msg) { m.Question[0].Qclass = n } }

// done runs a program and returns the response as the client gets it.
func done(t testing.TB, r *serve.Request, rules ...policy.Rule) *dns.Msg {
	t.Helper()
	if got := program(rules...).Serve(r); got != serve.Done {
		t.Fatalf("Serve says %d", got)
	}
	return fitted(t, r)
}

// section is records as text, one a line.
func section(all []dns.RR) string {
	var lines []string
	for _, rr := range all {
		lines = append(lines, strings.ReplaceAll(rr.String(), "\t", " "))
	}
	return strings.Join(lines, "\n")
}

// checkGoesOn checks that an action leaves a request as it is: there is no response,
// and one that is there stays.
func checkGoesOn(t testing.TB, action any, r *serve.Request) {
	t.Helper()
	a := action.(policy.Step)
	if next := a.Do(r); next != policy.Go || r.Out != nil {
		t.Errorf("%v: next %d, response %x", r.Ask.Name, next, r.Out)
	}
	answers(t, wire.NXDomain, 0)(r)
	if next := a.Do(r); next != policy.Go || r.Out == nil || r.Reply.Rcode() != wire.NXDomain {
		t.Errorf("%v: next %d, the response that was there is now %x", r.Ask.Name, next, r.Out)
	}
}

// checkMade checks what an action that sets a response has done.
func checkMade(t testing.TB, r *serve.Request, next policy.Next, m *dns.Msg) {
	t.Helper()
	if next != policy.Go || m.Rcode != 0 || m.Authoritative || r.Note.Source != serve.SourceLocal {
		t.Errorf("next %d, source %v, response\n%v", next, r.Note.Source, m)
	}
}

func TestObjectKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range ObjectKinds() {
		if seen[k.Type] || k.Doc == "" || k.Make == nil {
			t.Errorf("row %s: a type of its own, words, and Make", k.Type)
		}
		seen[k.Type] = true
	}
}

func TestRefusedArguments(t *testing.T) {
	for _, c := range [][3]string{
		{"black_hole", "192.0.2.1 nonsense", "nonsense"},
		{"ttl", "", "TTL"},
		{"ttl", "5 6", "5 6"},
		{"ttl", "-5", "TTL"},
		{"ttl", "5-", "TTL"},
		{"ttl", "4294967296", "4294967296"},
		{"sleep", "long", "long"},
		{"metrics_collector", " ", "name"},
		{"forward_edns0opt", "8 65536", "65536"},
		{"ecs", "nonsense", "nonsense"},
	} {
		if _, err := kind(t, c[0]).Make(plainEnv(), c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s %q: error %v, which should tell of %s", c[0], c[1], err, c[2])
		}
	}
	e := plainEnv()
	for name, err := range map[string]error{
		"hosts entry":       second(objectOf(t, e, "hosts", func(a *step.HostsArgs) { a.Entries = []string{"a.example 192.0.2"} })),
		"hosts empty entry": second(objectOf(t, e, "hosts", func(a *step.HostsArgs) { a.Entries = []string{" "} })),
		"hosts kind":        second(objectOf(t, e, "hosts", func(a *step.HostsArgs) { a.Entries = []string{"x:a 192.0.2.1"} })),
		"hosts file":        second(objectOf(t, e, "hosts", func(a *step.HostsArgs) { a.Files = []string{"/nonexistent"} })),
		"arbitrary rule":    second(objectOf(t, e, "arbitrary", func(a *step.ArbitraryArgs) { a.Rules = []string{"a. A x"} })),
		"arbitrary name":    second(objectOf(t, e, "arbitrary", func(a *step.ArbitraryArgs) { a.Rules = []string{"a A 192.0.2.1"} })),
		"arbitrary include": second(objectOf(t, e, "arbitrary", func(a *step.ArbitraryArgs) { a.Rules = []string{"$INCLUDE /etc/hostname"} })),
		"arbitrary file":    second(objectOf(t, e, "arbitrary", func(a *step.ArbitraryArgs) { a.Files = []string{"/nonexistent"} })),
		"redirect one":      second(objectOf(t, e, "redirect", func(a *step.RedirectArgs) { a.Rules = []string{"a.example"} })),
		"redirect three":    second(objectOf(t, e, "redirect", func(a *step.RedirectArgs) { a.Rules = []string{"a.example b.example c"} })),
		"redirect name":     second(objectOf(t, e, "redirect", func(a *step.RedirectArgs) { a.Rules = []string{"a.example b..example"} })),
		"rate mask4":        second(objectOf(t, e, "rate_limiter", func(a *step.RateLimiterArgs) { a.Mask4 = 33 })),
		"rate mask6":        second(objectOf(t, e, "rate_limiter", func(a *step.RateLimiterArgs) { a.Mask6 = -1 })),
		"sleep":             second(objectOf(t, e, "sleep", func(a *step.SleepArgs) { a.Duration = -1 })),
		"ecs mask4":         second(objectOf(t, e, "ecs_handler", func(a *ECSHandlerArgs) { a.Mask4 = 33 })),
		"ecs preset":        second(objectOf(t, e, "ecs_handler", func(a *ECSHandlerArgs) { a.Preset = "192.0.2.0/24" })),
		"domain_set kind":   second(objectOf(t, e, "domain_set", func(a *DomainSetArgs) { a.Exps = []string{"x:a"} })),
		"domain_set set":    second(objectOf(t, e, "domain_set", func(a *DomainSetArgs) { a.Sets = []string{"nobody"} })),
		"ip_set address":    second(objectOf(t, e, "ip_set", func(a *IPSetArgs) { a.IPs = []string{"192.0.2"} })),
		"ip_set set":        second(objectOf(t, e, "ip_set", func(a *IPSetArgs) { a.Sets = []string{"nobody"} })),
	} {
		if err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func second(_ any, err error) error { return err }

func matcher(t testing.TB, e *Env, name, args string) policy.Matcher {
	t.Helper()
	for _, k := range match.Kinds() {
		if k.Name == name {
			m, err := k.Make(e.Match, args)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	t.Fatalf("no matcher %s", name)
	return nil
}

// What answers from its own memory allocates nothing.
func TestPluginAllocations(t *testing.T) {
	e := plainEnv()
	e.Now = func() time.Duration { return time.Second }
	address := answers(t, wire.NoError, 0, "www.example. 60 IN A 192.0.2.1\nwww.example. 60 IN AAAA 2001:db8::1")
	taught := mustObject(t, e, "reverse_lookup", func(a *step.ReverseArgs) { a.HandlePTR = true })
	done(t, asks(t, "www.example.", dns.TypeA), rule(taught), rule(answers(t, wire.NoError, 0, "www.example. 60 IN A 192.0.2.1")))
	limiter := mustObject(t, e, "rate_limiter", func(*step.RateLimiterArgs) {}).(policy.Matcher)
	for _, c := range []struct {
		name   string
		qname  string
		typ    uint16
		rules  []policy.Rule
		answer int // records in the answer
	}{
		{"black_hole", "www.example.", dns.TypeA, []policy.Rule{rule(made(t, e, "black_hole", "192.0.2.1 192.0.2.2"))}, 2},
		{"hosts", "www.example.", dns.TypeA, []policy.Rule{rule(mustObject(t, e, "hosts", func(a *step.HostsArgs) { a.Entries = []string{"keyword:www 192.0.2.1"} }))}, 1},
		{"hosts, other family", "www.example.", dns.TypeAAAA, []policy.Rule{rule(mustObject(t, e, "hosts", func(a *step.HostsArgs) { a.Entries = []string{"www.example 192.0.2.1"} }))}, 0},
		{"arbitrary", "www.example.", dns.TypeMX, []policy.Rule{rule(mustObject(t, e, "arbitrary", func(a *step.ArbitraryArgs) { a.Rules = []string{"www.example. MX 10 mail.example."} }))}, 1},
		{"ttl", "www.example.", dns.TypeA, []policy.Rule{rule(made(t, e, "black_hole", "192.0.2.1")), rule(made(t, e, "ttl", "5-60"))}, 1},
		{"drop_resp", "www.example.", dns.TypeA, []policy.Rule{rule(made(t, e, "black_hole", "192.0.2.1")), rule(made(t, e, "drop_resp", ""))}, 0},
		{"rate_limiter", "www.example.", dns.TypeA, []policy.Rule{{If: []policy.Matcher{match.Not{Matcher: limiter}}, Do: step.Reject{Rcode: wire.Refused}}}, 0},
		{"query_summary, debug_print, without a log", "www.example.", dns.TypeA, []policy.Rule{rule(made(t, e, "query_summary", "")), rule(made(t, e, "debug_print", "")), rule(made(t, e, "black_hole", "192.0.2.1"))}, 1},
		{"metrics_collector", "www.example.", dns.TypeA, []policy.Rule{rule(made(t, e, "metrics_collector", "a")), rule(made(t, e, "black_hole", "192.0.2.1"))}, 1},
		{"forward_edns0opt, ecs", "www.example.", dns.TypeA, []policy.Rule{rule(made(t, e, "forward_edns0opt", "10")), rule(made(t, e, "ecs", "192.0.2.1"))}, 0},
		{"ecs_handler", "www.example.", dns.TypeA, []policy.Rule{rule(mustObject(t, e, "ecs_handler", func(a *ECSHandlerArgs) { a.Forward, a.Send = true, true }))}, 0},
		{"reverse_lookup, PTR", ptr1, dns.TypePTR, []policy.Rule{rule(taught)}, 1},
		{"reverse_lookup, again", "www.example.", dns.TypeA, []policy.Rule{rule(taught), rule(address)}, 2},
		{"redirect", "www.example.", dns.TypeA, []policy.Rule{rule(mustObject(t, e, "redirect", func(a *step.RedirectArgs) { a.Rules = []string{"www.example b.example"} })), rule(made(t, e, "black_hole", "192.0.2.1"))}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := program(c.rules...)
			msg, out := query(t, c.qname, c.typ, edns), make([]byte, 1232)
			r := received(t, "192.0.2.7", overUDP, msg)
			allocates(t, func() {
				r.Receive(msg, out)
				if set.Serve(r) != serve.Done {
					t.Error("not done")
				}
			})
			if m := fitted(t, r); len(m.Answer) != c.answer {
				t.Errorf("response\n%v", m)
			}
		})
	}
}
