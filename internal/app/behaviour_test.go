package app

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// behaviourZone is example.org with what the behaviours below need.
func behaviourZone() string {
	lines := []string{
		"a.b.c A 192.0.2.2",
		"*.w A 192.0.2.3", "x.y.w A 192.0.2.4", "star CNAME *.w",
		"dead CNAME missing", "WwW A 192.0.2.80",
		"dn DNAME target", "a.target A 192.0.2.5", "self DNAME x.self",
		"l1 CNAME l2", "l2 CNAME l1", "*.loop CNAME x.loop",
		"sub NS ns.sub", "ns.sub A 192.0.2.6", "below.sub A 192.0.2.7",
		"www TXT x",
	}
	for i := range 13 {
		lines = append(lines, fmt.Sprintf("big NS ns%d.big", i), fmt.Sprintf("ns%d.big A 192.0.2.%d", i, 100+i),
			fmt.Sprintf("ns%d.big AAAA 2001:db8::%d", i, i))
	}
	for i := range 120 {
		lines = append(lines, fmt.Sprintf("many TXT %q", strings.Repeat(string(rune('a'+i%26)), 60)+fmt.Sprint(i)))
	}
	return zoneText(1, lines...)
}

func behaviourServer(t *testing.T) *running {
	s := newSite(t)
	s.plan.Server.ID = "one"
	s.zone("example.org", behaviourZone())
	s.zone("child.example.org", zoneText(7))
	return s.run(nil)
}

// TestBehaviourNames asks one question each and looks at code, AA and the types
// of the sections.
func TestBehaviourNames(t *testing.T) {
	r := behaviourServer(t)
	for _, c := range []struct {
		about string
		name  string
		typ   uint16
		want  string
	}{
		{"1 empty non-terminal (RFC 8020)", "b.c.example.org.", dns.TypeA, "NOERROR aa | | SOA |"},
		{"2 wildcard over several labels (RFC 4592)", "q.r.w.example.org.", dns.TypeA, "NOERROR aa | A | |"},
		{"2 no wildcard below a name that exists", "q.y.w.example.org.", dns.TypeA, "NXDOMAIN aa | | SOA |"},
		{"3 * as an ordinary label of a query", "*.w.example.org.", dns.TypeA, "NOERROR aa | A | |"},
		{"3 * as an ordinary label of a target", "star.example.org.", dns.TypeA, "NOERROR aa | CNAME A | |"},
		{"4 code of the last name of a chain (RFC 6604)", "dead.example.org.", dns.TypeA, "NXDOMAIN aa | CNAME | SOA |"},
		{"5 CNAME under a DNAME", "a.dn.example.org.", dns.TypeCNAME, "NOERROR aa | DNAME CNAME | |"},
		{"5 A under a DNAME (RFC 6672)", "a.dn.example.org.", dns.TypeA, "NOERROR aa | DNAME CNAME A | |"},
		{"8 A below a zone cut", "below.sub.example.org.", dns.TypeA, "NOERROR | | NS | A"},
		{"8 NS at a zone cut", "sub.example.org.", dns.TypeNS, "NOERROR | | NS | A"},
		{"8 CNAME below a zone cut", "x.sub.example.org.", dns.TypeCNAME, "NOERROR | | NS | A"},
		{"9 DS at the cut", "sub.example.org.", dns.TypeDS, "NOERROR aa | | SOA |"},
		{"9 DS of a zone whose parent is here", "child.example.org.", dns.TypeDS, "NXDOMAIN aa | | SOA |"},
		{"9 DS of a zone without its parent", "example.org.", dns.TypeDS, "NOERROR aa | | SOA |"},
		{"12 outside every zone", "example.com.", dns.TypeA, "REFUSED | | |"},
		{"13 unknown types are types (RFC 3597)", "www.example.org.", 666, "NOERROR aa | | SOA |"},
		{"13", "www.example.org.", 65535, "NOERROR aa | | SOA |"},
		{"21 no transfer", "example.org.", dns.TypeAXFR, "REFUSED | | |"},
		{"21 no transfer", "example.org.", dns.TypeIXFR, "REFUSED | | |"},
		{"23 ANY over UDP is one RRset (RFC 8482)", "www.example.org.", dns.TypeANY, "NOERROR aa | A | |"},
	} {
		if got := summaryOf(r.ask(c.name, c.typ)); got != c.want {
			t.Errorf("%s: %s %s: %s, want %s", c.about, c.name, dns.TypeToString[c.typ], got, c.want)
		}
	}
}

