package act

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// echo answers A questions with an address of the name that is asked for by then.
func echo(t testing.TB, want string) doing {
	return func(r *serve.Request) policy.Next {
		if got := r.Ask.Name.String(); got != want || r.Ask.Labels.Hash[0] != wire.HashName(r.Ask.Name) {
			t.Errorf("asked for %s, want %s", got, want)
		}
		set := wire.RRset{Type: wire.TypeA, Class: wire.ClassIN, TTL: 60}
		set.Count, set.RDATA = 1, []byte{0, 4, 192, 0, 2, 1}
		r.Empty()
		r.Reply.Add(wire.Answer, r.Ask.Name, &set, nil)
		r.Reply.Flags |= wire.FlagRA | wire.FlagAD
		r.Finish(wire.NoError)
		return policy.Go
	}
}

// asked checks what is asked for on the way out.
type askedFor struct {
	t    testing.TB
	want string
}

func (askedFor) Do(*serve.Request) policy.Next { return policy.Go }

func (a askedFor) After(r *serve.Request, _ *serve.Frame) {
	if got := r.Ask.Name.String(); got != a.want || r.Ask.Labels.Hash[0] != wire.HashName(r.Ask.Name) {
		a.t.Errorf("on the way out %s is asked for, want %s", got, a.want)
	}
}

func TestRedirect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "redirects")
	if err := os.WriteFile(file, []byte("# from to\nfile.example target.example # one more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := mustObject(t, plainEnv(), "redirect", func(a *step.RedirectArgs) {
		a.Rules = []string{"www.example Target.example", "domain:below.example target.example.", "twice.example a.example", "twice.example b.example"}
		a.Files = []string{file}
	})
	for _, c := range []struct {
		name, qname, target string
		class               uint16
		want                string
	}{
		{"an alias with TTL 1 in front", "www.example.", "Target.example.", 1, "www.example. 1 IN CNAME Target.example.\nTarget.example. 60 IN A 192.0.2.1"},
		{"the client's letters", "wWw.example.", "Target.example.", 1, "wWw.example. 1 IN CNAME Target.example.\nTarget.example. 60 IN A 192.0.2.1"},
		{"a pattern without a kind is a full name", "a.www.example.", "a.www.example.", 1, "a.www.example. 60 IN A 192.0.2.1"},
		{"domain", "a.below.example.", "target.example.", 1, "a.below.example. 1 IN CNAME target.example.\ntarget.example. 60 IN A 192.0.2.1"},
		{"of two lines the later", "twice.example.", "b.example.", 1, "twice.example. 1 IN CNAME b.example.\nb.example. 60 IN A 192.0.2.1"},
		{"from a file", "file.example.", "target.example.", 1, "file.example. 1 IN CNAME target.example.\ntarget.example. 60 IN A 192.0.2.1"},
		{"class IN alone", "www.example.", "www.example.", 3, "www.example. 60 IN A 192.0.2.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := asks(t, c.qname, dns.TypeA, class(c.class), edns)
			r.Policy.Frames[1].A, r.Policy.Frames[1].B = 1, 1 // of the request before
			m := done(t, r, rule(askedFor{t, c.qname}), rule(a), rule(echo(t, c.target)))
			if got := section(m.Answer); got != c.want || m.Question[0].Name != c.qname {
				t.Errorf("question %v, answer\n%s\nwant\n%s", m.Question, got, c.want)
			}
			if !m.AuthenticatedData || !m.RecursionAvailable || m.IsEdns0() == nil {
				t.Errorf("flags have changed: response\n%v", m)
			}
		})
	}
}

// Other sections, the code, and a response without records pass too.
func TestRedirectKeeps(t *testing.T) {
	a := rule(mustObject(t, plainEnv(), "redirect", func(a *step.RedirectArgs) { a.Rules = []string{"www.example target.example"} }))
	m := done(t, asks(t, "www.example.", dns.TypeA), a, rule(answers(t, wire.NXDomain, 0, "", "example. 60 IN NS ns.example.", "ns.example. 60 IN A 192.0.2.53")))
	if section(m.Answer) != "www.example. 1 IN CNAME target.example." || section(m.Ns) != "example. 60 IN NS ns.example." ||
		section(m.Extra) != "ns.example. 60 IN A 192.0.2.53" || m.Rcode != dns.RcodeNameError {
		t.Errorf("response\n%v", m)
	}
}

