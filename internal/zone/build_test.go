package zone_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"pgregory.net/rapid"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
)

// answers is what a zone says to many questions, sections sorted: the order of
// records inside an RRset, and which of two spellings an owner has, are free.
func answers(t testing.TB, records []dns.RR, qs []testkit.Question) []string {
	us := testkit.NewAsker(table(t, records).Answer)
	all := make([]string, 0, len(qs))
	for _, q := range qs {
		r := us.Ask(t, q)
		all = append(all, fmt.Sprint(q.Name, " ", dns.TypeToString[q.Type], r.Rcode, r.Authoritative, lines(r.Answer), lines(r.Ns), lines(r.Extra)))
	}
	return all
}

// TestAnyOrder: the order of the records does not matter.
func TestAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	zones := make([][]dns.RR, 4)
	qs := make([][]testkit.Question, 4)
	want := make([][]string, 4)
	for i := range zones {
		zones[i] = randomZone(t, r, "z.test.", i)
		for j, q := range questions(t, zones[i]) {
			if j%29 == 0 && q.Type != dns.TypeANY && q.Type != dns.TypeRRSIG {
				qs[i] = append(qs[i], q)
			}
		}
		want[i] = answers(t, zones[i], qs[i])
	}
	rapid.Check(t, func(rt *rapid.T) {
		i := rapid.IntRange(0, 3).Draw(rt, "zone")
		records := rapid.Permutation(zones[i]).Draw(rt, "order")
		if twice := rapid.IntRange(0, len(records)).Draw(rt, "twice"); twice > 0 {
			records = append(records, records[:twice]...)
		}
		got := answers(t, records, qs[i])
		for j := range got {
			if got[j] != want[i][j] {
				rt.Fatalf("got  %s\nwant %s", got[j], want[i][j])
			}
		}
	})
}

// TestDuplicates: a record is there once (RFC 2181 section 5), and names in RDATA
// that differ in letters only are the same (RFC 4343).
func TestDuplicates(t *testing.T) {
	records := testkit.Records(t, "example.org.", `
@ 60 SOA a b 1 2 3 4 5
@ NS ns
@ NS NS
@ NS ns.EXAMPLE.org.
@ MX 1 mail
@ MX 1 MAIL
@ MX 2 mail
x TXT "a"
x TXT "A"
X TXT "a"
x PTR a
x PTR A
x DNAME a
x DNAME A
x A 192.0.2.1
x A 192.0.2.1
`)
	us := testkit.NewAsker(table(t, records).Answer)
	for _, c := range []struct {
		name string
		typ  uint16
		want int
	}{
		{"example.org.", dns.TypeNS, 1},
		{"example.org.", dns.TypeMX, 2},
		{"x.example.org.", dns.TypeTXT, 2},
		{"x.example.org.", dns.TypePTR, 1},
		{"x.example.org.", dns.TypeDNAME, 1},
		{"x.example.org.", dns.TypeA, 1},
	} {
		if r := us.Ask(t, testkit.Question{Name: c.name, Type: c.typ}); len(r.Answer) != c.want {
			t.Errorf("%s %s: %d records, want %d: %v", c.name, dns.TypeToString[c.typ], len(r.Answer), c.want, r.Answer)
		}
	}
	if n := build(t, records).Records(); n != 1+1+2+2+1+1+1 {
		t.Errorf("Records() = %d", n)
	}
}

// TestTTL: the records of an RRset have one TTL, the smallest (RFC 2181 section
// 5.2), and the signatures of one type do not lower those of another.
func TestTTL(t *testing.T) {
	us := testkit.NewAsker(table(t, testkit.Records(t, "example.org.", `
@ 60 SOA a b 1 2 3 4 5
@ 60 NS ns
x 300 A 192.0.2.1
x 100 A 192.0.2.2
x 200 A 192.0.2.3
x 900 TXT "x"
x 50 RRSIG A 13 3 300 20500101000000 20200101000000 1 example.org. AAAA
x 800 RRSIG TXT 13 3 300 20500101000000 20200101000000 1 example.org. AAAA
`)).Answer)
	for typ, want := range map[uint16][]uint32{dns.TypeA: {100, 100, 100, 50}, dns.TypeTXT: {900, 800}} {
		var got []uint32
		for _, rr := range us.Ask(t, testkit.Question{Name: "x.example.org.", Type: typ, DO: true}).Answer {
			got = append(got, rr.Header().Ttl)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: TTLs %d, want %d", dns.TypeToString[typ], got, want)
		}
	}
}

