package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// stored is a response as a cache keeps it, and where its TTLs stand.
func stored(t testing.TB, fill func(b *Builder)) (msg, ttlAt []byte) {
	t.Helper()
	var b Builder
	b.Begin(ask(t, "\x03www\x07example\x00", TypeA), make([]byte, 8192))
	fill(&b)
	msg = b.End(NoError)
	var r Response
	r.Read(msg)
	for rec := (Record{}); r.Next(&rec); {
		ttlAt = binary.LittleEndian.AppendUint16(ttlAt, uint16(rec.RDATA-6))
	}
	return msg, ttlAt
}

// client is a query for the same name in other letters, with EDNS, begun in a
// buffer of that size.
func client(t testing.TB, size int) *Builder {
	t.Helper()
	b := new(Builder)
	b.Begin(parsed(t, header(FlagRD, 1, 0, 0, 1), question(mixedName, TypeA), opt("")), make([]byte, size))
	return b
}

func addresses(b *Builder) {
	set := rrset(TypeA, "1234", "5678")
	b.Add(Answer, Name("\x03www\x07example\x00"), set, nil)
	b.Add(Authority, Name("\x07example\x00"), &RRset{TypeNS, ClassIN, 40, 1, []byte("\x00\x0c\x02ns\x07example\x00")}, nil)
}

func TestReplay(t *testing.T) {
	msg, ttlAt := stored(t, addresses)
	for _, c := range []struct {
		name, rfc  string
		age, fixed uint32
		ttls       []uint32
	}{
		{"at once", "1035 §3.2.1", 0, 0, []uint32{300, 300, 40}},
		{"later", "1035 §3.2.1", 39, 0, []uint32{261, 261, 1}},
		{"not below zero", "1035 §3.2.1", 41, 0, []uint32{259, 259, 0}},
		{"very old", "1035 §3.2.1", 1<<32 - 1, 0, []uint32{0, 0, 0}},
		{"stale", "8767 §4", 500, 30, []uint32{30, 30, 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(msg)
			b := client(t, 4096)
			if !b.Replay(msg, ttlAt, c.age, c.fixed) || b.Truncated() {
				t.Fatalf("refused, truncated %v", b.Truncated())
			}
			m := unpack(t, b.End(NoError))
			var ttls []uint32
			for _, rr := range slices.Concat(m.Answer, m.Ns) {
				ttls = append(ttls, rr.Header().Ttl)
			}
			if !slices.Equal(ttls, c.ttls) {
				t.Errorf("RFC %s: TTLs are %v, want %v", c.rfc, ttls, c.ttls)
			}
			if got := m.Answer[0].Header().Name; got != "wWw.ExAmPlE." || m.Question[0].Name != got {
				t.Errorf("RFC 4343 §4.1: owner is %s, question %s", got, m.Question[0].Name)
			}
			if m.Id != 0xabcd || !bytes.Equal(before, msg) {
				t.Errorf("ID is %x; what was stored has changed: %v", m.Id, !bytes.Equal(before, msg))
			}
			if m = unpack(t, b.Fit(4096, 1232)); m.IsEdns0() == nil || m.Truncated {
				t.Errorf("fitted as %v", m)
			}
		})
	}
}

func TestReplayRefused(t *testing.T) {
	msg, ttlAt := stored(t, addresses)
	longer := new(Builder)
	longer.Begin(ask(t, "\x04wwww\x07example\x00", TypeA), make([]byte, 4096))
	added := client(t, 4096)
	added.Add(Answer, Name(mixedName), rrset(TypeA, "9999"), nil)
	for _, c := range []struct {
		name   string
		b      *Builder
		stored []byte
	}{
		{"a longer question", longer, msg},
		{"records before", added, msg},
		{"nothing stored", client(t, 4096), nil},
		{"a question that is cut", client(t, 4096), msg[:HeaderSize+16]},
	} {
		n := c.b.Len()
		if c.b.Replay(c.stored, ttlAt, 0, 0) || c.b.Len() != n {
			t.Errorf("%s: taken", c.name)
		}
	}
}