// summaryOf is code, AA, and the types of the three sections.
func summaryOf(m *dns.Msg) string {
	s := dns.RcodeToString[m.Rcode]
	if m.Authoritative {
		s += " aa"
	}
	for _, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		s += " |"
		for _, rr := range section {
			s += " " + dns.TypeToString[rr.Header().Rrtype]
		}
	}
	return s
}

// Behaviours 6 and 7: chains that feed themselves end, and the server lives.
func TestBehaviourEndlessChains(t *testing.T) {
	r := behaviourServer(t)
	for _, name := range []string{"a.self.example.org.", "l1.example.org.", "a.loop.example.org.", "x.loop.example.org."} {
		m := r.ask(name, dns.TypeA)
		seen := map[string]bool{}
		for _, rr := range m.Answer {
			if seen[rr.String()] {
				t.Errorf("%s: %s comes twice", name, rr)
			}
			seen[rr.String()] = true
		}
		if len(m.Answer) == 0 || m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeYXDomain {
			t.Errorf("%s: %s", name, summaryOf(m))
		}
	}
	long := strings.Repeat(strings.Repeat("a", 60)+".", 3) + strings.Repeat("b", 52) + ".dn.example.org."
	if got := r.ask(long, dns.TypeA); got.Rcode != dns.RcodeYXDomain || len(got.Answer) != 1 {
		t.Errorf("a name that grows beyond 255 octets: %s, want YXDOMAIN with the DNAME", summaryOf(got))
	}
	if r.serial("example.org") != 1 {
		t.Error("no answer after them")
	}
}

// Behaviour 10: glue of 13 servers does not fit into 512 octets.
func TestBehaviourGlue(t *testing.T) {
	r := behaviourServer(t)
	m := r.ask("x.big.example.org.", dns.TypeA)
	if !m.Truncated || len(m.Ns) != 13 {
		t.Errorf("at 512 octets: tc %v, %s", m.Truncated, summaryOf(m))
	}
	q := new(dns.Msg)
	q.SetQuestion("x.big.example.org.", dns.TypeA)
	if m = r.exchange("tcp", q); m.Truncated || len(m.Extra) != 26 {
		t.Errorf("over TCP: tc %v, %s", m.Truncated, summaryOf(m))
	}
}

// Behaviour 11: the SOA of a negative answer has the lesser of its TTL and MINIMUM.
func TestBehaviourNegativeTTL(t *testing.T) {
	r := behaviourServer(t)
	for _, name := range []string{"missing.example.org.", "c.example.org."} {
		if m := r.ask(name, dns.TypeA); len(m.Ns) != 1 || m.Ns[0].Header().Ttl != 300 {
			t.Errorf("%s: %v", name, m.Ns)
		}
	}
}

// Behaviours 14 and 19: header bits of a query mean nothing but RD, and the
// question comes back letter for letter.
func TestBehaviourHeaderBits(t *testing.T) {
	r := behaviourServer(t)
	q := new(dns.Msg)
	q.SetQuestion("WWW.eXample.oRG.", dns.TypeA)
	plain, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 15 { // all but QR
		if bit >= 11 || bit < 4 {
			continue // opcode and rcode
		}
		msg := bytes.Clone(plain)
		binary.BigEndian.PutUint16(msg[2:], 1<<bit)
		got := r.raw(msg)
		want := uint16(0x8400)
		if bit == 8 {
			want |= 1 << bit // RD is copied
		}
		if flags := binary.BigEndian.Uint16(got[2:]); flags != want {
			t.Errorf("bit %d: flags %04x, want %04x", bit, flags, want)
		}
		if !bytes.Equal(got[12:len(plain)], plain[12:]) {
			t.Errorf("bit %d: the question came back changed", bit)
		}
	}
}

