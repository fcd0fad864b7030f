package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// header is a query's header with these flags and counts.
func header(flags uint16, counts ...uint16) []byte {
	h := binary.BigEndian.AppendUint16([]byte{0xab, 0xcd}, flags)
	for i := range 4 {
		n := uint16(0)
		if i < len(counts) {
			n = counts[i]
		}
		h = binary.BigEndian.AppendUint16(h, n)
	}
	return h
}

// question is a name in wire format with a type and class behind it.
func question(name string, typ uint16) []byte {
	return append([]byte(name), byte(typ>>8), byte(typ), 0, ClassIN)
}

// record is a whole record: owner in wire format, class and TTL as one gives them.
func record(owner string, typ, class uint16, ttl uint32, rdata string) []byte {
	b := binary.BigEndian.AppendUint16([]byte(owner), typ)
	b = binary.BigEndian.AppendUint16(b, class)
	b = binary.BigEndian.AppendUint32(b, ttl)
	b = binary.BigEndian.AppendUint16(b, uint16(len(rdata)))
	return append(b, rdata...)
}

// mixedName is a name with letters in both cases.
const mixedName = "\x03wWw\x07ExAmPlE\x00"

// opt is an OPT record that offers 1232 octets and has DO set.
func opt(options string) []byte { return record("\x00", TypeOPT, 1232, 0x8000, options) }

// longName is a well-formed name of size octets, of few labels.
func longName(size int) string {
	var b strings.Builder
	for ; size > 66; size -= 64 {
		b.WriteString("\x3f" + strings.Repeat("a", 63))
	}
	b.WriteByte(byte(size - 2))
	b.WriteString(strings.Repeat("b", size-2) + "\x00")
	return b.String()
}

// deepName is a name of that many labels of one octet.
func deepName(labels int) string { return strings.Repeat("\x01x", labels) + "\x00" }