// TestErrors: what is no zone is told apart.
func TestErrors(t *testing.T) {
	const soa = "@ 60 SOA a b 1 2 3 4 5\n"
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"no record at all", "", zone.ErrNoSOA},
		{"no SOA record", "@ NS a\nx A 192.0.2.1\n", zone.ErrNoSOA},
		{"SOA record elsewhere", "x 60 SOA a b 1 2 3 4 5\n", zone.ErrNoSOA},
		{"two SOA records", soa + "@ 60 SOA a b 2 2 3 4 5\n", zone.ErrTwoSOA},
		{"the same SOA record twice", soa + soa, nil},
		{"another name", soa + "example.com. A 192.0.2.1\n", zone.ErrOutOfZone},
		{"the parent", soa + "org. A 192.0.2.1\n", zone.ErrOutOfZone},
		{"a name that ends alike", soa + "myexample.org. A 192.0.2.1\n", zone.ErrOutOfZone},
		{"the root", soa + ". A 192.0.2.1\n", zone.ErrOutOfZone},
		{"NSEC3 of another zone", soa + "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example.com. NSEC3 1 0 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A\n", zone.ErrOutOfZone},
		{"NSEC3 at the apex", soa + "@ NSEC3 1 0 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A\n", zone.ErrRDATA},
		{"NSEC3 below a name", soa + "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.x NSEC3 1 0 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A\n", zone.ErrRDATA},
		{"NSEC3 owner is no hash", soa + "0p9mhaveqvm6t7vbl5lop2u3t2rp3toz NSEC3 1 0 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A\n", zone.ErrRDATA},
		{"too many NSEC3 iterations", soa + "@ NSEC3PARAM 1 0 2501 -\n0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 0 2501 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A\n", zone.ErrHashing},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := zone.NewBuilder(testkit.Name(t, "example.org."), 0)
			var err error
			for _, rr := range testkit.Records(t, "example.org.", c.text) {
				owner, rdata := testkit.Wire(t, rr)
				err = errors.Join(err, b.Add(owner, rr.Header().Rrtype, rr.Header().Ttl, rdata))
			}
			if err == nil {
				_, err = b.Zone()
			}
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// TestLargeSet: what no message could count is refused, and what it could is
// taken, duplicates apart, in a time that does not grow with the square.
func TestLargeSet(t *testing.T) {
	apex := testkit.Name(t, "example.org.")
	for _, c := range []struct {
		records int
		want    error
	}{{65_535, nil}, {65_536, zone.ErrLargeSet}} {
		b := zone.NewBuilder(apex, 0)
		soa := append(append([]byte{0}, 0), make([]byte, 20)...)
		if err := b.Add(apex, wire.TypeSOA, 60, soa); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for i := range c.records {
				if err := b.Add(apex, wire.TypeA, 60, binary.BigEndian.AppendUint32(nil, uint32(i))); err != nil {
					t.Fatal(err)
				}
			}
		}
		z, err := b.Zone()
		if !errors.Is(err, c.want) || err == nil && z.Records() != c.records+1 {
			t.Errorf("%d records: %v", c.records, err)
		}
	}
}

// TestBadRDATA: RDATA is checked before it is taken, so that no answer can
// stumble over it.
func TestBadRDATA(t *testing.T) {
	for _, c := range []struct {
		typ   uint16
		rdata string
	}{
		{wire.TypeA, "\x01\x02\x03"},
		{wire.TypeA, "\x01\x02\x03\x04\x05"},
		{wire.TypeAAAA, ""},
		{wire.TypeNS, ""},
		{wire.TypeNS, "\x01a"},
		{wire.TypeNS, "\x01a\x00\x00"},
		{wire.TypeNS, "\xc0\x0c"},
		{wire.TypeMX, "\x00\x01"},
		{wire.TypeSOA, "\x00\x00\x00\x00"},
		{wire.TypeTXT, ""},
		{wire.TypeTXT, "\x05abc"},
		{wire.TypeRRSIG, "\x00"},
		{wire.TypeRRSIG, ""},
		{wire.TypeNSEC3, "\x01\x00\x00\x00\x05a"},
		{wire.TypeNSEC3PARAM, "\x01\x00\x00\x00\x01"},
		{wire.TypeSVCB, "\x00\x01"},
	} {
		b := zone.NewBuilder(testkit.Name(t, "example.org."), 0)
		if err := b.Add(testkit.Name(t, "x.example.org."), c.typ, 1, []byte(c.rdata)); !errors.Is(err, zone.ErrRDATA) {
			t.Errorf("%s with RDATA %q: %v", wire.TypeString(c.typ), c.rdata, err)
		}
	}
}