// Behaviour 12: another class is refused as well.
func TestBehaviourClass(t *testing.T) {
	r := behaviourServer(t)
	for class, want := range map[uint16]int{dns.ClassHESIOD: dns.RcodeRefused, dns.ClassANY: dns.RcodeRefused, dns.ClassCHAOS: dns.RcodeSuccess} {
		q := new(dns.Msg)
		q.SetQuestion("id.server.", dns.TypeTXT)
		q.Question[0].Qclass = class
		if m := r.exchange("udp", q); m.Rcode != want || want == dns.RcodeSuccess && m.Answer[0].(*dns.TXT).Txt[0] != "one" {
			t.Errorf("class %d: %v", class, m)
		}
	}
}

// Behaviour 15: opcodes, question counts, responses.
func TestBehaviourForm(t *testing.T) {
	r := behaviourServer(t)
	q := new(dns.Msg)
	q.SetQuestion("www.example.org.", dns.TypeA)
	plain, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for opcode := 1; opcode < 16; opcode++ {
		msg := bytes.Clone(plain)
		msg[2] = byte(opcode << 3)
		if got := r.raw(msg); got[2]>>3&15 != byte(opcode) || got[3]&15 != dns.RcodeNotImplemented {
			t.Errorf("opcode %d: header % x, want NOTIMP", opcode, got[:4])
		}
	}
	for _, count := range []byte{0, 2} {
		msg := bytes.Clone(plain)
		msg[5] = count
		if got := r.raw(msg); got[3]&15 != dns.RcodeFormatError {
			t.Errorf("%d questions: header % x, want FORMERR", count, got[:4])
		}
	}
	plain[2] |= 0x80
	if got := r.raw(plain); got != nil {
		t.Errorf("a response was answered: % x", got)
	}
}

// Behaviours 16 and 17: EDNS.
func TestBehaviourEDNS(t *testing.T) {
	r := behaviourServer(t)
	for _, c := range []struct {
		about   string
		version uint8
		do      bool
		flags   uint16
		option  dns.EDNS0
		rcode   int
	}{
		{"plain", 0, false, 0, nil, dns.RcodeSuccess},
		{"DO", 0, true, 0, nil, dns.RcodeSuccess},
		{"unknown flag", 0, false, 0x40, nil, dns.RcodeSuccess},
		{"unknown option", 0, false, 0, &dns.EDNS0_LOCAL{Code: 100, Data: []byte{1}}, dns.RcodeSuccess},
		{"version 1", 1, false, 0, nil, dns.RcodeBadVers},
		{"version 1, option", 1, false, 0, &dns.EDNS0_LOCAL{Code: 100}, dns.RcodeBadVers},
		{"version 1, DO", 1, true, 0, nil, dns.RcodeBadVers},
	} {
		q := new(dns.Msg)
		q.SetQuestion("www.example.org.", dns.TypeA)
		q.SetEdns0(1232, c.do)
		opt := q.IsEdns0()
		opt.SetVersion(c.version)
		opt.Hdr.Ttl |= uint32(c.flags)
		if c.option != nil {
			opt.Option = append(opt.Option, c.option)
		}
		m := r.exchange("udp", q)
		got := m.IsEdns0()
		if got == nil {
			t.Errorf("%s: no OPT record", c.about)
			continue
		}
		if m.Rcode != c.rcode || got.Version() != 0 || got.Do() != c.do || got.Hdr.Ttl&0x7fff != 0 || len(got.Option) != 0 {
			t.Errorf("%s: rcode %d, %v", c.about, m.Rcode, got)
		}
		if (c.rcode == dns.RcodeBadVers) != (len(m.Answer) == 0) {
			t.Errorf("%s: %d answers", c.about, len(m.Answer))
		}
	}
	if m := r.ask("www.example.org.", dns.TypeA); m.IsEdns0() != nil {
		t.Error("an OPT record for a client that sent none")
	}
	q := new(dns.Msg)
	q.SetQuestion("www.example.org.", dns.TypeA)
	q.SetEdns0(1232, false)
	q.IsEdns0().Option = append(q.IsEdns0().Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})
	if o := r.exchange("udp", q).IsEdns0().Option; len(o) != 1 || o[0].String() != "6f6e65" {
		t.Errorf("NSID: %v", o)
	}
}

