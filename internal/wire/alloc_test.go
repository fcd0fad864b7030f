package wire

import (
	"slices"
	"testing"
)

// answers are the responses that a server makes most, written into the same
// Builder and buffer again and again.
type answers struct {
	q   Query
	b   Builder
	msg []byte
	buf []byte

	addr, soa, ns, glue, big *RRset
	sigs                     *RRset
	apex, server             Name
}

func newAnswers(t testing.TB) *answers {
	a := &answers{
		msg:    slices.Concat(header(FlagRD, 1, 0, 0, 1), question(mixedName, TypeA), opt("\x00\x0a\x00\x02hi")),
		buf:    make([]byte, 4096),
		addr:   rrset(TypeA, "1234"),
		soa:    rrset(TypeSOA, "\x02ns\x07example\x00\x04host\x07example\x00"+string(make([]byte, 20))),
		ns:     rrset(TypeNS, "\x02ns\x07example\x00", "\x03ns2\x07example\x00"),
		glue:   rrset(TypeAAAA, "0123456789abcdef"),
		big:    text(1500),
		sigs:   rrset(TypeRRSIG, string(make([]byte, 18))+"\x07example\x00"+string(make([]byte, 64))),
		apex:   Name("\x07example\x00"),
		server: Name("\x02ns\x07example\x00"),
	}
	if err := a.q.Parse(a.msg); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *answers) address() {
	a.b.Begin(&a.q, a.buf)
	a.b.Add(Answer, a.q.Name, a.addr, nil)
	a.b.End(NoError)
	a.b.Fit(1232, 1232)
}

func (a *answers) noName() {
	a.b.Begin(&a.q, a.buf)
	a.b.Add(Authority, a.apex, a.soa, a.sigs)
	a.b.End(NXDomain)
	a.b.Fit(1232, 1232)
}

func (a *answers) referral() {
	a.b.Begin(&a.q, a.buf)
	a.b.Referral = true
	a.b.Add(Authority, a.apex, a.ns, nil)
	a.b.Add(Additional, a.server, a.addr, nil)
	a.b.Add(Additional, a.server, a.glue, nil)
	a.b.End(NoError)
	a.b.Fit(1232, 1232)
}

func (a *answers) truncated() {
	a.referral()
	a.b.Begin(&a.q, a.buf)
	a.b.Referral = true
	a.b.Add(Authority, a.apex, a.ns, nil)
	a.b.Add(Additional, a.server, a.big, nil)
	a.b.Add(Additional, a.server, a.glue, nil)
	a.b.End(NoError)
	a.b.Fit(512, 1232)
}

func TestAllocs(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	a := newAnswers(t)
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"Parse", func() { _ = a.q.Parse(a.msg) }},
		{"Rebase", func() { a.q.Rebase(a.msg) }},
		{"address", a.address},
		{"NXDOMAIN with SOA", a.noName},
		{"referral with glue", a.referral},
		{"truncated", a.truncated},
		{"option", func() { a.b.Begin(&a.q, a.buf); a.b.Option(OptNSID, a.msg[:4]) }},
	} {
		if n := testing.AllocsPerRun(200, c.run); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
	a.truncated() // what was measured is what it is called
	if m := unpack(t, a.b.buf[:a.b.n]); len(m.Ns) != 2 || !m.Truncated {
		t.Errorf("written as %v", m)
	}
}
