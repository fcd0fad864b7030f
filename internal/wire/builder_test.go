package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/miekg/dns"
)

// rrset is an RRset of type typ with these RDATA.
func rrset(typ uint16, rdata ...string) *RRset {
	s := &RRset{Type: typ, Class: ClassIN, TTL: 300, Count: len(rdata)}
	for _, rd := range rdata {
		s.RDATA = append(binary.BigEndian.AppendUint16(s.RDATA, uint16(len(rd))), rd...)
	}
	return s
}

// parsed is the query msg.
func parsed(t testing.TB, msg ...[]byte) *Query {
	t.Helper()
	q := new(Query)
	if err := q.Parse(slices.Concat(msg...)); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestHeader(t *testing.T) {
	for _, c := range []struct {
		name, rfc  string
		query, set uint16 // flags of the query, of the Builder
		rcode      Rcode
		want       uint16
	}{
		{"nothing", "1035 §4.1.1", 0, 0, NoError, FlagQR},
		{"RD is copied", "1035 §4.1.1", FlagRD, 0, NoError, FlagQR | FlagRD},
		{"CD is not copied", "4035 §3.1.6", FlagCD, 0, NoError, FlagQR},
		{"AA, TC, RA, AD and Z are not", "1035 §4.1.1, 4035 §3.1.6", FlagAA | FlagTC | FlagRA | FlagAD | 0x40, 0, NoError, FlagQR},
		{"the opcode is", "1035 §4.1.1", OpNotify << opcodeShift, 0, NotImp, FlagQR | OpNotify<<opcodeShift | 4},
		{"the code of the query is not", "1035 §4.1.1", 15, 0, NXDomain, FlagQR | 3},
		{"flags of the response", "1035 §4.1.1", FlagRD, FlagAA | FlagRA, NXDomain, FlagQR | FlagAA | FlagRD | FlagRA | 3},
		{"every bit", "1035 §4.1.1", 0x7fff, 0, NoError, FlagQR | opcodeMask | FlagRD},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := parsed(t, header(c.query, 1), question(mixedName, TypeA))
			var b Builder
			b.Begin(q, make([]byte, 1024))
			b.Flags |= c.set
			msg := b.End(c.rcode)
			if got := binary.BigEndian.Uint16(msg[2:]); got != c.want {
				t.Errorf("RFC %s: flags are %016b, want %016b", c.rfc, got, c.want)
			}
			if binary.BigEndian.Uint16(msg) != 0xabcd || b.Rcode() != c.rcode {
				t.Errorf("ID is %x, code %v", msg[:2], b.Rcode())
			}
			if want := slices.Concat([]byte{0, 1, 0, 0, 0, 0, 0, 0}, question(mixedName, TypeA)); !bytes.Equal(msg[4:], want) {
				t.Errorf("question, letters as they came: %q, want %q", msg[4:], want)
			}
			if fit := b.Fit(512, 1232); !bytes.Equal(fit, msg) {
				t.Errorf("Fit changed it to %q", fit)
			}
		})
	}
}

// A response to a query whose question could not be read has none.
func TestBeginWithoutQuestion(t *testing.T) {
	var q Query
	_ = q.Parse(slices.Concat(header(FlagRD, 2), question(mixedName, TypeA), question(mixedName, TypeA)))
	var b Builder
	b.Begin(&q, make([]byte, MinBuffer))
	b.End(FormErr)
	if got := b.Fit(512, 1232); !bytes.Equal(got, append([]byte{0xab, 0xcd, 0x81, 0x01}, make([]byte, 8)...)) {
		t.Errorf("response is %q", got)
	}
}