func TestParse(t *testing.T) {
	q := question(mixedName, TypeA)
	one := slices.Concat(header(FlagRD, 1), q)
	tsig := record("\x03key\x00", TypeTSIG, ClassANY, 0, "\x00")
	soa := record("\xc0\x0c", TypeSOA, ClassIN, 0, "\x00\x00"+strings.Repeat("\x00", 20))
	for _, c := range []struct {
		name, rfc string
		msg       []byte
		want      error
	}{
		{"one question", "1035 §4.1.2", one, nil},
		{"empty", "1035 §4.1.1", nil, ErrShort},
		{"eleven octets", "1035 §4.1.1", make([]byte, 11), ErrShort},
		{"QR=1", "1035 §4.1.1", slices.Concat(header(FlagQR, 1), q), ErrResponse},
		{"QR=1 before any other fault", "1035 §4.1.1", header(FlagQR, 9), ErrResponse},
		{"no question", "9619 §4", header(0, 0), ErrFormat},
		{"two questions", "9619 §4", slices.Concat(header(0, 2), q, q), ErrFormat},
		{"one question of two", "9619 §4", slices.Concat(header(0, 1), q, q), ErrFormat},
		{"two questions, one there", "9619 §4", slices.Concat(header(0, 2), q), ErrFormat},
		{"other opcode", "1035 §4.1.1", slices.Concat(header(OpNotify<<opcodeShift, 1), q), nil},
		{"reserved bit", "1035 §4.1.1", slices.Concat(header(0x40, 1), q), nil},
		{"pointer in the question", "1035 §4.1.4", slices.Concat(header(0, 1), question("\x01a\xc0\x0c", TypeA)), ErrFormat},
		{"pointer as the question", "1035 §4.1.4", slices.Concat(header(0, 1), question("\xc0\x0c", TypeA)), ErrFormat},
		{"label type 0x40", "6891 §5", slices.Concat(header(0, 1), question("\x41a\x00", TypeA)), ErrFormat},
		{"label type 0x80", "6891 §5", slices.Concat(header(0, 1), question("\x81a\x00", TypeA)), ErrFormat},
		{"root", "1035 §3.1", slices.Concat(header(0, 1), question("\x00", TypeNS)), nil},
		{"name of 254 octets", "1035 §2.3.4", slices.Concat(header(0, 1), question(longName(254), TypeA)), nil},
		{"name of 255 octets", "1035 §2.3.4", slices.Concat(header(0, 1), question(longName(255), TypeA)), nil},
		{"name of 256 octets", "1035 §2.3.4", slices.Concat(header(0, 1), question(longName(256), TypeA)), ErrFormat},
		{"127 labels", "1035 §2.3.4", slices.Concat(header(0, 1), question(deepName(127), TypeA)), nil},
		{"128 labels", "1035 §2.3.4", slices.Concat(header(0, 1), question(deepName(128), TypeA)), ErrFormat},
		{"octet behind", "1035 §4.1", append(slices.Clone(one), 0), ErrFormat},
		{"OPT", "6891 §6.1.1", slices.Concat(header(0, 1, 0, 0, 1), q, opt("")), nil},
		{"octet behind OPT", "6891 §6.1.1", slices.Concat(header(0, 1, 0, 0, 1), q, opt(""), []byte{0}), ErrFormat},
		{"OPT twice", "6891 §6.1.1", slices.Concat(header(0, 1, 0, 0, 2), q, opt(""), opt("")), ErrFormat},
		{"OPT in the answer section", "6891 §6.1.1", slices.Concat(header(0, 1, 1), q, opt("")), ErrFormat},
		{"OPT in the authority section", "6891 §6.1.1", slices.Concat(header(0, 1, 0, 1), q, opt("")), ErrFormat},
		{"OPT not at the root", "6891 §6.1.2", slices.Concat(header(0, 1, 0, 0, 1), q, record("\x01a\x00", TypeOPT, 1232, 0, "")), ErrFormat},
		{"OPT at a pointer", "6891 §6.1.2", slices.Concat(header(0, 1, 0, 0, 1), q, record("\xc0\x0c", TypeOPT, 1232, 0, "")), ErrFormat},
		{"option longer than OPT", "6891 §6.1.2", slices.Concat(header(0, 1, 0, 0, 1), q, opt("\x00\x03\x00\x01")), ErrFormat},
		{"option head cut", "6891 §6.1.2", slices.Concat(header(0, 1, 0, 0, 1), q, opt("\x00\x03\x00\x00\x00\x03\x00")), ErrFormat},
		{"TSIG last", "8945 §5.1", slices.Concat(header(0, 1, 0, 0, 2), q, opt(""), tsig), nil},
		{"TSIG not last", "8945 §5.1", slices.Concat(header(0, 1, 0, 0, 2), q, tsig, opt("")), ErrFormat},
		{"TSIG twice", "8945 §5.1", slices.Concat(header(0, 1, 0, 0, 2), q, tsig, tsig), ErrFormat},
		{"TSIG in the answer section", "8945 §5.1", slices.Concat(header(0, 1, 1), q, tsig), ErrFormat},
		{"TSIG in the authority section", "8945 §5.1", slices.Concat(header(0, 1, 0, 1), q, tsig), ErrFormat},
		{"SOA of IXFR", "1995 §3", slices.Concat(header(0, 1, 0, 1), q, soa), nil},
		{"fewer records than counted", "1035 §4.1.1", slices.Concat(header(0, 1, 0, 2), q, soa), ErrFormat},
		{"65,535 records in each section", "1035 §4.1.1", slices.Concat(header(0, 1, 65535, 65535, 65535), q), ErrFormat},
	} {
		t.Run(c.name, func(t *testing.T) {
			var q Query
			if err := q.Parse(c.msg); !errors.Is(err, c.want) {
				t.Errorf("RFC %s: Parse: %v, want %v", c.rfc, err, c.want)
			}
		})
	}
}

func TestParseView(t *testing.T) {
	msg := slices.Concat(header(FlagRD|FlagCD, 1, 0, 0, 1), question(mixedName, TypeMX), opt("\x00\x0a\x00\x02hi\x00\x03\x00\x00"))
	var q Query
	if err := q.Parse(msg); err != nil {
		t.Fatal(err)
	}
	if string(q.Name) != mixedName || q.Type != TypeMX || q.Class != ClassIN || q.ID != 0xabcd || q.Flags != FlagRD|FlagCD {
		t.Errorf("parsed as %v %d %d, ID %x, flags %x", q.Name, q.Type, q.Class, q.ID, q.Flags)
	}
	if e := q.EDNS; !e.Present || !e.DO || e.Version != 0 || e.Size != 1232 {
		t.Errorf("EDNS is %+v", e)
	}
	if data, ok := q.EDNS.Option(OptCookie); !ok || string(data) != "hi" {
		t.Errorf("option 10 is %q, %v", data, ok)
	}
	if data, ok := q.EDNS.Option(OptNSID); !ok || len(data) != 0 {
		t.Errorf("option 3 is %q, %v", data, ok)
	}
	if _, ok := q.EDNS.Option(OptECS); ok {
		t.Error("option 8 is there")
	}
	if int(binary.BigEndian.Uint16(q.Msg[4:])) != 1 || q.Opcode() != OpQuery {
		t.Errorf("%d questions, opcode %d", int(binary.BigEndian.Uint16(q.Msg[4:])), q.Opcode())
	}
}