// TestManyNames: the index grows, whatever number of records was announced.
func TestManyNames(t *testing.T) {
	for _, announced := range []int{0, 100, 20000} {
		b := zone.NewBuilder(testkit.Name(t, "example.org."), announced)
		testkit.Fill(t, b, testkit.Records(t, "example.org.", "@ 60 SOA a b 1 2 3 4 5\n"))
		for i := range 20000 {
			owner := testkit.Name(t, fmt.Sprintf("n%d.below.example.org.", i))
			if err := b.Add(owner, wire.TypeA, 60, []byte{192, 0, byte(i >> 8), byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		z, err := b.Zone()
		if err != nil {
			t.Fatal(err)
		}
		us := testkit.NewAsker(zone.NewTable([]*zone.Zone{z}).Answer)
		for i := range 20000 {
			r := us.Ask(t, testkit.Question{Name: fmt.Sprintf("N%d.below.example.org.", i), Type: dns.TypeA})
			if want := fmt.Sprintf("192.0.%d.%d", i>>8&255, i&255); len(r.Answer) != 1 || r.Answer[0].(*dns.A).A.String() != want {
				t.Fatalf("%v, want %s", r, want)
			}
		}
		if z.Records() != 20001 || z.Serial() != 1 || z.Signed() {
			t.Errorf("%d records, serial %d, signed %t", z.Records(), z.Serial(), z.Signed())
		}
	}
}

// TestDeepName: 127 labels, the most that a name has, and every name above it.
func TestDeepName(t *testing.T) {
	deep := strings.Repeat("a.", 126) + "z."
	us := testkit.NewAsker(table(t, testkit.Records(t, "z.", "@ 60 SOA a b 1 2 3 4 5\n"+deep+" TXT \"deep\"\n")).Answer)
	if r := us.Ask(t, testkit.Question{Name: deep, Type: dns.TypeTXT}); len(r.Answer) != 1 {
		t.Errorf("the name itself: %v", r)
	}
	for n := testkit.Parent(deep); n != "z."; n = testkit.Parent(n) {
		if r := us.Ask(t, testkit.Question{Name: n, Type: dns.TypeTXT}); r.Rcode != dns.RcodeSuccess || len(r.Ns) != 1 {
			t.Errorf("%s: %v", n, r)
		}
		if r := us.Ask(t, testkit.Question{Name: "b." + n, Type: dns.TypeTXT}); r.Rcode != dns.RcodeNameError {
			t.Errorf("b.%s: %v", n, r)
		}
	}
}

// TestChosenChain: of several NSEC3 chains the one that NSEC3PARAM names answers
// (RFC 5155 section 7.1); one whose flags are set is not complete (section 4.1.2).
func TestChosenChain(t *testing.T) {
	zoneText := "@ 60 SOA a b 1 2 3 4 5\n@ NS a\na A 192.0.2.1\n"
	old := testkit.Sign(t, testkit.Records(t, "example.org.", zoneText), testkit.Signing{NSEC3: true, Salt: "aa"})
	for _, rr := range old {
		if p, ok := rr.(*dns.NSEC3PARAM); ok {
			p.Flags = 128
		}
	}
	fresh := testkit.Sign(t, testkit.Records(t, "example.org.", zoneText), testkit.Signing{NSEC3: true, Iterations: 1})
	us := testkit.NewAsker(table(t, append(old, fresh...)).Answer)
	n := 0
	for _, rr := range us.Ask(t, testkit.Question{Name: "nothing.example.org.", Type: dns.TypeA, DO: true}).Ns {
		if rr, ok := rr.(*dns.NSEC3); ok {
			n++
			if rr.Iterations != 1 || rr.Salt != "" {
				t.Errorf("record of the chain that is not complete: %s", rr)
			}
		}
	}
	if n == 0 {
		t.Error("no proof")
	}
}