func TestCompression(t *testing.T) {
	q := ask(t, mixedName, TypeMX)
	sub := Name("\x01a" + mixedName)
	for _, c := range []struct {
		name string
		add  func(b *Builder)
		want string // behind the question
	}{
		{"the question's name", func(b *Builder) { b.Add(Answer, q.Name, rrset(TypeA, "1234"), nil) },
			"\xc0\x0c" + string(record("", TypeA, 1, 300, "1234"))},
		{"its parent", func(b *Builder) { b.Add(Answer, q.Name[4:], rrset(TypeA, "1234"), nil) },
			"\xc0\x10" + string(record("", TypeA, 1, 300, "1234"))},
		{"the same name in other memory and letters", func(b *Builder) {
			b.Add(Answer, Name("\x03www\x07example\x00"), rrset(TypeA, "1234"), nil)
		}, "\xc0\x0c" + string(record("", TypeA, 1, 300, "1234"))},
		{"two records", func(b *Builder) { b.Add(Answer, sub, rrset(TypeA, "1234", "5678"), nil) },
			"\x01a\xc0\x0c" + string(record("", TypeA, 1, 300, "1234")) + "\xc0\x1d" + string(record("", TypeA, 1, 300, "5678"))},
		{"the root", func(b *Builder) { b.Add(Answer, Root, rrset(TypeA, "1234", "5678"), nil) },
			string(record("\x00", TypeA, 1, 300, "1234")) + string(record("\x00", TypeA, 1, 300, "5678"))},
		{"MX, 3597 §4", func(b *Builder) { b.Add(Answer, q.Name, rrset(TypeMX, "\x00\x0a"+string(sub)), nil) },
			"\xc0\x0c" + string(record("", TypeMX, 1, 300, "\x00\x0a\x01a\xc0\x0c"))},
		{"SRV is not compressed, 2782", func(b *Builder) { b.Add(Answer, q.Name, rrset(TypeSRV, "123456"+string(sub)), nil) },
			"\xc0\x0c" + string(record("", TypeSRV, 1, 300, "123456"+string(sub)))},
		{"no records", func(b *Builder) { b.Add(Answer, q.Name, rrset(TypeA), nil) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Builder
			b.Begin(q, make([]byte, 1024))
			c.add(&b)
			if got := b.End(NoError)[q.end:]; string(got) != c.want {
				t.Errorf("written\n%q, want\n%q", got, c.want)
			}
		})
	}
}

// An RRset that compression makes short enough is taken, however long it would be
// uncompressed: a response that would fit must not be cut.
func TestCompressedFits(t *testing.T) {
	var rdata []string
	for i := range 40 {
		rdata = append(rdata, fmt.Sprintf("\x00\x0a\x04mx%02d", i)+longName(200))
	}
	q := ask(t, longName(200), TypeMX)
	var b Builder
	b.Begin(q, make([]byte, 1400))
	if !b.Add(Answer, q.Name, rrset(TypeMX, rdata...), nil) {
		t.Fatal("40 MX records of 21 octets each do not fit into 1400 octets")
	}
	if msg := b.End(NoError); len(unpack(t, msg).Answer) != 40 {
		t.Error("records are missing")
	}
}

// A failed Add leaves no trace, not in what later names are pointed at either.
func TestAddFails(t *testing.T) {
	q := ask(t, mixedName, TypeA)
	var b Builder
	b.Begin(q, make([]byte, MinBuffer))
	big := rrset(TypeNS, "\x03ns1\x03net\x00", "\x03ns2\x03net\x00")
	sigs := rrset(TypeRRSIG, longName(250)[:0]+string(make([]byte, 18))+"\x00"+string(make([]byte, 1000)))
	if b.Add(Additional, Name("\x05other\x03net\x00"), big, sigs) {
		t.Fatal("it was taken")
	}
	if b.Truncated() || b.Len() != q.end || b.Count(Additional) != 0 {
		t.Errorf("truncated %v, %d octets, %d records", b.Truncated(), b.Len(), b.Count(Additional))
	}
	if !b.Add(Additional, Name("\x03ns2\x03net\x00"), big, nil) {
		t.Fatal("what fits is not taken")
	}
	m := unpack(t, b.End(NoError))
	if len(m.Extra) != 2 || m.Extra[0].Header().Name != "ns2.net." || m.Extra[0].(*dns.NS).Ns != "ns1.net." || m.Extra[1].(*dns.NS).Ns != "ns2.net." {
		t.Errorf("written as %v", m.Extra)
	}
	if b.Add(Answer, q.Name, sigs, nil) || !b.Truncated() {
		t.Error("an answer that does not fit is not told")
	}
	if b.Add(Additional, q.Name, rrset(TypeA, "1234"), nil) {
		t.Error("something was taken behind what did not fit")
	}
}

