package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// The programs of the tests below, by name; rules are words: a letter leaves its
// name, @letter is a wrapper, answer makes a response, and the rest is what it
// says. Numbers are programs.
func program(p *trail, words string) []Rule {
	var rules []Rule
	for _, w := range strings.Fields(words) {
		verb, arg, _ := strings.Cut(w, ":")
		to := uint16(0)
		if arg != "" {
			to = uint16(arg[0] - '0')
		}
		var rule Rule
		switch verb {
		case "accept":
			rule.Then = Stop
		case "return":
			rule.Then = Return
		case "jump":
			rule.Then, rule.To = Jump, to
		case "goto":
			rule.Then, rule.To = Goto, to
		case "call":
			rule.Then, rule.To = Call, to
		case "reject":
			rule.Do = ender{wire.NXDomain, Stop}
		case "answer":
			rule.Do = ender{wire.NoError, Go}
		case "fail":
			rule.Do = part{trail: p, name: "fail", next: Fail}
		default:
			name := strings.TrimPrefix(verb, "@")
			rule.Do = part{trail: p, name: name}
			if name != verb {
				rule.After = part{trail: p, name: name}
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// ender makes a response with that code.
type ender struct {
	rcode wire.Rcode
	next  Next
}

func (e ender) Do(r *serve.Request) Next {
	r.Empty()
	r.Finish(e.rcode)
	return e.next
}

// TestControl is the control flow, a row for each sentence about it: what happened,
// in order, wrappers on the way out in brackets, and the code in the end.
func TestControl(t *testing.T) {
	for _, c := range []struct {
		name     string
		programs []string
		want     string
	}{
		{"rules run in order; without a response the query is refused", []string{"a b"}, "a b REFUSED"},
		{"accept ends everything", []string{"a answer accept b"}, "a NOERROR"},
		{"reject makes a response and ends like accept", []string{"a reject b"}, "a NXDOMAIN"},
		{"return without a jump ends", []string{"a answer return b"}, "a NOERROR"},
		{"jump comes back at the end", []string{"a jump:1 b", "c d"}, "a c d b REFUSED"},
		{"return goes on behind the innermost jump", []string{"a jump:1 b", "c jump:2 d", "e return f"}, "a c e d b REFUSED"},
		{"accept does not run what jumps come back to", []string{"a jump:1 b", "c answer accept"}, "a c NOERROR"},
		{"reject neither", []string{"a jump:1 b", "reject"}, "a NXDOMAIN"},
		{"goto never comes back", []string{"a goto:1 b", "c"}, "a c REFUSED"},
		{"goto throws away what jumps come back to", []string{"a jump:1 b", "c goto:2 d", "e return f"}, "a c e REFUSED"},
		{"a call goes on behind it", []string{"a call:1 b", "c"}, "a c b REFUSED"},
		{"accept inside a call ends the call alone", []string{"a call:1 b", "c accept d"}, "a c b REFUSED"},
		{"so does reject, whose response stays", []string{"a call:1 b", "c reject d"}, "a c b NXDOMAIN"},
		{"so does return", []string{"a call:1 b", "c return d"}, "a c b REFUSED"},
		{"return inside a call does not go behind the caller's jump", []string{"a jump:1 b", "c call:2 d", "e return f"}, "a c e d b REFUSED"},
		{"a jump inside a call", []string{"a call:1 b", "c jump:2 d", "e"}, "a c e d b REFUSED"},
		{"goto inside a call ends the call with its target", []string{"a call:1 b", "c goto:2 d", "e"}, "a c e b REFUSED"},
		{"accept in what a call jumped to ends the call alone", []string{"a call:1 b", "c jump:2 d", "e accept"}, "a c e b REFUSED"},
		{"wrappers, the last first", []string{"@a @b answer c"}, "a b c (b) (a) NOERROR"},
		{"a wrapper in a jumped program wraps the caller's later rules", []string{"jump:1 b answer c", "@a"}, "a b c (a) NOERROR"},
		{"a wrapper before a jump wraps all of it", []string{"@a jump:1 b", "c answer accept"}, "a c (a) NOERROR"},
		{"a wrapper inside a call ends with the call", []string{"call:1 b answer", "@a c"}, "a c (a) b NOERROR"},
		{"a wrapper in what a call jumped to", []string{"call:1 b", "jump:2 c", "@a"}, "a c (a) b REFUSED"},
		{"wrappers around a call", []string{"@a call:1 @b answer", "@c accept"}, "a c (c) b (b) (a) NOERROR"},
		{"a failure passes the wrappers and ends everything", []string{"@a fail b"}, "a fail (a) SERVFAIL"},
		{"also out of a call", []string{"@a call:1 b", "@c fail d"}, "a c fail (c) (a) SERVFAIL"},
		{"a failure takes the response away", []string{"answer fail"}, "fail SERVFAIL"},
		{"a program without rules", []string{"jump:1 a", ""}, "a REFUSED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := new(trail)
			s := &Set{}
			for _, words := range c.programs {
				s.Programs = append(s.Programs, Program{Rules: program(p, words)})
			}
			r := request(t)
			if got := s.Serve(r); got != serve.Done {
				t.Fatalf("Serve says %d", got)
			}
			var happened []string
			for _, seen := range p.seen {
				words := strings.Fields(strings.TrimSuffix(seen, ","))
				name := strings.TrimSuffix(words[1], ",")
				if words[0] == "after" {
					name = "(" + name + ")"
				}
				happened = append(happened, name)
			}
			happened = append(happened, r.Reply.Rcode().String())
			if got := strings.Join(happened, " "); got != c.want {
				t.Errorf("happened: %s\nwant:     %s", got, c.want)
			}
			if r.Policy.Depth != 0 || r.Policy.Jumps != 0 && !strings.Contains(c.want, "NXDOMAIN") && !slices.Contains(c.programs, "c answer accept") {
				t.Errorf("left: %d frames, %d returns", r.Policy.Depth, r.Policy.Jumps)
			}
		})
	}
}

// What is deeper than there is room for fails, and nothing else happens.
func TestTooDeep(t *testing.T) {
	for _, words := range []string{"jump:0", "call:0", strings.Repeat("@a ", serve.MaxFrames+1)} {
		s := &Set{Programs: []Program{{Rules: program(new(trail), words)}}}
		r := request(t)
		if got := s.Serve(r); got != serve.Done || r.Reply.Rcode() != wire.ServFail {
			t.Errorf("%.20s: status %d, code %v", words, got, r.Reply.Rcode())
		}
	}
}

// As deep as there is room for is no failure.
func TestDeep(t *testing.T) {
	words := strings.Repeat("@a ", serve.MaxFrames) + "b answer accept"
	s := &Set{Programs: []Program{{Rules: program(new(trail), words)}}}
	r := request(t)
	if got := s.Serve(r); got != serve.Done || r.Reply.Rcode() != wire.NoError || r.Policy.Failed {
		t.Errorf("status %d, code %v", got, r.Reply.Rcode())
	}
}

// A condition of a rule that waits is looked at once.
type counting struct{ n *int }

func (c counting) Match(*serve.Request) bool { *c.n++; return true }

func TestMatchedOnce(t *testing.T) {
	n := 0
	pend := &pender{trail: new(trail)}
	s := &Set{Programs: []Program{{Rules: []Rule{{If: []Matcher{counting{&n}}, Start: pend}}}}}
	r := request(t)
	if got := s.Serve(r); got != serve.Wait {
		t.Fatalf("Serve says %d", got)
	}
	r = detach(r)
	for range 2 {
		s.Start(r)
	}
	if n != 1 {
		t.Errorf("looked at %d times", n)
	}
}

// A response that is there goes along when a later rule waits.
func TestResponseGoesAlong(t *testing.T) {
	pend := &pender{trail: new(trail)}
	s := &Set{Programs: []Program{{Rules: []Rule{{Do: ender{wire.NXDomain, Go}}, {Start: pend}}}}}
	r := request(t)
	if got := s.Serve(r); got != serve.Wait {
		t.Fatalf("Serve says %d", got)
	}
	if r = detach(r); r.Out == nil || r.Reply.Rcode() != wire.NXDomain {
		t.Errorf("the response is lost: code %v", r.Reply.Rcode())
	}
}