// Every message that a whole one begins with is malformed, and shorter than a
// header it is nothing at all.
func TestParseCut(t *testing.T) {
	msg := slices.Concat(header(0, 1, 0, 0, 2), question(mixedName, TypeA), opt("\x00\x0a\x00\x02hi"), record("\x03key\x00", TypeTSIG, ClassANY, 0, "abc"))
	var q Query
	if err := q.Parse(msg); err != nil {
		t.Fatal(err)
	}
	for n := range msg {
		want := ErrFormat
		if n < HeaderSize {
			want = ErrShort
		}
		if err := q.Parse(msg[:n:n]); !errors.Is(err, want) {
			t.Errorf("first %d octets of %d: %v, want %v", n, len(msg), err, want)
		}
	}
}

// A Query that is used again keeps nothing of the message before.
func TestParseAgain(t *testing.T) {
	full := slices.Concat(header(0, 1, 0, 0, 2), question(mixedName, TypeMX), opt("\x00\x0a\x00\x02hi"), record("\x03key\x00", TypeTSIG, ClassANY, 0, "abc"))
	var q Query
	if err := q.Parse(full); err != nil || q.TSIG == 0 {
		t.Fatalf("TSIG at %d, %v", q.TSIG, err)
	}
	if err := q.Parse(header(0, 0)); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
	if q.Name != nil || q.Type != 0 || q.Class != 0 || q.Hash != 0 || q.Suffixes.N != 0 || q.EDNS.Present || q.TSIG != 0 || q.end != HeaderSize {
		t.Errorf("kept %v %d %d %d labels, EDNS %v, TSIG %d, end %d", q.Name, q.Type, q.Class, q.Suffixes.N, q.EDNS.Present, q.TSIG, q.end)
	}
}

// FuzzQuery holds Parse against miekg/dns: what we accept, it reads the same.
func FuzzQuery(f *testing.F) {
	q := question(mixedName, TypeA)
	tsig := record("\x03key\x00", TypeTSIG, ClassANY, 0, "\x00")
	f.Add(slices.Concat(header(FlagRD, 1), q))
	f.Add(slices.Concat(header(0, 1), question("\x00", TypeNS)))
	f.Add(slices.Concat(header(0, 1), question(deepName(127), TypeA)))
	f.Add(slices.Concat(header(0, 1), question(longName(255), TypeA)))
	f.Add(slices.Concat(header(0, 1), question("\x01.\x02\\\x00\x00", TypeA)))
	f.Add(slices.Concat(header(0, 1, 0, 0, 1), q, opt("\x00\x0a\x00\x02hi\x00\x03\x00\x00")))
	f.Add(slices.Concat(header(0, 1, 0, 0, 2), q, opt("\xfd\xe9\x00\x00"), tsig))
	f.Add(slices.Concat(header(0, 1, 0, 1), q, record("\xc0\x0c", TypeSOA, ClassIN, 0, "\x00\x00"+strings.Repeat("\x00", 20))))
	f.Add(slices.Concat(header(0, 1, 0, 1), q, tsig))
	f.Fuzz(func(t *testing.T, msg []byte) {
		var q Query
		if len(msg) > MaxMessage || q.Parse(msg) != nil {
			return
		}
		sameQuestion(t, &q)
		sameOPT(t, &q)
		sameHashes(t, &q)
		sameRebased(t, &q)
	})
}

func sameQuestion(t *testing.T, q *Query) {
	t.Helper()
	only := slices.Concat(header(q.Flags, 1), q.Msg[HeaderSize:q.end])
	var m dns.Msg
	if err := m.Unpack(only); err != nil {
		t.Fatalf("miekg/dns does not read the question %q: %v", q.Name, err)
	}
	mq := m.Question[0]
	packed := make([]byte, MaxName)
	n, err := dns.PackDomainName(mq.Name, packed, 0, nil, false)
	if err != nil || !bytes.Equal(packed[:n], q.Name) || mq.Qtype != q.Type || mq.Qclass != q.Class {
		t.Fatalf("question is %q %d %d, miekg/dns has %+v (%v)", q.Name, q.Type, q.Class, mq, err)
	}
	if m.Opcode != q.Opcode() || m.RecursionDesired != (q.Flags&FlagRD != 0) || m.CheckingDisabled != (q.Flags&FlagCD != 0) {
		t.Fatalf("flags are %x, miekg/dns has %+v", q.Flags, m.MsgHdr)
	}
}

