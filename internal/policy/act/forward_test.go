package act

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/upstream"
	"github.com/waymark-dns/waymark/internal/wire"
)

// What is sent says nothing of the client but its question and CD.
func TestForwardQuery(t *testing.T) {
	for _, c := range []struct {
		name string
		none bool
		with []how
		cd   byte
	}{
		{"plain", false, nil, 0},
		{"no cache", true, nil, 0},
		{"AD and DO", false, []how{wantsAD, wantsDO}, 0},
		{"CD", false, []how{wantsCD}, 0x10},
		{"options of its own", false, []how{option(wire.OptCookie, "clientco"), option(wire.OptPadding, "xxxx"), subnet("192.0.2.0/24")}, 0},
	} {
		s := newSite(t, siteConfig{none: c.none})
		k := s.ask("wWw.example.", dns.TypeAAAA, c.with...)
		q := s.up.next(t)
		want := append([]byte{1, c.cd, 0, 1, 0, 0, 0, 0, 0, 1}, "\x03wWw\x07example\x00\x00\x1c\x00\x01"...)
		want = append(want, 0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0)
		if !bytes.EqualFold(q.raw[2:], want) {
			t.Errorf("%s: sent\n%x, want\n%x", c.name, q.raw[2:], want)
		}
		s.up.answer(t, q, 0, []string{"www.example. 60 IN AAAA 2001:db8::1"})
		m := s.answer(k)
		if len(m.Answer) != 1 || m.Question[0].Name != "wWw.example." || !m.RecursionAvailable || m.Authoritative || !m.RecursionDesired {
			t.Errorf("%s: answered %v", c.name, m)
		}
		if k.Note.Source != serve.SourceForward || k.Note.Upstream != 7 || k.starts.Load() != 2 || k.Pending != nil {
			t.Errorf("%s: noted %+v, woken %d times, waits for %v", c.name, k.Note, k.starts.Load()-1, k.Pending)
		}
		s.unasked()
	}
}

// One flight serves who wants DNSSEC and who does not (RFC 4035 §3.2.1), with a
// cache or without; AD is for those who care (RFC 6840 §5.8), and what was not
// checked has none.
func TestForwardForms(t *testing.T) {
	for _, none := range []bool{false, true} {
		s := newSite(t, siteConfig{none: none})
		asks := []struct {
			name    string
			with    []how
			records int
			ad, cd  bool
		}{
			{"plain", nil, 1, false, false},
			{"EDNS", []how{edns}, 1, false, false},
			{"DO", []how{wantsDO}, 2, true, false},
			{"AD", []how{wantsAD}, 1, true, false},
		}
		check := func(i int, m *dns.Msg) {
			t.Helper()
			if a := asks[i]; len(m.Answer) != a.records || m.AuthenticatedData != a.ad || m.CheckingDisabled != a.cd || (m.IsEdns0() != nil) != (a.name == "EDNS" || a.name == "DO") {
				t.Errorf("%s, no cache %v: answered %v", a.name, none, m)
			}
		}
		var clients []*client
		for _, a := range asks {
			clients = append(clients, s.ask(www, dns.TypeA, a.with...))
		}
		signed := func(m *dns.Msg) { m.AuthenticatedData = true }
		q := s.up.next(t)
		s.unasked()
		s.up.answer(t, q, 0, []string{wwwA, wwwSig}, signed)
		for i, c := range clients {
			check(i, s.answer(c))
		}
		if none {
			continue
		}
		for i, a := range asks {
			m, _ := s.hit(www, dns.TypeA, a.with...)
			check(i, m)
		}
		// What nobody checked is not for those who want it checked, nor the other way.
		unchecked := s.ask(www, dns.TypeA, wantsCD, wantsDO)
		s.up.answer(t, s.up.next(t), 0, []string{"www.example. 60 IN A 203.0.113.1"}, signed)
		if m := s.answer(unchecked); !m.CheckingDisabled || m.AuthenticatedData || records(m)[0] != "www.example.\t60\tIN\tA\t203.0.113.1" {
			t.Errorf("CD: answered %v", m)
		}
		if m, _ := s.hit(www, dns.TypeA); records(m)[0] != "www.example.\t60\tIN\tA\t192.0.2.1" {
			t.Errorf("answered %v: what nobody checked", m)
		}
		s.unasked()
	}
}

func TestForwardAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		rcode   int
		records []string
		change  func(*dns.Msg)
		want    int // rcode
		ede     int // -1 is none
		kept    time.Duration
	}{
		{"an address", 0, []string{wwwA}, nil, 0, -1, 60 * time.Second},
		{"NXDOMAIN", 3, []string{"soa"}, nil, 3, -1, 60 * time.Second},
		{"NODATA", 0, []string{"soa"}, nil, 0, -1, 60 * time.Second},
		{"NXDOMAIN without SOA", 3, nil, nil, 3, -1, 0},
		{"NODATA without SOA", 0, nil, nil, 0, -1, 0},
		{"TTL 0", 0, []string{"www.example. 0 IN A 192.0.2.1"}, nil, 0, -1, 0},
		{"letters of the question", 0, []string{wwwA}, func(m *dns.Msg) { m.Question[0].Name = "wwW.EXAMPLE." }, 0, -1, 60 * time.Second},
		{"with an extended error", 0, []string{wwwA}, func(m *dns.Msg) {
			m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_EDE{InfoCode: 4})
		}, 0, 4, 60 * time.Second},
		{"SERVFAIL", 2, nil, nil, 2, 23, 5 * time.Second},
		{"REFUSED", 5, nil, nil, 2, 23, 5 * time.Second},
		{"SERVFAIL with a reason", 2, nil, func(m *dns.Msg) {
			m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_EDE{InfoCode: 6})
		}, 2, 6, 5 * time.Second},
		{"another code", 4095 & 17, nil, nil, 2, 23, 5 * time.Second},
		{"malformed", 0, nil, func(m *dns.Msg) {
			m.Answer = []dns.RR{&dns.RFC3597{Hdr: dns.RR_Header{Name: www, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, Rdata: "c00002"}}
		}, 2, 24, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, siteConfig{})
			k := s.ask(www, dns.TypeA, edns)
			change := c.change
			if change == nil {
				change = func(*dns.Msg) {}
			}
			s.up.answer(t, s.up.next(t), c.rcode, c.records, change)
			check := func(m *dns.Msg) {
				t.Helper()
				codes, _ := errorsOf(m)
				if m.Rcode != c.want || len(m.Answer) != 0 && c.want != 0 || m.Question[0].Name != www || m.Truncated {
					t.Errorf("answered %v", m)
				}
				if c.ede < 0 && codes != nil || c.ede >= 0 && (len(codes) != 1 || codes[0] != c.ede) {
					t.Errorf("extended errors %d, want %d", codes, c.ede)
				}
			}
			check(s.answer(k))
			if c.kept == 0 {
				k = s.ask(www, dns.TypeA)
				s.up.answer(t, s.up.next(t), c.rcode, c.records, change)
				s.answer(k)
				return
			}
			s.clock.Add(int64(c.kept) - 1)
			m, k := s.hit(www, dns.TypeA, edns)
			check(m)
			if k.Note.Source != serve.SourceCache {
				t.Errorf("noted %+v", k.Note)
			}
			s.clock.Add(1)
			k = s.ask(www, dns.TypeA)
			s.up.answer(t, s.up.next(t), 0, []string{wwwA})
			s.answer(k)
		})
	}
}

func TestForwardErrorText(t *testing.T) {
	s := newSite(t, siteConfig{})
	k := s.ask(www, dns.TypeA, edns)
	s.up.answer(t, s.up.next(t), 2, nil)
	if _, text := errorsOf(s.answer(k)); text != "udp://up answered SERVFAIL" {
		t.Errorf("text %q", text)
	}
	if k.Note.Source != serve.SourceError || k.Note.Upstream != 7 || k.Note.EDE != edeNetwork+1 {
		t.Errorf("noted %+v", k.Note)
	}
}

