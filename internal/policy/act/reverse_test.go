package act

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/step"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

const ptr1 = "1.2.0.192.in-addr.arpa."

func reverse(t testing.TB, set func(*step.ReverseArgs)) policy.Rule {
	t.Helper()
	return rule(mustObject(t, plainEnv(), "reverse_lookup", set))
}

// at is a request that arrives then.
func at(r *serve.Request, when time.Duration) *serve.Request {
	r.At = when
	return r
}

func TestReverse(t *testing.T) {
	a := reverse(t, func(a *step.ReverseArgs) { a.HandlePTR, a.TTL = true, 100 })
	forward := rule(answers(t, wire.NoError, 0, "www.example. 20 IN CNAME a.example.\na.example. 200 IN A 192.0.2.1\na.example. 50 IN AAAA 2001:db8::1",
		"", "b.example. 200 IN A 192.0.2.2"))
	m := done(t, at(asks(t, "WWW.example.", dns.TypeA), 10*time.Second), a, forward)
	// TTLs of addresses in the answer are capped, and no others.
	if got := section(m.Answer) + "\n" + section(m.Extra); got != "WWW.example. 20 IN CNAME a.example.\na.example. 100 IN A 192.0.2.1\na.example. 50 IN AAAA 2001:db8::1\nb.example. 200 IN A 192.0.2.2" {
		t.Errorf("response\n%s", got)
	}
	long := "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa."
	for _, c := range []struct {
		name, qname string
		typ, class  uint16
		at          time.Duration
		want        string // empty where it goes on
	}{
		{"the question's name, TTL 5", ptr1, dns.TypePTR, 1, 11 * time.Second, ptr1 + " 5 IN PTR WWW.example."},
		{"IPv6", long, dns.TypePTR, 1, 11 * time.Second, long + " 5 IN PTR WWW.example."},
		{"the question's class", ptr1, dns.TypePTR, 3, 11 * time.Second, ptr1 + " 5 CH PTR WWW.example."},
		{"labels in front of the address", "lb." + ptr1, dns.TypePTR, 1, 11 * time.Second, "lb." + ptr1 + " 5 IN PTR WWW.example."},
		{"up to its end", ptr1, dns.TypePTR, 1, 110*time.Second - 1, ptr1 + " 5 IN PTR WWW.example."},
		{"its time is over", ptr1, dns.TypePTR, 1, 110 * time.Second, ""},
		{"additional data is not remembered", "2.2.0.192.in-addr.arpa.", dns.TypePTR, 1, 11 * time.Second, ""},
		{"an address that nobody has asked for", "9.2.0.192.in-addr.arpa.", dns.TypePTR, 1, 11 * time.Second, ""},
		{"no address", "www.example.", dns.TypePTR, 1, 11 * time.Second, ""},
		{"another type", ptr1, dns.TypeTXT, 1, 11 * time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran, seen := false, ""
			r := at(asks(t, c.qname, c.typ, class(c.class)), c.at)
			outer := policy.Rule{After: finisher(func(r *serve.Request) { seen = r.Reply.Rcode().String() })}
			m := done(t, r, outer, a, rule(doing(func(r *serve.Request) policy.Next {
				ran = true
				r.Finish(wire.NXDomain)
				return policy.Go
			})))
			if c.want == "" {
				if !ran || m.Rcode != dns.RcodeNameError {
					t.Errorf("the rest ran: %v, response\n%v", ran, m)
				}
				return
			}
			// The rest does not run; what wraps it sees the response.
			if ran || seen != "NOERROR" || section(m.Answer) != c.want || r.Note.Source != serve.SourceLocal {
				t.Errorf("the rest ran: %v, passed on the way out: %s, response\n%v", ran, seen, m)
			}
		})
	}
}

type finisher func(*serve.Request)

func (f finisher) After(r *serve.Request, _ *serve.Frame) { f(r) }

func TestReverseOff(t *testing.T) {
	a := reverse(t, func(*step.ReverseArgs) {})
	done(t, asks(t, "www.example.", dns.TypeA), a, rule(answers(t, wire.NoError, 0, "www.example. 10000 IN A 192.0.2.1")))
	if m := done(t, asks(t, ptr1, dns.TypePTR), a); m.Rcode != dns.RcodeRefused {
		t.Errorf("PTR questions are answered without handle_ptr: response\n%v", m)
	}
	if name, ok := a.Do.(*step.Reverse).Name(nil, netip.MustParseAddr("192.0.2.1"), 7199*time.Second); !ok || name.String() != "www.example." {
		t.Errorf("remembered %v, %v", name, ok)
	}
	if _, ok := a.Do.(*step.Reverse).Name(nil, netip.MustParseAddr("::ffff:192.0.2.1"), 7200*time.Second); ok {
		t.Error("remembered for longer than 7,200 seconds")
	}
}

// A response that is not there, or failed, teaches nothing.
func TestReverseFailed(t *testing.T) {
	a := reverse(t, func(*step.ReverseArgs) {})
	address := rule(answers(t, wire.NoError, 0, "www.example. 1 IN A 192.0.2.1"))
	done(t, asks(t, "www.example.", dns.TypeA), a, address, rule(doing(func(*serve.Request) policy.Next { return policy.Fail })))
	done(t, asks(t, "www.example.", dns.TypeA), a)
	if n := a.Do.(*step.Reverse).Len(); n != 0 {
		t.Errorf("%d addresses are remembered", n)
	}
}

// No more addresses are remembered than there is room for: the oldest goes. One that
// comes again takes no second place.
func TestReverseBounded(t *testing.T) {
	a := reverse(t, func(a *step.ReverseArgs) { a.Size = 3 }).Do.(*step.Reverse)
	addr := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}) }
	for _, n := range []int{1, 2, 3, 1, 2, 4, 5} {
		name := wire.Name(fmt.Sprintf("\x01%d\x00", n))
		a.Keep(addr(n), name, time.Second)
	}
	for n, want := range map[int]bool{1: false, 2: false, 3: true, 4: true, 5: true} {
		name, ok := a.Name(nil, addr(n), 0)
		if ok != want || ok && name.String() != fmt.Sprintf("%d.", n) {
			t.Errorf("%d: %v, %v", n, name, ok)
		}
	}
	if a.Len() != 3 {
		t.Errorf("%d are remembered", a.Len())
	}
}

// Many may ask and teach it at once.
func TestReverseShared(t *testing.T) {
	a := reverse(t, func(a *step.ReverseArgs) { a.Size = 16 }).Do.(*step.Reverse)
	name := wire.Name("\x03www\x07example\x00")
	ended := make(chan bool)
	for worker := range 4 {
		go func() {
			defer func() { ended <- true }()
			for i := range 1000 {
				addr := netip.AddrFrom4([4]byte{192, 0, 2, byte(i % (20 + worker))})
				a.Keep(addr, name, time.Second)
				if got, ok := a.Name(nil, addr, 0); ok && !wire.EqualFold(got, name) {
					t.Errorf("remembered %v", got)
				}
			}
		}()
	}
	for range 4 {
		<-ended
	}
}