// sameOPT compares the OPT record. The codes of options are replaced by one that
// miekg/dns takes for opaque: what stands in them is not our business here.
func sameOPT(t *testing.T, q *Query) {
	t.Helper()
	e := &q.EDNS
	if !e.Present {
		return
	}
	var codes []uint16
	var data [][]byte
	options := slices.Clone(e.Options)
	for o := options; len(o) > 0; {
		n := int(binary.BigEndian.Uint16(o[2:]))
		codes, data = append(codes, binary.BigEndian.Uint16(o)), append(data, o[4:4+n])
		binary.BigEndian.PutUint16(o, dns.EDNS0LOCALSTART)
		o = o[4+n:]
	}
	ttl := uint32(e.Version) << 16
	if e.DO {
		ttl |= 0x8000
	}
	var m dns.Msg
	if err := m.Unpack(slices.Concat(header(0, 0, 0, 0, 1), record("\x00", TypeOPT, e.Size, ttl, string(options)))); err != nil {
		t.Fatalf("miekg/dns does not read OPT %+v: %v", e, err)
	}
	o := m.IsEdns0()
	if o.Do() != e.DO || o.Version() != e.Version || o.UDPSize() != e.Size || len(o.Option) != len(codes) {
		t.Fatalf("OPT is %+v, miekg/dns has %v", e, o)
	}
	for i, option := range o.Option {
		if local, ok := option.(*dns.EDNS0_LOCAL); !ok || !bytes.Equal(local.Data, data[i]) {
			t.Fatalf("option %d is %q, miekg/dns has %v", i, data[i], option)
		}
		if got, ok := e.Option(codes[i]); !ok || !bytes.Equal(got, data[slices.Index(codes, codes[i])]) {
			t.Fatalf("Option(%d) is %q, %v", codes[i], got, ok)
		}
	}
	if e.Present && !slices.Contains(codes, OptPadding) {
		if _, ok := e.Option(OptPadding); ok {
			t.Fatal("an option that is not there was found")
		}
	}
}

// sameHashes compares what the walk over the question noted with each ancestor
// looked at alone, with its letters turned.
func sameHashes(t *testing.T, q *Query) {
	t.Helper()
	l := &q.Suffixes
	if l.N != q.Name.Labels() || q.Hash != l.Hash[0] {
		t.Fatalf("%d labels in %q, hash %x and %x", l.N, q.Name, q.Hash, l.Hash[0])
	}
	off := 0
	for i := range l.N + 1 {
		if int(l.Off[i]) != off {
			t.Fatalf("label %d of %q noted at %d, stands at %d", i, q.Name, l.Off[i], off)
		}
		if h := HashName(turned(q.Name[off:])); h != l.Hash[i] {
			t.Fatalf("hash of %q is %x, as a suffix %x", q.Name[off:], h, l.Hash[i])
		}
		off += 1 + int(q.Name[off])
	}
}

// turned is n with upper case for lower case, and the other way round.
func turned(n Name) Name {
	out := slices.Clone(n)
	for i := 0; out[i] != 0; {
		label := out[i+1 : i+1+int(out[i])]
		i += 1 + len(label)
		for j, c := range label {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
				label[j] = c ^ 0x20
			}
		}
	}
	return out
}

// sameRebased compares the view of a copy, and of a copy of that.
func sameRebased(t *testing.T, q *Query) {
	t.Helper()
	before := *q
	name, options := slices.Clone(q.Name), slices.Clone(q.EDNS.Options)
	for range 2 {
		old := q.Msg
		q.Rebase(slices.Clone(old))
		for i := range old {
			if &old[0] != &before.Msg[0] { // not the fuzzer's
				old[i] = 0xff
			}
		}
		if !bytes.Equal(q.Msg, before.Msg) || !bytes.Equal(q.Name, name) || !bytes.Equal(q.EDNS.Options, options) {
			t.Fatalf("rebased to %q with options %q, want %q and %q", q.Name, q.EDNS.Options, name, options)
		}
		if &q.Name[0] != &q.Msg[HeaderSize] || cap(q.Name) != len(q.Name) {
			t.Fatal("the name is not a closed view of the copy")
		}
	}
	before.Msg, before.Name, before.EDNS.Options = q.Msg, q.Name, q.EDNS.Options
	if q.Hash != before.Hash || q.end != before.end || q.TSIG != before.TSIG || q.Suffixes != before.Suffixes || q.EDNS.Size != before.EDNS.Size {
		t.Fatal("Rebase changed more than the memory")
	}
}
