package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// response is a response to a query for mixedName with EDNS, ready for Fit.
func response(t *testing.T, fill func(b *Builder)) *Builder {
	t.Helper()
	b := new(Builder)
	b.Begin(parsed(t, header(FlagRD, 1, 0, 0, 1), question(mixedName, TypeA), opt("")), make([]byte, 4096))
	fill(b)
	b.End(NoError)
	return b
}

// text is a TXT RRset whose RDATA has size octets.
func text(size int) *RRset {
	var rd strings.Builder
	for size > 0 {
		n := min(size-1, 255)
		rd.WriteByte(byte(n))
		rd.WriteString(strings.Repeat("t", n))
		size -= n + 1
	}
	return rrset(TypeTXT, rd.String())
}

// sig is an RRSIG RRset of one record with size octets of RDATA.
func sig(size int) *RRset { return rrset(TypeRRSIG, string(make([]byte, size))) }

func TestFit(t *testing.T) {
	owner := Name(mixedName)
	ns := rrset(TypeNS, "\x02ns"+mixedName, "\x02ns\x05other\x00")
	glue, sibling := Name("\x02ns"+mixedName), Name("\x02ns\x05other\x00")
	for _, c := range []struct {
		name, rfc string
		fill      func(b *Builder)
		tc        bool
		counts    [4]uint16 // OPT is in the last
	}{
		{"all fits", "1035 §4.1.1", func(b *Builder) { b.Add(Answer, owner, rrset(TypeA, "1234"), nil) }, false, [4]uint16{1, 1, 0, 1}},
		{"not even the first RRset", "2181 §9", func(b *Builder) { b.Add(Answer, owner, text(600), nil) }, true, [4]uint16{1, 0, 0, 1}},
		{"the second RRset", "2181 §9", func(b *Builder) {
			b.Add(Answer, owner, text(200), nil)
			b.Add(Answer, owner[4:], text(200), nil)
			b.Add(Answer, owner[12:], text(200), nil)
		}, true, [4]uint16{1, 2, 0, 1}},
		{"half of an RRset is none", "2181 §9", func(b *Builder) {
			one := text(200).RDATA
			b.Add(Answer, owner, &RRset{TypeTXT, ClassIN, 1, 3, slices.Concat(one, one, one)}, nil)
		}, true, [4]uint16{1, 0, 0, 1}},
		{"an RRset without its signature is none", "4035 §3.1.1", func(b *Builder) { b.Add(Answer, owner, text(200), sig(300)) }, true, [4]uint16{1, 0, 0, 1}},
		{"authority", "2181 §9", func(b *Builder) {
			b.Add(Answer, owner, text(200), nil)
			b.Add(Authority, owner, text(300), nil)
		}, true, [4]uint16{1, 1, 0, 1}},
		{"additional data", "2181 §9", func(b *Builder) {
			b.Add(Answer, owner, text(200), nil)
			b.Add(Additional, owner, text(300), nil)
		}, false, [4]uint16{1, 1, 0, 1}},
		{"no records, but truncated before", "1035 §4.1.1", func(b *Builder) { b.Truncate() }, true, [4]uint16{1, 0, 0, 1}},
		{"all fits, but truncated before", "1035 §4.1.1", func(b *Builder) {
			b.Add(Answer, owner, rrset(TypeA, "1234"), nil)
			b.Truncate()
		}, true, [4]uint16{1, 1, 0, 1}},
		{"glue below the cut", "9471 §3.1", func(b *Builder) {
			b.Referral = true
			b.Add(Authority, owner, ns, nil)
			b.Add(Authority, owner, text(400), nil)
			b.Add(Additional, glue, rrset(TypeA, "1234", "1235", "1236", "1237", "1238"), nil)
		}, true, [4]uint16{1, 0, 3, 1}},
		{"glue below the cut, signed, that fits without its signature", "9471 §3.1", func(b *Builder) {
			b.Referral = true
			b.Add(Authority, owner, ns, nil)
			b.Add(Authority, owner, text(400), nil)
			b.Add(Additional, glue, rrset(TypeA, "1234"), sig(200))
		}, true, [4]uint16{1, 0, 3, 1}},
		{"glue of a sibling", "9471 §3.2", func(b *Builder) {
			b.Referral = true
			b.Add(Authority, owner, ns, nil)
			b.Add(Authority, owner, text(400), nil)
			b.Add(Additional, sibling, rrset(TypeA, "1234", "1235", "1236", "1237", "1238"), nil)
		}, false, [4]uint16{1, 0, 3, 1}},
		{"glue below the cut fits, that of a sibling does not", "9471 §3", func(b *Builder) {
			b.Referral = true
			b.Add(Authority, owner, ns, nil)
			b.Add(Authority, owner, text(400), nil)
			b.Add(Additional, glue, rrset(TypeA, "1234"), nil)
			b.Add(Additional, sibling, rrset(TypeA, "1234", "1235", "1236", "1237", "1238"), nil)
		}, false, [4]uint16{1, 0, 3, 2}},
		{"addresses of a response that is no referral", "9471 §3", func(b *Builder) {
			b.Add(Answer, owner, ns, nil)
			b.Add(Answer, owner, text(400), nil)
			b.Add(Additional, glue, rrset(TypeA, "1234", "1235", "1236", "1237", "1238"), nil)
		}, false, [4]uint16{1, 3, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := response(t, c.fill)
			got := b.Fit(512, 1232)
			m := unpack(t, got)
			var counts [4]uint16
			for i := range counts {
				counts[i] = binary.BigEndian.Uint16(got[4+2*i:])
			}
			if m.Truncated != c.tc || counts != c.counts || len(got) > 512 {
				t.Errorf("RFC %s: TC %v, counts %v, %d octets; want %v, %v", c.rfc, m.Truncated, counts, len(got), c.tc, c.counts)
			}
			if o := m.IsEdns0(); o == nil || !o.Do() || o.UDPSize() != 1232 || o.Version() != 0 {
				t.Errorf("RFC 6891 §6.1.2: OPT is %v", o)
			}
		})
	}
}

