package cache

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

// FuzzPut puts in what an upstream may send. What is kept is replayed as a sound
// message with the records of the one that came, OPT left out, and DNSSEC records
// where they are not wanted: as miekg/dns reads both.
func FuzzPut(f *testing.F) {
	for _, c := range putCases {
		m := message(f, c.question, c.rcode, c.lines...)
		if c.change != nil {
			c.change(m)
		}
		msg, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(msg, false)
	}
	signed := message(f, "www.example. MX", 0, "www.example. 300 IN MX 5 a.example.", "www.example. 300 IN"+rrsig, ";; additional", "a.example. 300 IN A 192.0.2.1", "a.example. 300 IN"+rrsig)
	signed.SetEdns0(1232, true)
	slices.Reverse(signed.Extra)
	msg, err := signed.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(msg, true)
	c := open(f, Config{Size: MinSize, MinTTL: second})
	f.Fuzz(func(t *testing.T, msg []byte, turn bool) {
		a := newAsker(t, c)
		end := -1
		if len(msg) > wire.HeaderSize {
			end = wire.UncompressedEnd(msg, wire.HeaderSize)
		}
		if end < 0 || end+4 > len(msg) {
			if k := a.ask("www.example. A"); c.Put(k, msg, 0, 0) != Malformed {
				t.Errorf("%x was kept", msg)
			}
			return
		}
		question := append([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, msg[wire.HeaderSize:end+4]...)
		if turn { // the client writes letters the other way
			for i, c := range question[wire.HeaderSize : end-1] {
				if 'a' <= c|0x20 && c|0x20 <= 'z' {
					question[wire.HeaderSize+i] ^= 0x20
				}
			}
		}
		a.raw(question)
		before := slices.Clone(msg)
		stored := c.Put(&a.key, msg, 0, 0)
		if !slices.Equal(before, msg) {
			t.Error("Put wrote to the message")
		}
		if stored == Kept {
			replays(t, a, msg)
		}
		c.Flush(a.key.Name)
	})
}

// replays compares what is replayed with the response that came.
func replays(t *testing.T, a *asker, msg []byte) {
	t.Helper()
	var m dns.Msg
	readable := m.Unpack(msg) == nil
	for _, dnssec := range []bool{true, false} {
		a.reply.Begin(&a.query, a.buf)
		if hit := a.cache.Get(&a.key, 0, &a.reply, dnssec); hit.Verdict != Fresh {
			t.Fatalf("kept, but then %+v", hit)
		}
		got := a.reply.End(wire.NoError)
		sound(t, got)
		if !readable {
			continue
		}
		var replayed dns.Msg
		if err := replayed.Unpack(got); err != nil {
			t.Fatalf("replayed %x, which cannot be unpacked: %v", got, err)
		}
		if m.Rcode == dns.RcodeServerFailure {
			if lines(&replayed) != "" {
				t.Errorf("RFC 9520 §3.2: SERVFAIL has records: %v", &replayed)
			}
			continue
		}
		want := m.Copy()
		for _, s := range []*[]dns.RR{&want.Answer, &want.Ns, &want.Extra} {
			*s = slices.DeleteFunc(*s, func(rr dns.RR) bool { return extra(rr.Header().Rrtype, a.key.Type, dnssec) })
		}
		if w, g := leveled(want), leveled(&replayed); !strings.EqualFold(w, g) {
			t.Errorf("with DNSSEC %v replayed\n%s\nwant\n%s", dnssec, g, w)
		}
	}
}

// extra tells whether a client does not get records of a type.
func extra(typ, qtype uint16, dnssec bool) bool {
	switch typ {
	case dns.TypeOPT:
		return true
	case dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3:
		return !dnssec && typ != qtype && qtype != dns.TypeANY
	}
	return false
}

// leveled is the records of a message as text, all with TTL 0.
func leveled(m *dns.Msg) string {
	for _, s := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range s {
			rr.Header().Ttl = 0
		}
	}
	return lines(m)
}
