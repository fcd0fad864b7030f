package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// trail is what happened to a request, in order.
type trail struct{ seen []string }

func (p *trail) note(format string, args ...any) {
	p.seen = append(p.seen, fmt.Sprintf(format, args...))
}

// part is one matcher, step, waiter or finisher that leaves its name.
type part struct {
	*trail
	name string
	yes  bool // what Match says
	next Next
	rr   *wire.RRset // added to the answer
}

func (p part) Match(*serve.Request) bool {
	p.note("match %s", p.name)
	return p.yes
}

func (p part) Do(r *serve.Request) Next {
	p.note("do %s", p.name)
	p.answer(r)
	return p.next
}

func (p part) Wait(ctx context.Context, r *serve.Request) Next {
	p.note("wait %s %v", p.name, ctx.Value(key{}))
	p.answer(r)
	return p.next
}

func (p part) answer(r *serve.Request) {
	if p.rr != nil {
		r.Reply.Add(wire.Answer, r.Ask.Name, p.rr, nil)
	}
	if p.next == Stop {
		r.Finish(wire.NoError)
	}
}

func (p part) After(r *serve.Request, f *serve.Frame) {
	p.note("after %s, frame of %d, %d records", p.name, f.Rule, r.Reply.Count(wire.Answer))
}

type key struct{}

// txt is a TXT RRset of records of 255 octets each.
func txt(records int) *wire.RRset {
	rd := append([]byte{0, 255, 254}, strings.Repeat("x", 254)...)
	return &wire.RRset{Type: wire.TypeTXT, Class: wire.ClassIN, Count: records, RDATA: slices.Repeat(rd, records)}
}

// request is a received query with room for an answer of 1024 octets.
func request(t testing.TB) *serve.Request {
	t.Helper()
	msg := []byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x00\x00\x10\x00\x01")
	r := &serve.Request{Peer: &serve.Peer{Proto: serve.TCP}}
	if got := r.Receive(msg, make([]byte, 1024)); got != serve.Query {
		t.Fatalf("received as %d", got)
	}
	return r
}