// The limit counts the whole message, OPT included, and not an octet less is used.
func TestFitLimit(t *testing.T) {
	for limit := 512; limit < 640; limit++ {
		b := response(t, func(b *Builder) { b.Add(Answer, Name(mixedName), text(500), nil) })
		whole := b.Len() + optSize
		m := unpack(t, b.Fit(limit, 1232))
		if fits := whole <= limit; m.Truncated == fits || len(m.Answer) == 1 != fits {
			t.Errorf("%d octets into %d: TC %v, %d records", whole, limit, m.Truncated, len(m.Answer))
		}
	}
}

func TestFitExtendedRcode(t *testing.T) {
	for _, rcode := range []Rcode{NoError, Refused, BadVers, 23, 4095} {
		b := response(t, func(*Builder) {})
		b.End(rcode)
		got := b.Fit(512, 1232)
		m := unpack(t, got)
		if m.Rcode != int(rcode)&15 && m.Rcode != int(rcode) || m.IsEdns0().ExtendedRcode()|m.Rcode&15 != int(rcode) {
			t.Errorf("RFC 6891 §6.1.3: code %v is written as %d with %d in OPT", rcode, m.Rcode, m.IsEdns0().ExtendedRcode())
		}
		if o := m.IsEdns0(); o.Version() != 0 {
			t.Errorf("RFC 6891 §6.1.3: version %d", o.Version())
		}
	}
}

func TestOption(t *testing.T) {
	var b Builder
	b.Begin(ask(t, mixedName, TypeA), make([]byte, 1024))
	if b.Option(OptNSID, nil) {
		t.Error("RFC 6891 §7: an option where the query had no OPT")
	}
	r := response(t, func(b *Builder) {
		if !b.Option(OptNSID, []byte("me")) || !b.Option(OptEDE, []byte("\x00\x04")) {
			t.Error("options are refused")
		}
		if b.Option(OptPadding, make([]byte, 512)) || !b.Option(OptPadding, make([]byte, 512-6-6-4)) || b.Option(OptPadding, nil) {
			t.Error("the room for options is not 512 octets")
		}
	})
	m := unpack(t, r.Fit(1232, 1232))
	o := m.IsEdns0()
	if len(o.Option) != 3 || o.Option[0].(*dns.EDNS0_NSID).Nsid != "6d65" || o.Option[1].(*dns.EDNS0_EDE).InfoCode != 4 {
		t.Errorf("RFC 5001 §2.3: options are %v", o.Option)
	}
}

// Options that come after the records still fit: records give way to them, and
// they themselves where not even the question fits beside them.
func TestOptionOverflow(t *testing.T) {
	b := response(t, func(b *Builder) {
		b.Add(Answer, Name(mixedName), text(400), nil)
		b.Option(OptNSID, make([]byte, 100))
	})
	if m := unpack(t, b.Fit(512, 1232)); !m.Truncated || len(m.IsEdns0().Option) != 1 {
		t.Errorf("TC %v, options %v", m.Truncated, m.IsEdns0().Option)
	}
	b = response(t, func(b *Builder) {
		b.Add(Answer, Name(mixedName), text(400), nil)
		b.Option(OptNSID, make([]byte, 500))
	})
	if m := unpack(t, b.Fit(512, 1232)); m.Truncated || len(m.IsEdns0().Option) != 0 || len(m.Answer) != 1 {
		t.Errorf("TC %v, options %v", m.Truncated, m.IsEdns0().Option)
	}
	// The smallest buffer, full to the last octet, and options after that.
	q := parsed(t, header(0, 1, 0, 0, 1), question(longName(255), TypeA), opt(""))
	small := make([]byte, MinBuffer)
	b.Begin(q, small)
	for b.Add(Additional, q.Name, rrset(TypeA, "1234"), nil) {
	}
	b.Option(OptNSID, make([]byte, 508))
	b.End(NoError)
	m := unpack(t, b.Fit(MaxMessage, 1232))
	if m.Truncated || len(m.IsEdns0().Option) != 1 || len(m.Extra) != 1 {
		t.Errorf("written as %v", m)
	}
}

