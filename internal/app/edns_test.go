package app

import (
	"testing"

	"github.com/miekg/dns"
)

// signedExample answers with a signed RRset and AD, if asked for DNSSEC.
func signedExample(t *testing.T) func(*dns.Msg, bool) []*dns.Msg {
	sig := "60 RRSIG A 13 2 60 20400101000000 20200101000000 1 example. AAAA"
	plain, signed := gives(t, "60 A 192.0.2.1"), gives(t, "60 A 192.0.2.1", sig)
	return func(q *dns.Msg, tcp bool) []*dns.Msg {
		o := q.IsEdns0()
		m := plain(q, tcp)
		if o != nil && o.Do() {
			m = signed(q, tcp)
		}
		m[0].AuthenticatedData = !q.CheckingDisabled
		m[0].CheckingDisabled = q.CheckingDisabled
		if o != nil {
			m[0].SetEdns0(4096, o.Do())
		}
		return m
	}
}

// What a client gets does not depend on who filled the cache: OPT exactly when it
// sent one, signatures with DO, AD with DO or AD, CD as it was.
func TestEDNSOfForwarded(t *testing.T) {
	type want struct {
		records    int
		ad, cd, do bool
		opt        bool
	}
	queries := []struct {
		name string
		edit func(*dns.Msg)
		want want
	}{
		{"plain", func(*dns.Msg) {}, want{records: 1}},
		{"AD (RFC 6840 §5.7)", func(m *dns.Msg) { m.AuthenticatedData = true }, want{records: 1, ad: true}},
		{"OPT", func(m *dns.Msg) { m.SetEdns0(1232, false) }, want{records: 1, opt: true}},
		{"DO", func(m *dns.Msg) { m.SetEdns0(1232, true) }, want{records: 2, ad: true, do: true, opt: true}},
		{"CD", func(m *dns.Msg) { m.CheckingDisabled = true }, want{records: 1, cd: true}},
		{"CD and DO", func(m *dns.Msg) { m.CheckingDisabled = true; m.SetEdns0(1232, true) }, want{records: 2, cd: true, do: true, opt: true}},
	}
	for first := range queries {
		t.Run(queries[first].name+" first", func(t *testing.T) {
			o := newOther(t, signedExample(t))
			s := newSite(t)
			s.forward(nil, o)
			s.cached(nil)
			r := s.run(nil)
			for i := range queries {
				c := queries[(first+i)%len(queries)]
				for range 2 {
					q := new(dns.Msg)
					q.SetQuestion("www.example.", dns.TypeA)
					c.edit(q)
					m := r.exchange("udp", q)
					got := want{records: len(m.Answer), ad: m.AuthenticatedData, cd: m.CheckingDisabled}
					if o := m.IsEdns0(); o != nil {
						got.opt, got.do = true, o.Do()
					}
					if got != c.want {
						t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
					}
				}
			}
			if n := o.asked.Load(); n != 2 {
				t.Errorf("asked %d times, want once with CD and once without", n)
			}
		})
	}
}

// What goes to an upstream is our own query: no option of the client's, RD, our
// size.
func TestEDNSToUpstream(t *testing.T) {
	o := newOther(t, gives(t, "60 A 192.0.2.1"))
	s := newSite(t)
	s.forward(nil, o)
	s.cached(nil)
	r := s.run(nil)
	q := new(dns.Msg)
	q.SetQuestion("www.example.", dns.TypeA)
	q.AuthenticatedData, q.Zero = true, true
	q.SetEdns0(4096, false)
	q.IsEdns0().Option = []dns.EDNS0{
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"},
		&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: []byte{192, 0, 2, 0}},
		&dns.EDNS0_NSID{Code: dns.EDNS0NSID},
	}
	if m := r.exchange("udp", q); len(m.Answer) != 1 || len(m.IsEdns0().Option) != 0 {
		t.Errorf("answered %v", m)
	}
	v, ok := o.seen.Load("www.example.A")
	if !ok {
		t.Fatal("the upstream was not asked")
	}
	m := v.(*dns.Msg)
	opt := m.IsEdns0()
	if !m.RecursionDesired || m.CheckingDisabled || m.Zero || opt == nil || opt.UDPSize() != 1232 || !opt.Do() || len(opt.Option) != 0 {
		t.Errorf("the upstream was asked %v", m)
	}
}

// Who does not want recursion is not told what others have asked for.
func TestNoRecursionDesired(t *testing.T) {
	o := newOther(t, gives(t, "60 A 192.0.2.1"))
	s := newSite(t)
	s.forward(nil, o)
	s.cached(nil)
	r := s.run(nil)
	r.ask("www.example", dns.TypeA)
	m := r.askEDNS("www.example", dns.TypeA, func(m *dns.Msg) { m.RecursionDesired = false })
	if m.Rcode != dns.RcodeRefused || len(m.Answer) != 0 || ede(m) != int(dns.ExtendedErrorCodeNotAuthoritative) {
		t.Errorf("answered %v", m)
	}
}