// detach moves r into memory of its own, as a listener does.
func detach(r *serve.Request) *serve.Request {
	var into serve.Request
	r.Detach(&into, make([]byte, len(r.Msg)), make([]byte, wire.MaxMessage))
	return &into
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		rules  func(p *trail) []Rule
		status serve.Status // of Serve
		after  serve.Status // of Resume behind Wait
		rcode  wire.Rcode
		want   []string
	}{
		{"nobody answers", func(*trail) []Rule { return nil }, serve.Done, 0, wire.Refused, nil},
		{"everyone passes on", func(p *trail) []Rule {
			return []Rule{{Do: part{trail: p, name: "a"}}, {Do: part{trail: p, name: "b"}}}
		}, serve.Done, 0, wire.Refused, []string{"do a", "do b"}},
		{"the first answer counts", func(p *trail) []Rule {
			return []Rule{{Do: part{trail: p, name: "a", next: Stop}}, {Do: part{trail: p, name: "b", next: Stop}}}
		}, serve.Done, 0, wire.NoError, []string{"do a"}},
		{"matchers in order, up to the first that says no", func(p *trail) []Rule {
			yes, no := part{trail: p, name: "yes", yes: true}, part{trail: p, name: "no"}
			return []Rule{
				{If: []Matcher{yes, no, yes}, Do: part{trail: p, name: "a", next: Stop}},
				{If: []Matcher{yes, yes}, Do: part{trail: p, name: "b", next: Stop}},
			}
		}, serve.Done, 0, wire.NoError, []string{"match yes", "match no", "match yes", "match yes", "do b"}},
		{"drop", func(p *trail) []Rule {
			return []Rule{{Do: part{trail: p, name: "a"}, After: part{trail: p, name: "a"}}, {Do: part{trail: p, name: "b", next: Drop}}}
		}, serve.Drop, 0, 0, []string{"do a", "do b"}},
		{"wrappers, the last first", func(p *trail) []Rule {
			return []Rule{
				{Do: part{trail: p, name: "a"}, After: part{trail: p, name: "a"}},
				{Do: part{trail: p, name: "b"}},
				{Do: part{trail: p, name: "c"}, After: part{trail: p, name: "c"}},
				{Do: part{trail: p, name: "d", next: Stop, rr: txt(2)}, After: part{trail: p, name: "d"}},
			}
		}, serve.Done, 0, wire.NoError, []string{"do a", "do b", "do c", "do d", "after d, frame of 3, 2 records", "after c, frame of 2, 2 records", "after a, frame of 0, 2 records"}},
		{"wrappers see that nobody answered", func(p *trail) []Rule {
			return []Rule{{Do: part{trail: p, name: "a"}, After: part{trail: p, name: "a"}}}
		}, serve.Done, 0, wire.Refused, []string{"do a", "after a, frame of 0, 0 records"}},
		{"waiting goes on where it stopped", func(p *trail) []Rule {
			yes := part{trail: p, name: "yes", yes: true}
			return []Rule{
				{Do: part{trail: p, name: "a"}, After: part{trail: p, name: "a"}},
				{If: []Matcher{yes}, Wait: part{trail: p, name: "b"}, After: part{trail: p, name: "b"}},
				{Wait: part{trail: p, name: "c", next: Stop, rr: txt(1)}},
			}
		}, serve.Wait, serve.Done, wire.NoError, []string{"do a", "match yes", "-", "wait b ctx", "wait c ctx", "after b, frame of 1, 1 records", "after a, frame of 0, 1 records"}},
		{"a waiter drops", func(p *trail) []Rule {
			return []Rule{{Wait: part{trail: p, name: "a", next: Drop}}}
		}, serve.Wait, serve.Drop, 0, []string{"-", "wait a ctx"}},
		{"too long for the buffer, but not for a stream: again with more room", func(p *trail) []Rule {
			return []Rule{{Do: part{trail: p, name: "a", next: Stop, rr: txt(10)}}}
		}, serve.Wait, serve.Done, wire.NoError, []string{"do a", "-", "do a"}},
		{"too long for the buffer, wrapped: again with more room", func(p *trail) []Rule {
			return []Rule{
				{Do: part{trail: p, name: "a"}, After: part{trail: p, name: "a"}},
				{Do: part{trail: p, name: "b", next: Stop, rr: txt(10)}},
			}
		}, serve.Wait, serve.Done, wire.NoError, []string{"do a", "do b", "-", "do b", "after a, frame of 0, 10 records"}},
		{"too long for the buffer, wrapped by its own rule", func(p *trail) []Rule {
			return []Rule{{Do: part{trail: p, name: "a", next: Stop, rr: txt(10)}, After: part{trail: p, name: "a"}}}
		}, serve.Wait, serve.Done, wire.NoError, []string{"do a", "-", "do a", "after a, frame of 0, 10 records"}},
		{"too long for any buffer", func(p *trail) []Rule {
			return []Rule{{Do: part{trail: p, name: "a", next: Stop, rr: txt(300)}, After: part{trail: p, name: "a"}}}
		}, serve.Wait, serve.Done, wire.NoError, []string{"do a", "-", "do a", "after a, frame of 0, 0 records"}},
		{"too long, and dropped", func(p *trail) []Rule {
			return []Rule{{Do: part{trail: p, name: "a", next: Drop, rr: txt(10)}, After: part{trail: p, name: "a"}}}
		}, serve.Drop, 0, 0, []string{"do a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := new(trail)
			s := &Set{Programs: []Program{{Rules: c.rules(p)}}}
			r := request(t)
			got := s.Serve(r)
			if got != c.status {
				t.Fatalf("Serve says %d, want %d", got, c.status)
			}
			if got == serve.Wait {
				p.note("-")
				r = detach(r)
				if got = s.Resume(context.WithValue(t.Context(), key{}, "ctx"), r); got != c.after {
					t.Fatalf("Resume says %d, want %d", got, c.after)
				}
			}
			if !slices.Equal(p.seen, c.want) {
				t.Errorf("happened\n%q, want\n%q", p.seen, c.want)
			}
			if got != serve.Done {
				return
			}
			if r.Out == nil || r.Reply.Rcode() != c.rcode || (r.Note.Source == serve.SourceRefused) != (c.rcode == wire.Refused) {
				t.Errorf("code %v, source %v; want %v", r.Reply.Rcode(), r.Note.Source, c.rcode)
			}
			if r.Policy.Depth != 0 {
				t.Errorf("%d frames are left", r.Policy.Depth)
			}
		})
	}
}