// FuzzFit cuts responses of any kind to any limit.
func FuzzFit(f *testing.F) {
	f.Add([]byte("\x03\x02\x03\x05\x07"), uint16(512), byte(0))
	f.Add(bytes.Repeat([]byte("\x43\x02\x03\x05\x07\x01\x80\x05"), 30), uint16(700), byte(1))
	f.Add(bytes.Repeat([]byte("\x00\x01\x02\x80\x04\x05\x06\x07\x08"), 60), uint16(512), byte(7))
	f.Add(bytes.Repeat([]byte("\xc0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b"), 40), uint16(65535), byte(255))
	f.Fuzz(func(t *testing.T, data []byte, limit uint16, control byte) {
		if len(data) > 2048 {
			return
		}
		p, most := &tape{data}, max(512, int(limit))
		edns, referral := control&1 != 0, control&2 != 0
		msg := slices.Concat(header(0, 1), question(string(p.name()), TypeA))
		if edns {
			msg = slices.Concat(header(0, 1, 0, 0, 1), msg[HeaderSize:], opt(""))
		}
		q := parsed(t, msg)
		var b Builder
		b.Begin(q, make([]byte, MinBuffer+int(control)*64))
		b.Option(OptNSID, data[:min(len(data), int(control))])
		all := p.fill(&b, 1<<16)
		if control&4 != 0 {
			b.Truncate()
		}
		b.Referral = referral
		whole, before := slices.Clone(b.End(NXDomain)), b.Truncated()
		m := unpack(t, b.Fit(most, 1232))
		kept := cutFits(t, &cutCase{q: q, b: &b, whole: whole, got: b.buf[:b.n], most: most, all: all})
		checkTC(t, m, all, kept, before, referral)
		checkOPT(t, m, q, &b)
		if m.Rcode != int(NXDomain) {
			t.Fatalf("code %d", m.Rcode)
		}
	})
}

// cutCase is a whole response and what Fit made of it.
type cutCase struct {
	q          *Query
	b          *Builder
	whole, got []byte
	most       int
	all        []added
}

// cutFits checks that what is left is the front of the whole response, ends
// behind one Add, and is as much as fits. It returns how many are left.
func cutFits(t *testing.T, c *cutCase) (kept int) {
	t.Helper()
	reserve, end := 0, c.q.end
	if c.q.EDNS.Present {
		reserve = optSize + c.b.opts
	}
	left := len(c.got) - reserve
	for kept < len(c.all) && c.all[kept].end <= left {
		end = c.all[kept].end
		kept++
	}
	if end != left || len(c.got) > c.most || !bytes.Equal(c.got[HeaderSize:left], c.whole[HeaderSize:left]) {
		t.Fatalf("%d octets left of %d, limit %d, but an RRset ends at %d", left, len(c.whole), c.most, end)
	}
	if kept < len(c.all) && !joined(c.all, kept) && !joined(c.all, kept+1) && c.all[kept].end+reserve <= min(c.most, len(c.b.buf)) {
		t.Fatalf("RRset %d ends at %d and was cut, limit %d", kept, c.all[kept].end, c.most)
	}
	return kept
}

// joined tells whether Fit may take what was added as number i for more of the
// RRset before it.
func joined(all []added, i int) bool {
	if i == 0 || i >= len(all) {
		return false
	}
	a, b := all[i-1], all[i]
	last, first := a.sets[len(a.sets)-1].Type, b.sets[0].Type
	return a.section == b.section && EqualFold(a.owner, b.owner) && (first == last || first == TypeRRSIG)
}

// checkTC checks that TC is set where something that the client needs was cut or
// was missing before, and nowhere else.
func checkTC(t *testing.T, m *dns.Msg, all []added, kept int, before, referral bool) {
	t.Helper()
	var cut Name
	for _, a := range all {
		if a.section == Authority && a.sets[0].Type == TypeNS && cut == nil {
			cut = a.owner
		}
	}
	want := before
	for i, a := range all[kept:] {
		typ := a.sets[0].Type
		address := typ == TypeA || typ == TypeAAAA
		if a.section != Additional || referral && address && cut != nil && a.owner.Under(cut) && !joined(all, kept+i) {
			want = true
		}
	}
	if m.Truncated != want {
		t.Fatalf("TC is %v, want %v: %d of %d RRsets left", m.Truncated, want, kept, len(all))
	}
}

func checkOPT(t *testing.T, m *dns.Msg, q *Query, b *Builder) {
	t.Helper()
	o := m.IsEdns0()
	if (o != nil) != q.EDNS.Present {
		t.Fatalf("OPT is %v, that of the query %v", o, q.EDNS.Present)
	}
	if o != nil && (!o.Do() || o.UDPSize() != 1232 || b.opts > 0 != (len(o.Option) == 1)) {
		t.Fatalf("OPT is %v", o)
	}
}