// A message that the buffer has no room for is not copied in part, and the client
// is told.
func TestReplayNoRoom(t *testing.T) {
	msg, ttlAt := stored(t, func(b *Builder) { b.Add(Answer, Name("\x03www\x07example\x00"), text(900), nil) })
	for room, want := range map[int]bool{len(msg) + optSize: false, len(msg) + optSize - 1: true} {
		b := client(t, room)
		if !b.Replay(msg, ttlAt, 0, 0) || b.Truncated() != want {
			t.Fatalf("room of %d: truncated %v", room, b.Truncated())
		}
		b.End(NoError)
		m := unpack(t, b.Fit(4096, 1232))
		if m.Truncated != want || len(m.Answer) == 0 != want || m.IsEdns0() == nil {
			t.Errorf("room of %d: sent as %v", room, m)
		}
	}
}

// What was replayed is cut as what was added is.
func TestReplayFit(t *testing.T) {
	owner := Name("\x03www\x07example\x00")
	for _, c := range []struct {
		name, rfc string
		fill      func(b *Builder)
		tc        bool
		counts    [4]uint16 // OPT is in the last
	}{
		{"all fits", "1035 §4.1.1", addresses, false, [4]uint16{1, 2, 1, 1}},
		{"the second RRset", "2181 §9", func(b *Builder) {
			b.Add(Answer, owner, text(200), nil)
			b.Add(Answer, owner[4:], text(400), nil)
		}, true, [4]uint16{1, 1, 0, 1}},
		{"an RRset without its signature is none", "4035 §3.1.1", func(b *Builder) { b.Add(Answer, owner, text(200), sig(300)) }, true, [4]uint16{1, 0, 0, 1}},
		{"additional data", "2181 §9", func(b *Builder) {
			b.Add(Answer, owner, text(200), nil)
			b.Add(Additional, owner, text(400), nil)
		}, false, [4]uint16{1, 1, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			msg, ttlAt := stored(t, c.fill)
			b := client(t, 4096)
			b.Replay(msg, ttlAt, 0, 0)
			b.End(NoError)
			got := b.Fit(512, 1232)
			m := unpack(t, got)
			var counts [4]uint16
			for i := range counts {
				counts[i] = binary.BigEndian.Uint16(got[4+2*i:])
			}
			if m.Truncated != c.tc || counts != c.counts || len(got) > 512 {
				t.Errorf("RFC %s: TC %v, counts %v, %d octets; want %v, %v", c.rfc, m.Truncated, counts, len(got), c.tc, c.counts)
			}
		})
	}
}

// A record that is added behind is compressed against the question, and nothing
// that an earlier response has left in the dictionary.
func TestReplayThenAdd(t *testing.T) {
	msg, ttlAt := stored(t, addresses)
	b := client(t, 4096)
	q := b.q
	b.Add(Answer, Name("\x05other\x07example\x00"), rrset(TypeA, "1111"), nil)
	b.Begin(q, b.buf)
	b.Replay(msg, ttlAt, 0, 0)
	for _, owner := range []string{"\x02ns\x07example\x00", "\x05other\x07example\x00", "\x02ns\x07example\x00"} {
		if !b.Add(Additional, Name(owner), rrset(TypeAAAA, "0123456789abcdef"), nil) {
			t.Fatal("not added")
		}
	}
	b.End(NoError)
	m := unpack(t, b.Fit(4096, 1232))
	var names []string
	for _, rr := range m.Extra[:3] {
		names = append(names, rr.Header().Name)
	}
	if want := []string{"ns.ExAmPlE.", "other.ExAmPlE.", "ns.ExAmPlE."}; !slices.Equal(names, want) || len(m.Answer) != 2 || len(m.Ns) != 1 {
		t.Errorf("added %q, want %q, in\n%v", names, want, m)
	}
}

