package wire

import (
	"slices"
	"testing"

	"github.com/miekg/dns"
)

func TestResponseMalformed(t *testing.T) {
	q := question(mixedName, TypeA)
	rr := record("\xc0\x0c", TypeA, ClassIN, 1, "1234")
	whole := slices.Concat(header(FlagQR, 1, 1, 0, 1), q, rr, rr)
	for _, c := range []struct {
		name    string
		msg     []byte
		read    bool
		records int
		whole   bool
	}{
		{"whole", whole, true, 2, true},
		{"octet behind", append(slices.Clone(whole), 0), true, 2, false},
		{"no questions, 5936 §2.2.1", slices.Concat(header(FlagQR, 0, 1), record("\x00", TypeA, ClassIN, 1, "1234")), true, 1, true},
		{"two questions", slices.Concat(header(FlagQR, 2, 1), q, q, rr), true, 1, true},
		{"header cut", whole[:11], false, 0, false},
		{"question cut", whole[:20], false, 0, false},
		{"type of the question cut", whole[:HeaderSize+len(q)-1], false, 0, false},
		{"owner cut", whole[:HeaderSize+len(q)+1], true, 0, false},
		{"head cut", whole[:HeaderSize+len(q)+11], true, 0, false},
		{"RDATA cut", whole[:len(whole)-1], true, 1, false},
		{"a record missing", whole[:len(whole)-len(rr)], true, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Response
			if ok := r.Read(slices.Clip(c.msg)); ok != c.read {
				t.Errorf("Read is %v", ok)
			}
			var rec Record
			n := 0
			for r.Next(&rec) {
				n++
			}
			if n != c.records || r.Whole() != c.whole || r.Next(&rec) {
				t.Errorf("%d records, whole %v; want %d, %v", n, r.Whole(), c.records, c.whole)
			}
		})
	}
}

// FuzzResponse holds the cursor against miekg/dns: a message that both read
// whole has the same records.
func FuzzResponse(f *testing.F) {
	q := question(mixedName, TypeA)
	rr := record("\xc0\x0c", TypeA, ClassIN, 1, "1234")
	f.Add(slices.Concat(header(FlagQR, 1, 1, 0, 1), q, rr, opt("")))
	f.Add(slices.Concat(header(FlagQR, 0, 1, 1, 1), record("\x00", TypeNS, ClassIN, 1, "\x01a\x00"), record("\xc0\x16", TypeNS, ClassIN, 1, "\xc0\x16"), rr))
	f.Add(header(FlagQR, 0))
	f.Add(slices.Concat(header(FlagQR, 2, 1), q, q, rr, []byte{0}))
	f.Fuzz(func(t *testing.T, msg []byte) {
		if len(msg) > MaxMessage {
			return
		}
		var r Response
		var rec Record
		read, n := r.Read(msg), 0
		for last := 0; r.Next(&rec); n++ {
			if rec.Section < Answer || rec.Section > Additional || rec.Start < last || rec.RDATA < rec.Start+11 || rec.End < rec.RDATA || rec.End > len(msg) {
				t.Fatalf("record %d is %+v, the one before ended at %d", n, rec, last)
			}
			last = rec.End
		}
		var m dns.Msg
		if m.Unpack(msg) != nil {
			return
		}
		counted := r.end[Additional]
		if found := len(m.Answer) + len(m.Ns) + len(m.Extra); read && (found != counted || !r.Whole()) {
			if found == counted && n != counted {
				t.Fatalf("%d records, miekg/dns reads %d", n, found)
			}
			return // cut, or something behind: it reads both
		}
		if read {
			sameCursor(t, msg, &m)
		}
	})
}