// Behaviour 18: truncation keeps question and OPT and obeys both limits.
func TestBehaviourTruncation(t *testing.T) {
	r := behaviourServer(t)
	for _, size := range []uint16{0, 100, 512, 1000, 1232, 4096, 65535} {
		q := new(dns.Msg)
		q.SetQuestion("many.example.org.", dns.TypeTXT)
		limit := 512
		if size > 0 {
			q.SetEdns0(size, true)
			limit = int(min(max(size, 512), 1232))
		}
		m := r.exchange("udp", q)
		packed, err := m.Pack()
		if err != nil || !m.Truncated || len(packed) > limit || len(m.Question) != 1 || (m.IsEdns0() != nil) != (size > 0) {
			t.Errorf("size %d: %d octets, %v", size, len(packed), m.MsgHdr)
		}
		if m = r.exchange("tcp", q); m.Truncated || len(m.Answer) != 120 {
			t.Errorf("size %d over TCP: tc %v, %d answers, want all", size, m.Truncated, len(m.Answer))
		}
	}
}

// Behaviour 20: 100 queries at once on one connection, one octet at a time.
func TestBehaviourPipelining(t *testing.T) {
	r := behaviourServer(t)
	conn, err := net.Dial("tcp", r.tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	var all []byte
	for i := range 100 {
		q := new(dns.Msg)
		q.SetQuestion("www.example.org.", dns.TypeA)
		q.Id = uint16(i)
		msg, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		all = append(binary.BigEndian.AppendUint16(all, uint16(len(msg))), msg...)
	}
	for i := range all[:200] {
		if _, err := conn.Write(all[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Write(all[200:]); err != nil {
		t.Fatal(err)
	}
	var ids []int
	for range 100 {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			t.Fatalf("after %d answers: %v", len(ids), err)
		}
		msg := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, msg); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, int(binary.BigEndian.Uint16(msg)))
	}
	slices.Sort(ids)
	for i, id := range ids {
		if id != i {
			t.Fatalf("answered ids %v", ids)
		}
	}
}

// Behaviour 24: malformed messages, and an ordinary one behind each.
func TestBehaviourMalformed(t *testing.T) {
	r := behaviourServer(t)
	q := new(dns.Msg)
	q.SetQuestion("www.example.org.", dns.TypeA)
	q.SetEdns0(1232, true)
	plain, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	header := func(counts ...byte) []byte {
		h := make([]byte, 12)
		for i, c := range counts {
			h[5+2*i] = c
		}
		return h
	}
	named := map[string][]byte{
		"pointer to itself":          append(header(1), 0xc0, 12, 0, 1, 0, 1),
		"pointer forwards":           append(header(1), 0xc0, 20, 0, 1, 0, 1, 0, 0, 0),
		"label of 64 octets":         append(append(append(header(1), 64), make([]byte, 64)...), 0, 0, 1, 0, 1),
		"name over 255 octets":       append(append(header(1), bytes.Repeat(append([]byte{63}, make([]byte, 63)...), 4)...), 0, 0, 1, 0, 1),
		"counts beyond the data":     append(header(1, 9, 9, 9), 0, 0, 1, 0, 1),
		"question cut":               append(header(1), 3, 'w', 'w'),
		"something behind the query": append(bytes.Clone(plain), 1, 2, 3),
	}
	for name, msg := range named {
		if got := r.raw(msg); got == nil || got[3]&15 != dns.RcodeFormatError {
			t.Errorf("%s: % x, want FORMERR", name, got)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		msg := bytes.Clone(plain)
		for range 1 + random.IntN(4) {
			msg[2+random.IntN(len(msg)-2)] = byte(random.IntN(256))
		}
		r.raw(msg[:random.IntN(len(msg)+1)])
	}
	if r.serial("example.org") != 1 {
		t.Error("no answer after them")
	}
}