// RFC 8914 §4.23: code 22 is No Reachable Authority. What nobody said is kept for
// a second only.
func TestForwardTimeout(t *testing.T) {
	s := newSite(t, siteConfig{})
	k := s.ask(www, dns.TypeA, edns)
	s.up.next(t)
	s.pass(4 * time.Second)
	s.pass(50 * time.Millisecond)
	m := s.answer(k)
	checkError(t, m, edeNoReachable)
	if m.Rcode != dns.RcodeServerFailure || !m.RecursionAvailable || k.Note.Upstream != 0 || k.Note.Source != serve.SourceError {
		t.Errorf("answered %v, noted %+v", m, k.Note)
	}
	m, _ = s.hit(www, dns.TypeA, edns)
	checkError(t, m, edeNoReachable)
	for range 5 { // the other tries
		s.up.next(t)
	}
	s.clock.Add(int64(time.Second))
	k = s.ask(www, dns.TypeA)
	s.up.answer(t, s.up.next(t), 0, []string{wwwA})
	s.answer(k)
}

// A group that is closed answers at once, and leaves nothing behind.
func TestForwardClosed(t *testing.T) {
	s := newSite(t, siteConfig{})
	waiting := s.ask(www, dns.TypeA, edns)
	s.up.next(t)
	if err := s.group.Close(); err != nil {
		t.Fatal(err)
	}
	s.clock.Add(int64(time.Minute)) // the failure is forgotten
	for _, k := range []*client{waiting, s.ask(www, dns.TypeA, edns)} {
		m := s.answer(k)
		checkError(t, m, edeNoReachable)
		if m.Rcode != dns.RcodeServerFailure || k.Pending != nil {
			t.Errorf("answered %v", m)
		}
	}
	if n := s.forward.Flights.Len(); n != 0 {
		t.Errorf("%d flights are left", n)
	}
}

// Who does not want recursion is told nothing of what others asked for (RFC 8914
// §4.21: code 20 is Not Authoritative).
func TestForwardNoRecursion(t *testing.T) {
	s := newSite(t, siteConfig{})
	s.fill(www, dns.TypeA, 0, wwwA)
	for _, name := range []string{www, "ftp.example."} {
		k := s.ask(name, dns.TypeA, noRD, edns)
		m := s.answer(k)
		checkError(t, m, edeNotAuth)
		if m.Rcode != dns.RcodeRefused || len(m.Answer) != 0 || m.RecursionDesired || k.Note.Source != serve.SourceRefused {
			t.Errorf("%s: answered %v", name, m)
		}
	}
	s.unasked()
}

// A question without a group goes on.
func TestForwardNowhere(t *testing.T) {
	f := &Forward{Cache: &Cache{}}
	r := received(t, "192.0.2.1", overUDP, query(t, www, dns.TypeA))
	if next := f.Start(r); next != policy.Go || r.Out != nil {
		t.Errorf("next %d", next)
	}
	if next := f.Cache.Do(r); next != policy.Go {
		t.Errorf("next %d", next)
	}
}

func TestForwardLarge(t *testing.T) {
	s := newSite(t, siteConfig{})
	var large []string
	for i := range 30 {
		large = append(large, fmt.Sprintf("www.example. 60 IN TXT \"%03d%s\"", i, strings.Repeat("x", 250)))
	}
	tcp := s.put(overTCP, query(t, www, dns.TypeTXT, edns))
	udp := s.put(overUDP, query(t, www, dns.TypeTXT, edns))
	ede := func(m *dns.Msg) { m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: 4}} }
	s.up.answer(t, s.up.next(t), 0, large, ede)
	for range 2 { // then from the cache
		m := s.answer(tcp)
		if m.Truncated || len(m.Answer) != 30 || m.Len() < 4096 {
			t.Errorf("over TCP: %d records, TC %v", len(m.Answer), m.Truncated)
		}
		checkError(t, m, 4)
		if m = s.answer(udp); !m.Truncated || m.Len() > 1232 {
			t.Errorf("over UDP: %d octets, TC %v", m.Len(), m.Truncated)
		}
		tcp, udp = s.put(overTCP, query(t, www, dns.TypeTXT, edns)), s.put(overUDP, query(t, www, dns.TypeTXT, edns))
	}
	s.unasked()
}