// The name is the client's again where nobody answers, and where a rule fails.
func TestRedirectRestores(t *testing.T) {
	a := rule(mustObject(t, plainEnv(), "redirect", func(a *step.RedirectArgs) { a.Rules = []string{"www.example target.example"} }))
	for rcode, end := range map[int]policy.Next{dns.RcodeRefused: policy.Go, dns.RcodeServerFailure: policy.Fail} {
		r := asks(t, "www.example.", dns.TypeA)
		m := done(t, r, rule(askedFor{t, "www.example."}), a, rule(doing(func(*serve.Request) policy.Next { return end })))
		if m.Rcode != rcode || len(m.Answer) != 0 {
			t.Errorf("response\n%v", m)
		}
		if r.Ask.Labels != &r.Suffixes {
			t.Errorf("asked for %v", r.Ask.Name)
		}
	}
}

// One redirect behind another, of another object: each is an alias of its own.
func TestRedirectTwice(t *testing.T) {
	e := plainEnv()
	one := mustObject(t, e, "redirect", func(a *step.RedirectArgs) { a.Rules = []string{"www.example one.example", "other.example x.example"} })
	e.Match.Objects["one"] = one
	two := mustObject(t, e, "redirect", func(a *step.RedirectArgs) { a.Rules = []string{"one.example two.example"} })
	m := done(t, asks(t, "www.example.", dns.TypeA), rule(askedFor{t, "www.example."}), rule(one), rule(askedFor{t, "one.example."}), rule(two), rule(two), rule(echo(t, "two.example.")))
	want := "www.example. 1 IN CNAME one.example.\none.example. 1 IN CNAME two.example.\ntwo.example. 60 IN A 192.0.2.1"
	if got := section(m.Answer); got != want {
		t.Errorf("answer\n%s\nwant\n%s", got, want)
	}
}

// The request may move to memory of its own in between, and the response outgrow it.
func TestRedirectDetached(t *testing.T) {
	a := rule(mustObject(t, plainEnv(), "redirect", func(a *step.RedirectArgs) { a.Rules = []string{"www.example target.example"} }))
	const records = 47 // what there is room for, but not with an alias
	wait := policy.Rule{Start: starter(func(r *serve.Request) policy.Next {
		set := wire.RRset{Type: wire.TypeA, Class: wire.ClassIN, TTL: 60}
		for i := range byte(records) {
			set.Count++
			set.RDATA = append(set.RDATA, 0, 4, 192, 0, 2, i)
		}
		if !r.Reply.Add(wire.Answer, r.Ask.Name, &set, nil) {
			t.Error("there is no room for the records alone")
		}
		r.Finish(wire.NoError)
		return policy.Go
	})}
	set := program(rule(askedFor{t, "www.example."}), a, wait)
	r := received(t, "192.0.2.7", overTCP, query(t, "www.example.", dns.TypeA))
	if got := set.Serve(r); got != serve.Wait {
		t.Fatalf("Serve says %d", got)
	}
	var own serve.Request
	r.Detach(&own, make([]byte, len(r.Msg)), make([]byte, wire.MinBuffer))
	if got := set.Start(&own); got != serve.Done {
		t.Fatalf("Start says %d", got)
	}
	m := fitted(t, &own)
	if len(m.Answer) != 1+records || section(m.Answer[:2]) != "www.example. 1 IN CNAME target.example.\ntarget.example. 60 IN A 192.0.2.0" || m.Truncated {
		t.Errorf("response\n%v", m)
	}
	if own.Ask.Labels != &own.Suffixes || &own.Ask.Name[0] != &own.Name[0] {
		t.Error("the name is not that of the request's own memory")
	}
}

type starter func(*serve.Request) policy.Next

func (s starter) Start(r *serve.Request) policy.Next { return s(r) }

// Wrappers nest to a bound; beyond it the request fails, and panics nowhere.
func TestRedirectTooDeep(t *testing.T) {
	a := rule(mustObject(t, plainEnv(), "redirect", func(a *step.RedirectArgs) { a.Rules = []string{"www.example target.example"} }))
	var rules []policy.Rule
	for range serve.MaxFrames {
		rules = append(rules, rule(askedFor{t, "www.example."}))
	}
	r := asks(t, "www.example.", dns.TypeA)
	if m := done(t, r, append(rules, a)...); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("response\n%v", m)
	}
}