// Slots of a generation long ago must not look filled when the generations have
// come round.
func TestGenerationsComeRound(t *testing.T) {
	q := ask(t, mixedName, TypeA)
	owner, buf := Name("\x05other\x03net\x00"), make([]byte, 1024)
	var b Builder
	add := func(owner Name) string { // over what was written before
		b.Begin(q, buf)
		b.Add(Answer, owner, rrset(TypeA, "1234"), nil)
		return string(b.End(NoError))
	}
	want := add(owner)
	b.dict.gen = ^uint32(0)
	add(Name("\x03www\x07example\x00")) // which the question has
	copy(buf, want)
	for range 3 {
		if got := add(owner); got != want {
			t.Fatalf("written %q, want %q", got, want)
		}
	}
}

// Names beyond the reach of a pointer are written out, and nothing points to them.
func TestBeyondPointers(t *testing.T) {
	q := ask(t, mixedName, TypeTXT)
	var b Builder
	b.Begin(q, make([]byte, MaxMessage))
	text := "\xff" + string(bytes.Repeat([]byte{'x'}, 255))
	var all []added
	for i := 0; ; i++ {
		owner := Name(fmt.Sprintf("\x05n%04d\x05other\x03net\x00", i))
		a := added{Answer, owner, []*RRset{rrset(TypeTXT, text), rrset(TypeRRSIG, string(make([]byte, 18))+"\x03net\x00sig")}, 0}
		if i%2 == 0 {
			a.sets[0] = rrset(TypeMX, "\x00\x01"+string(owner), "\x00\x02\x02mx"+string(owner), "\x00\x02"+string(q.Name))
		}
		if !b.Add(Answer, owner, a.sets[0], a.sets[1]) {
			break
		}
		all = append(all, a)
	}
	msg := b.End(NoError)
	if len(msg) < MaxMessage-400 {
		t.Errorf("only %d octets were taken", len(msg))
	}
	m := unpack(t, msg)
	sameRecords(t, Answer, m.Answer, all)
}

// What compression costs is bounded: more names than the dictionary takes are
// written out, as are all of one label too many.
func TestDictionaryFull(t *testing.T) {
	q := ask(t, mixedName, TypeNS)
	var b Builder
	b.Begin(q, make([]byte, MaxMessage))
	var all []added
	for i := range 400 {
		a := added{Answer, Name(fmt.Sprintf("\x04%04d\x00", i)), []*RRset{rrset(TypeNS, deepName(127), fmt.Sprintf("\x04%04d\x03www\x07example\x00", i))}, 0}
		if !b.Add(Answer, a.owner, a.sets[0], nil) {
			t.Fatal("full")
		}
		all = append(all, a)
	}
	if b.dict.used != dictSize {
		t.Errorf("%d entries, want %d", b.dict.used, dictSize)
	}
	sameRecords(t, Answer, unpack(t, b.End(NoError)).Answer, all)
}

// FuzzBuilder writes RRsets of any kind and has miekg/dns read them.
func FuzzBuilder(f *testing.F) {
	f.Add([]byte("\x03\x02\x03\x05\x07"), uint16(0))
	f.Add(bytes.Repeat([]byte("\x43\x02\x03\x05\x07\x01\x80\x05"), 60), uint16(0x8fff))
	f.Add(bytes.Repeat([]byte("\x02\x06\x02\x03\x04\x05\x06\x07\x08"), 500), uint16(0xffff))
	f.Add(bytes.Repeat([]byte("\xc0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b"), 40), uint16(1300))
	f.Fuzz(func(t *testing.T, data []byte, size uint16) {
		p := &tape{data}
		q := ask(t, string(p.name()), TypeA)
		buf := make([]byte, max(MinBuffer, int(size)))
		var b Builder
		for range 2 { // the second time with a dictionary that was used
			b.Begin(q, buf)
			p.left = data
			all := p.fill(&b, 1<<16)
			msg := b.End(NoError)
			m := unpack(t, msg)
			for s, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
				sameRecords(t, Section(s+1), section, all)
			}
			if plain(all) && suffixes(q.Name, all) < dictSize {
				if most := compressedSize(t, m); len(msg) > most {
					t.Fatalf("%d octets, miekg/dns needs %d\n%v", len(msg), most, m)
				}
			}
		}
	})
}