func TestReplayAllocs(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	msg, ttlAt := stored(t, addresses)
	b := client(t, 4096)
	var c Checker
	var rec Record
	for name, run := range map[string]func(){
		"replay": func() { b.Begin(b.q, b.buf); b.Replay(msg, ttlAt, 1, 0); b.End(NoError); b.Fit(1232, 1232) },
		"check": func() {
			for c.Read(msg); c.Next(&rec); {
			}
		},
	} {
		if n := testing.AllocsPerRun(200, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if b.Count(Answer) != 2 || !c.Whole() {
		t.Error("nothing was measured")
	}
}

func TestChecker(t *testing.T) {
	q := question("\x03www\x07example\x00", TypeA)
	rr := func(owner string, typ uint16, rdata string) string {
		return string(record(owner, typ, ClassIN, 300, rdata))
	}
	const first = HeaderSize + 17 // where the first record stands
	for _, c := range []struct {
		name, rfc string
		records   []string
		ok        bool
	}{
		{"no records", "1035 §4.1.1", nil, true},
		{"pointers to the question", "1035 §4.1.4", []string{rr("\xc0\x0c", TypeA, "1234"), rr("\xc0\x10", TypeNS, "\xc0\x0c")}, true},
		{"a pointer to an owner", "1035 §4.1.4", []string{rr("\x01a\xc0\x10", TypeA, "1234"), rr("\xc0\x1d", TypeA, "1234")}, true},
		{"a pointer to a pointer", "1035 §4.1.4", []string{rr("\xc0\x0c", TypeA, "1234"), rr("\xc0\x1d", TypeA, "1234")}, true},
		{"a pointer to RDATA", "1035 §4.1.4", []string{rr("\xc0\x0c", TypeCNAME, "\x01b\xc0\x10"), rr("\xc0\x29", TypeA, "1234")}, true},
		{"the root", "1035 §3.1", []string{rr("\x00", TypeNS, "\x01b\x00"), rr("\xc0\x1d", TypeA, "1234")}, true},
		{"SRV compressed", "3597 §4", []string{rr("\xc0\x0c", TypeSRV, "123456\xc0\x0c")}, true},
		{"unknown type", "3597 §4", []string{rr("\xc0\x0c", 65280, "\xc0\xff")}, true},
		{"a pointer into the header", "1035 §4.1.4", []string{rr("\xc0\x04", TypeA, "1234")}, false},
		{"a pointer to itself", "9267 §2", []string{rr("\xc0\x1d", TypeA, "1234")}, false},
		{"a loop through a label", "9267 §2", []string{rr("\x01a\xc0\x1d", TypeA, "1234")}, false},
		{"a pointer forward", "9267 §2", []string{rr("\xc0\x40", TypeA, "1234"), rr("\xc0\x0c", TypeTXT, "\x0f\x01a\x00\x01a\x00\x01a\x00\x01a\x00\x01a\x00")}, false},
		{"a pointer into a label", "1035 §4.1.4", []string{rr("\x03\x01a\x00\x00", TypeA, "1234"), rr("\xc0\x1e", TypeA, "1234")}, false},
		{"a pointer into a TTL", "1035 §4.1.4", []string{"\xc0\x0c\x00\x01\x00\x01\x01a\x00\x00\x00\x041234", rr("\xc0\x23", TypeA, "1234")}, false},
		{"a pointer into RDATA of an unknown type", "3597 §4", []string{rr("\xc0\x0c", 65280, "\x01a\x00"), rr("\xc0\x29", TypeA, "1234")}, false},
		{"a reserved label", "1035 §4.1.4", []string{rr("\x41a\x00", TypeA, "1234")}, false},
		{"an address too short", "1035 §3.4.1", []string{rr("\xc0\x0c", TypeA, "123")}, false},
		{"an address too long", "3596 §2.2", []string{rr("\xc0\x0c", TypeAAAA, "0123456789abcdefg")}, false},
		{"a name behind RDATA", "1035 §3.3.1", []string{rr("\xc0\x0c", TypeCNAME, "\x01b"), rr("\xc0\x0c", TypeA, "1234")}, false},
		{"an octet behind the name", "1035 §3.3.1", []string{rr("\xc0\x0c", TypeCNAME, "\xc0\x0c!")}, false},
		{"SOA cut", "1035 §3.3.13", []string{rr("\xc0\x0c", TypeSOA, "\x00\x00"+string(make([]byte, 19)))}, false},
		{"a string cut", "1035 §3.3", []string{rr("\xc0\x0c", TypeTXT, "\x03ab")}, false},
		{"no string", "1035 §3.3.14", []string{rr("\xc0\x0c", TypeTXT, "")}, false},
		{"the longest name", "1035 §2.3.4", []string{rr(strings.Repeat("\x01a", 121)+"\xc0\x0c", TypeA, "1234")}, true},
		{"a name too long", "1035 §2.3.4", []string{rr(strings.Repeat("\x01a", 120)+"\x02aa\xc0\x0c", TypeA, "1234")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			msg := slices.Concat(header(FlagQR, 1, uint16(len(c.records))), q)
			if len(msg) != first {
				t.Fatalf("the first record stands at %d", len(msg))
			}
			for _, r := range c.records {
				msg = append(msg, r...)
			}
			var check Checker
			var rec Record
			ok := check.Read(msg)
			for ok && check.Next(&rec) {
			}
			if ok = ok && check.Whole(); ok != c.ok {
				t.Errorf("RFC %s: sound %v", c.rfc, ok)
			}
		})
	}
}

// A Checker knows nothing of the message before.
func TestCheckerAgain(t *testing.T) {
	q := question("\x03www\x07example\x00", TypeA)
	var c Checker
	var rec Record
	for _, m := range []struct {
		first []byte // the second points to its RDATA
		ok    bool
	}{
		{record("\xc0\x0c", TypeCNAME, 1, 300, "\x01b\x00"), true},
		{record("\xc0\x0c", TypeTXT, 1, 300, "\x01b\x00"), false},
		{record("\xc0\x0c", TypeNS, 1, 300, "\x01b\x00"), true},
	} {
		for c.Read(slices.Concat(header(FlagQR, 1, 2), q, m.first, record("\xc0\x29", TypeA, 1, 300, "1234"))); c.Next(&rec); {
		}
		if c.Whole() != m.ok {
			t.Errorf("behind %q it is whole: %v", m.first, c.Whole())
		}
	}
}

// FuzzChecker holds a Checker to what it promises: all names and RDATA of a sound
// message can be read, and neither other letters in the question nor other TTLs
// nor another header change anything but that.
func FuzzChecker(f *testing.F) {
	msg, _ := stored(f, addresses)
	f.Add(msg)
	f.Add(slices.Concat(header(FlagQR, 1, 2), question(mixedName, TypeA), record("\xc0\x0c", TypeCNAME, 1, 9, "\x01b\xc0\x10"), record("\xc0\x29", TypeSRV, 1, 9, "123456\xc0\x29")))
	f.Add(slices.Concat(header(FlagQR, 1, 1), question(mixedName, TypeA), record("\xc0\x0c", 35, 1, 9, "1234\x01a\x00\x01b\xc0\x0c")))
	f.Fuzz(func(t *testing.T, msg []byte) {
		first, ok := contents(t, msg)
		if !ok {
			return
		}
		other := slices.Clone(msg)
		copy(other, "\xff\xff\xff\xff")
		var r Response
		r.Read(msg)
		end := UncompressedEnd(msg, HeaderSize)
		copy(other[HeaderSize:], turned(Name(msg[HeaderSize:end])))
		for rec := (Record{}); r.Next(&rec); {
			copy(other[rec.RDATA-6:], "\x01a\x00\xff")
		}
		second, ok := contents(t, other)
		if !ok || len(first) != len(second) {
			t.Fatalf("%x is sound, %x is not", msg, other)
		}
		for i := range first {
			if !EqualFold(first[i], second[i]) {
				t.Errorf("%q has become %q", first[i], second[i])
			}
		}
	})
}

// contents is owners and RDATA of a message, where a Checker says that it is
// sound.
func contents(t *testing.T, msg []byte) (all [][]byte, ok bool) {
	t.Helper()
	var check Checker
	if !check.Read(msg) {
		return nil, false
	}
	var rec Record
	for check.Next(&rec) {
		owner, _, ok := ReadName(nil, msg, rec.Start)
		start, _, ok2 := ReadName(nil, msg, check.Owner)
		rdata, ok3 := rec.AppendRDATA(nil, msg)
		if !ok || !ok2 || !ok3 || !CheckRDATA(rec.Type, rdata) || !bytes.Equal(owner, start) || !check.Same(rec.Start, check.Owner) {
			t.Fatalf("record %+v of %x is not sound", rec, msg)
		}
		all = append(all, slices.Clone(owner), rdata)
	}
	if check.Whole() {
		var r Response
		for r.Read(msg); r.Next(&rec); {
		}
		if !r.Whole() {
			t.Fatalf("%x is not whole", msg)
		}
	}
	return all, check.Whole()
}

func BenchmarkReplay(b *testing.B) {
	msg, ttlAt := stored(b, addresses)
	c := client(b, 4096)
	b.ReportAllocs()
	for b.Loop() {
		c.Begin(c.q, c.buf)
		c.Replay(msg, ttlAt, 1, 0)
	}
}

func BenchmarkChecker(b *testing.B) {
	msg, _ := stored(b, addresses)
	var c Checker
	var rec Record
	b.ReportAllocs()
	for b.Loop() {
		for c.Read(msg); c.Next(&rec); {
		}
	}
}