// What is truncated stays so, is given to all who wait, and is not kept. It is
// not asked for again because there would be more room.
func TestForwardTruncated(t *testing.T) {
	s := newSite(t, siteConfig{})
	udp, tcp := s.put(overUDP, query(t, www, dns.TypeA, edns)), s.put(overTCP, query(t, www, dns.TypeA, edns))
	q := s.up.next(t)
	m := udp.Pending.(*miss)
	if m != tcp.Pending.(*miss) {
		t.Fatal("two flights for one question")
	}
	msg := packed(t, q.msg(t), 0, []string{wwwA}, func(m *dns.Msg) {
		m.Truncated = true
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: 4}}
	})
	if m.answer != nil {
		t.Error("a flight under way holds the memory of an answer")
	}
	m.answer = new(cache.Answer)
	m.take(&upstream.Exchange{Response: msg}) // groups ask again by TCP
	for _, r := range s.forward.Flights.End(&m.Flight, nil) {
		r.Waker.Wake()
	}
	for _, c := range []*client{udp, tcp} {
		got := s.answer(c)
		checkError(t, got, 4)
		if !got.Truncated || len(got.Answer) != 1 || c.starts.Load() != 2 {
			t.Errorf("over %v: answered %v after %d starts", c.Peer.Proto, got, c.starts.Load())
		}
	}
	s.unasked()
	m.x.Owner = nobody{} // the flight has ended, and its exchange has not
	c := s.ask(www, dns.TypeA)
	s.up.answer(t, s.up.next(t), 0, []string{wwwA})
	if got := s.answer(c); got.Truncated {
		t.Errorf("answered %v", got)
	}
}

type nobody struct{}

func (nobody) Exchanged(*upstream.Exchange) {}

// All who ask for one thing at once share one query, and each is woken once.
func TestForwardMerge(t *testing.T) {
	const workers, each = 8, 50
	s := newSite(t, siteConfig{})
	var wg sync.WaitGroup
	clients := make([]*client, workers*each)
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				name := []byte(www)
				for bit, at := range []int{0, 1, 2, 4, 5, 6} {
					if i>>bit&1 != 0 {
						name[at] &^= 0x20
					}
				}
				clients[w*each+i] = s.ask(string(name), dns.TypeA)
			}
		})
	}
	q := s.up.next(t)
	wg.Wait()
	s.unasked()
	s.up.answer(t, q, 0, []string{wwwA})
	for i, c := range clients {
		m := s.answer(c)
		if len(m.Answer) != 1 || m.Answer[0].Header().Name != m.Question[0].Name || !strings.EqualFold(m.Question[0].Name, www) {
			t.Errorf("client %d: answered %v", i, m)
		}
		if c.starts.Load() != 2 || len(c.done) != 0 {
			t.Errorf("client %d was woken %d times", i, c.starts.Load()-1)
		}
	}
	s.unasked()
}

// Questions and answers cross in flight: flights end, are used again, and time
// passes, and nobody gets another's answer.
func TestForwardConcurrent(t *testing.T) {
	const workers, each = 4, 200
	s := newSite(t, siteConfig{})
	var wg, up sync.WaitGroup
	up.Go(func() {
		for q := range s.up.got {
			if len(q.raw) == 0 {
				return
			}
			m := q.msg(t)
			s.up.answer(t, q, 0, []string{m.Question[0].Name + " 0 IN TXT " + m.Question[0].Name})
		}
	})
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				name := fmt.Sprintf("n%d.example.", (i+w)%5)
				c := s.ask(name, dns.TypeTXT)
				m := s.answer(c)
				if len(m.Answer) != 1 || !strings.Contains(m.Answer[0].String(), "\""+name+"\"") || c.starts.Load() != 2 {
					t.Errorf("%s: answered %v", name, m)
				}
			}
		})
	}
	wg.Wait()
	s.up.got <- asked{}
	up.Wait()
}
