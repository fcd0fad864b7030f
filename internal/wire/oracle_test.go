package wire

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// tape deals out the octets of a fuzzer; behind their end are zeros.
type tape struct{ left []byte }

func (p *tape) octet() int {
	if len(p.left) == 0 {
		return 0
	}
	c := p.left[0]
	p.left = p.left[1:]
	return int(c)
}

func (p *tape) octets(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(p.octet())
	}
	return out
}

// words are the labels that names are made of: few, so that suffixes are shared,
// and of all lengths.
var words = []string{"a", "b", "www", "ns1", "ns2", "example", "EXAMPLE", "org", "net", "\x00", ".", strings.Repeat("x", MaxLabel)}

func (p *tape) name() Name {
	var n Name
	for range p.octet() % 7 {
		w := words[p.octet()%len(words)]
		if len(n)+len(w)+2 <= MaxName {
			n = append(append(n, byte(len(w))), w...)
		}
	}
	return append(n, 0)
}

// tapeTypes are types whose every RDATA of the right layout miekg/dns reads.
var tapeTypes = []uint16{TypeA, TypeNS, TypeCNAME, TypeSOA, TypePTR, TypeMX, TypeTXT, TypeAAAA, TypeSRV, TypeDNAME, TypeDS, TypeRRSIG, TypeDNSKEY, 3, 7, 13, 14, 17, 18, 21, 35, 36, 65280}

// rdata makes RDATA of that type from its layout.
func (p *tape) rdata(typ uint16) []byte {
	var rd []byte
	for _, c := range layout(typ) {
		switch c {
		case 'c', 'n':
			rd = append(rd, p.name()...)
		case 's', 't':
			n := p.octet() % 40
			rd = append(append(rd, byte(n)), p.octets(n)...)
		case '*':
			rd = append(rd, p.octets(1+p.octet()%60)...)
		default:
			rd = append(rd, p.octets(int(c-'0'))...)
		}
	}
	return rd
}

func (p *tape) set(typ uint16) *RRset {
	s := &RRset{Type: typ, Class: ClassIN, TTL: uint32(p.octet()), Count: 1 + p.octet()%4}
	for range s.Count {
		rd := p.rdata(typ)
		s.RDATA = append(binary.BigEndian.AppendUint16(s.RDATA, uint16(len(rd))), rd...)
	}
	return s
}

// added is one successful Add.
type added struct {
	section Section
	owner   Name
	sets    []*RRset
	end     int // of the message, behind it
}

// fill adds RRsets from p to b until the tape ends or most are in. Sections come
// in their order.
func (p *tape) fill(b *Builder, most int) (all []added) {
	section := Answer
	types := tapeTypes
	if p.octet()&1 == 0 {
		types = slices.DeleteFunc(slices.Clone(types), func(t uint16) bool { return strings.Contains(layout(t), "n") })
	}
	var last Name
	for len(p.left) > 0 && len(all) < most {
		control := p.octet()
		if control&0x80 != 0 && section < Additional {
			section++
		}
		owner := p.owner(b, control, last)
		a := added{section: section, owner: owner, sets: []*RRset{p.set(types[p.octet()%len(types)])}}
		var sigs *RRset
		if control&0x40 != 0 && a.sets[0].Type != TypeRRSIG && slices.Contains(types, TypeRRSIG) {
			sigs = p.set(TypeRRSIG)
			a.sets = append(a.sets, sigs)
		}
		before, count, full := b.Len(), b.Count(section), b.Truncated()
		last = owner
		if b.Add(section, owner, a.sets[0], sigs) {
			a.end = b.Len()
			all = append(all, a)
		} else if b.Len() != before || b.Count(section) != count || b.Truncated() != (full || section != Additional) {
			panic("a failed Add left something behind")
		}
	}
	return all
}

// owner is a name from the tape, the question's or an ancestor of it in the
// question's own memory, or the one before.
func (p *tape) owner(b *Builder, control int, last Name) Name {
	switch q := b.q.Name; control & 3 {
	case 0:
		return q
	case 1:
		return q[b.q.Suffixes.Off[:b.q.Suffixes.N+1][p.octet()%max(1, b.q.Suffixes.N)]:]
	case 2:
		if last != nil {
			return last
		}
	}
	return p.name()
}