// quiet is a part that notes nothing.
type quiet struct{ yes bool }

func (q quiet) Match(*serve.Request) bool        { return q.yes }
func (quiet) Do(*serve.Request) Next             { return Go }
func (quiet) After(*serve.Request, *serve.Frame) {}

func TestAllocsServe(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	no, yes := []Matcher{quiet{true}, quiet{false}}, []Matcher{quiet{true}}
	s := &Set{Programs: []Program{{Rules: []Rule{
		{If: no, Do: quiet{}}, {If: yes, Do: quiet{}, After: quiet{}}, {If: no, Do: quiet{}},
		{Do: quiet{}, After: quiet{}}, {If: no, Do: quiet{}}, {If: yes, Do: quiet{}},
	}}}}
	r := request(t)
	msg, out := r.Msg, make([]byte, 1024)
	status := serve.Wait
	if n := testing.AllocsPerRun(200, func() {
		r.Receive(msg, out)
		status = s.Serve(r)
		r.Fit(1232)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if status != serve.Done || r.Reply.Rcode() != wire.Refused {
		t.Errorf("status %d, code %v", status, r.Reply.Rcode())
	}
}

// The response of a resolver has the query's CD (RFC 4035 §3.2.2), whoever made it;
// one that is authoritative, or is not from a resolver, does not (§3.1.6). A code that
// takes EDNS to say is SERVFAIL to who has none (RFC 6891 §6.1.3).
func TestLastWord(t *testing.T) {
	finish := func(rcode wire.Rcode, flags uint16) Rule {
		return Rule{Do: runner{func(r *serve.Request) { r.Reply.Flags |= flags; r.Finish(rcode) }}}
	}
	for _, c := range []struct {
		name  string
		rule  Rule
		query uint16 // flags
		ra    bool
		edns  bool
		rcode wire.Rcode
		cd    bool
	}{
		{"no CD", finish(wire.NXDomain, 0), 0, true, false, wire.NXDomain, false},
		{"CD", finish(wire.NXDomain, 0), wire.FlagCD, true, false, wire.NXDomain, true},
		{"refused", Rule{}, wire.FlagCD, true, false, wire.Refused, true},
		{"failed", Rule{Do: part{trail: new(trail), next: Fail}}, wire.FlagCD, true, false, wire.ServFail, true},
		{"authoritative", finish(wire.NoError, wire.FlagAA), wire.FlagCD, true, false, wire.NoError, false},
		{"no resolver", finish(wire.NoError, 0), wire.FlagCD, false, false, wire.NoError, false},
		{"extended", finish(23, 0), wire.FlagCD, true, true, 23, true},
		{"extended, no EDNS", finish(23, 0), wire.FlagCD, true, false, wire.ServFail, true},
		{"extended, would be NOERROR", finish(wire.BadVers, 0), 0, true, false, wire.ServFail, false},
	} {
		s := &Set{Programs: []Program{{Rules: []Rule{c.rule}}}}
		r := request(t)
		r.Flags |= c.query
		r.EDNS.Present = c.edns
		if c.ra {
			r.Reply.Flags |= wire.FlagRA
		}
		if got := s.Serve(r); got != serve.Done {
			t.Fatalf("%s: Serve says %d", c.name, got)
		}
		if cd := r.Out[3]&wire.FlagCD != 0; r.Reply.Rcode() != c.rcode || cd != c.cd || r.Out[3]&15 != byte(c.rcode&15) {
			t.Errorf("%s: code %v, CD %v; header %x", c.name, r.Reply.Rcode(), cd, r.Out[:12])
		}
	}
}