// sameRecords compares one section as miekg/dns reads it with what was added.
func sameRecords(t *testing.T, section Section, got []dns.RR, all []added) {
	t.Helper()
	var want [][]byte
	for _, a := range all {
		if a.section != section {
			continue
		}
		for _, s := range a.sets {
			for rd := s.RDATA; len(rd) > 0; {
				size := 2 + int(binary.BigEndian.Uint16(rd))
				want = append(want, record(string(a.owner), s.Type, s.Class, s.TTL, string(rd[2:size])))
				rd = rd[size:]
			}
		}
	}
	if len(got) != len(want) {
		t.Fatalf("section %d has %d records, want %d", section, len(got), len(want))
	}
	for i, rr := range got {
		packed := make([]byte, MaxMessage)
		n, err := dns.PackRR(rr, packed, 0, nil, false)
		if err != nil {
			t.Fatalf("packing %v again: %v", rr, err)
		}
		if !EqualFold(packed[:n], want[i]) { // a pointer may lead to other letters
			t.Fatalf("record %d of section %d is\n%q, want\n%q", i, section, packed[:n], want[i])
		}
	}
}

// plain tells whether no RDATA holds a name that is not compressed: miekg/dns
// points to those too, which we do not.
func plain(all []added) bool {
	return !slices.ContainsFunc(all, func(a added) bool {
		return slices.ContainsFunc(a.sets, func(s *RRset) bool { return strings.Contains(layout(s.Type), "n") })
	})
}

// suffixes counts the different names and ancestors in all, letters folded.
func suffixes(q Name, all []added) int {
	seen := map[uint64]bool{}
	note := func(n Name) {
		var l Labels
		l.Scan(n)
		for _, h := range l.Hash[:l.N] {
			seen[h] = true
		}
	}
	note(q)
	for _, a := range all {
		note(a.owner)
		for _, s := range a.sets {
			skip, names := compressible(s.Type)
			for rd := s.RDATA; len(rd) > 0 && names > 0; {
				off := 2 + skip
				for range names {
					end := UncompressedEnd(rd, off)
					note(Name(rd[off:end]))
					off = end
				}
				rd = rd[2+int(binary.BigEndian.Uint16(rd)):]
			}
		}
	}
	return len(seen)
}

// compressedSize is how long miekg/dns makes the same message.
func compressedSize(t *testing.T, m *dns.Msg) int {
	t.Helper()
	m.Compress = true
	packed, err := m.Pack()
	if err != nil {
		t.Fatalf("packing again: %v", err)
	}
	return len(packed)
}

// unpack reads a message with miekg/dns and with our cursor, which must find the
// same and nothing left over.
func unpack(t *testing.T, msg []byte) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(msg); err != nil {
		t.Fatalf("miekg/dns does not read the message: %v\n%q", err, msg)
	}
	sameCursor(t, msg, m)
	return m
}

// sameCursor compares what our cursor finds with what miekg/dns found.
func sameCursor(t *testing.T, msg []byte, m *dns.Msg) {
	t.Helper()
	var r Response
	if !r.Read(msg) {
		t.Fatalf("the cursor does not read %q", msg)
	}
	var rec Record
	for s, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range section {
			if !r.Next(&rec) {
				t.Fatalf("the cursor ends before %v", rr)
			}
			h := rr.Header()
			owner, _, ok := ReadName(nil, msg, rec.Start) // miekg/dns follows pointers forwards too
			name, _ := ParseName(h.Name)
			if rec.Section != Section(s+1) || rec.Type != h.Rrtype || rec.Class != h.Class || rec.TTL != h.Ttl || rec.End-rec.RDATA != int(h.Rdlength) || ok && !slices.Equal(owner, name) {
				t.Fatalf("the cursor has %+v, owner %s; miekg/dns %v", rec, owner, rr)
			}
		}
	}
	if r.Next(&rec) || !r.Whole() {
		t.Fatalf("the cursor goes on behind the end, or is not at it")
	}
}
