package serve

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

// query is a query for wWw.example TXT with this header behind the ID, and an
// OPT record that offers size octets unless that is 0.
func query(flags, questions, size uint16) []byte {
	msg := binary.BigEndian.AppendUint16([]byte{0xab, 0xcd}, flags)
	msg = binary.BigEndian.AppendUint16(msg, questions)
	msg = append(msg, 0, 0, 0, 0, 0, 0)
	msg = append(msg, "\x03wWw\x07example\x00\x00\x10\x00\x01"...)
	if size > 0 {
		msg[11] = 1
		msg = append(msg, 0, 0, wire.TypeOPT, byte(size>>8), byte(size), 0, 0, 0x80, 0, 0, 14)
		msg = append(msg, "\x00\x0c\x00\x0a\x00\x08clientco"...)
	}
	return msg
}

func newRequest(p Proto) *Request { return &Request{Peer: &Peer{Proto: p}} }

func TestReceive(t *testing.T) {
	for _, c := range []struct {
		name, rfc string
		msg       []byte
		want      Received
		rcode     int
		questions int
	}{
		{"query", "1035 §4.1", query(wire.FlagRD, 1, 0), Query, 0, 1},
		{"query with OPT", "6891 §6.1", query(wire.FlagRD, 1, 1232), Query, 0, 1},
		{"other opcode, well formed", "8906 §3.1.4", query(wire.OpUpdate<<11, 1, 0), Query, 0, 1},
		{"nothing", "1035 §4.1.1", nil, Short, 0, 0},
		{"less than a header", "1035 §4.1.1", query(0, 1, 0)[:11], Short, 0, 0},
		{"response", "1035 §4.1.1", query(wire.FlagQR, 1, 0), Reply, 0, 0},
		{"malformed response", "1035 §4.1.1", query(wire.FlagQR, 7, 0), Reply, 0, 0},
		{"header alone", "9619 §4", query(wire.FlagRD, 0, 0)[:12], Answered, dns.RcodeFormatError, 0},
		{"two questions", "9619 §4", query(wire.FlagRD, 2, 0), Answered, dns.RcodeFormatError, 0},
		{"question cut", "1035 §4.1.2", query(wire.FlagRD, 1, 0)[:20], Answered, dns.RcodeFormatError, 0},
		{"garbage behind the question", "1035 §4.1", append(query(wire.FlagRD, 1, 0), "garbage"...), Answered, dns.RcodeFormatError, 1},
		{"OPT cut", "6891 §6.1.2", query(wire.FlagRD, 1, 1232)[:40], Answered, dns.RcodeFormatError, 1},
		{"malformed, of an opcode whose form we do not know", "8906 §3.1.4", query(3<<11, 0, 0)[:12], Answered, dns.RcodeNotImplemented, 0},
		{"malformed UPDATE", "8906 §3.1.4", query(wire.OpUpdate<<11, 3, 0), Answered, dns.RcodeNotImplemented, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRequest(UDP)
			got := r.Receive(c.msg, make([]byte, 1024))
			if got != c.want {
				t.Fatalf("RFC %s: received as %d, want %d", c.rfc, got, c.want)
			}
			if got == Query {
				if r.Ask.Name.String() != "wWw.example." || r.Ask.Type != wire.TypeTXT || r.Ask.Class != wire.ClassIN || r.Ask.Labels.N != 2 || r.Out != nil || r.Note.Source != SourceNone {
					t.Errorf("Ask is %+v, note %+v", r.Ask, r.Note)
				}
				return
			}
			if got != Answered {
				return
			}
			var m dns.Msg
			if err := m.Unpack(r.Fit(1232)); err != nil {
				t.Fatal(err)
			}
			if m.Rcode != c.rcode || len(m.Question) != c.questions || m.Id != 0xabcd || !m.Response || m.IsEdns0() != nil {
				t.Errorf("RFC %s: answered with %v", c.rfc, &m)
			}
			if r.Note.Source != SourceError || int(r.Note.Rcode) != c.rcode || int(r.Note.Size) != len(r.Out) || r.Note.Flags != binary.BigEndian.Uint16(r.Out[2:]) {
				t.Errorf("note is %+v", r.Note)
			}
		})
	}
}

// A Request is used again: nothing of the query before is left.
func TestReceiveAgain(t *testing.T) {
	r, out := newRequest(UDP), make([]byte, 1024)
	r.Receive(query(0, 1, 1232), out)
	r.Policy.Rule, r.Policy.Depth, r.Policy.Program = 3, 2, 1
	r.Note = Note{Source: SourceZone, EDE: 3, Zone: 4, Rule: 5}
	r.Finish(wire.NXDomain)
	r.Fit(1232)
	if got := r.Receive(query(0, 1, 0), out); got != Query {
		t.Fatalf("received as %d", got)
	}
	if r.Policy.Rule != 0 || r.Policy.Depth != 0 || r.Policy.Program != 0 || r.Note != (Note{}) || r.Out != nil || r.EDNS.Present || r.Ask.DO || r.Reply.Rcode() != wire.NoError {
		t.Errorf("left: cursor at %d of %d, note %+v, EDNS %+v", r.Policy.Rule, r.Policy.Program, r.Note, r.EDNS)
	}
}

// big is a TXT RRset of so many records of 250 octets of RDATA each.
func big(records int) *wire.RRset {
	rd := append([]byte{0, 250, 249}, bytes.Repeat([]byte{'x'}, 249)...)
	return &wire.RRset{Type: wire.TypeTXT, Class: wire.ClassIN, Count: records, RDATA: slices.Repeat(rd, records)}
}

func TestFitLimits(t *testing.T) {
	for _, c := range []struct {
		name, rfc string
		proto     Proto
		size      uint16 // of the query's OPT record
		udp       uint16 // of ours
		want      int    // octets at most
	}{
		{"no OPT", "1035 §4.2.1", UDP, 0, 1232, 512},
		{"OPT of less than 512", "6891 §6.2.3", UDP, 100, 1232, 512},
		{"OPT of one octet", "6891 §6.2.3", UDP, 1, 1232, 512},
		{"OPT of 512", "6891 §6.2.3", UDP, 512, 1232, 512},
		{"OPT of 1000", "6891 §6.2.3", UDP, 1000, 1232, 1000},
		{"OPT of more than we send", "6891 §6.2.5", UDP, 4096, 1232, 1232},
		{"OPT of 65535", "6891 §6.2.5", UDP, 65535, 4096, 4096},
		{"stream without OPT", "7766 §8", TCP, 0, 1232, 65535},
		{"stream with OPT", "6891 §6.2.3", TCP, 512, 1232, 65535},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRequest(c.proto)
			r.Receive(query(0, 1, c.size), make([]byte, wire.MaxMessage))
			for i := 0; r.Reply.Add(wire.Answer, wire.Name{2, byte(i), byte(i >> 8), 0}, small, nil); i++ {
			}
			r.Finish(wire.NoError)
			whole := len(r.Out)
			r.Reply.Truncate()
			got := len(r.Fit(c.udp))
			if got > c.want || got < c.want-30 {
				t.Errorf("RFC %s: %d octets of %d are sent, want %d", c.rfc, got, whole, c.want)
			}
			var m dns.Msg
			if err := m.Unpack(r.Out); err != nil {
				t.Fatal(err)
			}
			if o := m.IsEdns0(); (o != nil) != (c.size > 0) || o != nil && o.UDPSize() != c.udp {
				t.Errorf("RFC 6891 §6.2.4: OPT is %v", o)
			}
			if !m.Truncated || r.Note.Flags&wire.FlagTC == 0 || int(r.Note.Size) != got {
				t.Errorf("TC is %v, note %+v", m.Truncated, r.Note)
			}
		})
	}
}

// small is an address.
var small = &wire.RRset{Type: wire.TypeA, Class: wire.ClassIN, Count: 1, RDATA: []byte("\x00\x041234")}

// A detached request owns its memory: the listener goes on with its own.
func TestDetach(t *testing.T) {
	msg := query(wire.FlagRD, 1, 1232)
	before := slices.Clone(msg)
	out := make([]byte, 1024)
	r := newRequest(TCP)
	r.Receive(msg, out)
	r.Client, r.Local = netip.MustParseAddrPort("192.0.2.1:53"), netip.MustParseAddrPort("[2001:db8::1]:5353")
	r.Who, r.View, r.At = 1, 2, 3*time.Second
	r.Note = Note{Source: SourceLocal, Rule: 7, EDE: 5}
	r.Policy.Rule, r.Policy.Depth = 4, 1
	r.Policy.Frames[0] = Frame{Place: Place{1, 2}, A: 3, B: 4}
	r.Reply.Add(wire.Answer, r.Ask.Name, small, nil)
	r.Reply.Option(wire.OptNSID, []byte("one"))
	r.Reply.Truncate()
	r.Finish(wire.NXDomain)

	var into Request
	r.Detach(&into, make([]byte, len(msg)), make([]byte, 4096))
	if into.Peer != r.Peer || into.Client != r.Client || into.Local != r.Local || into.Who != 1 || into.View != 2 || into.At != 3*time.Second || into.Note != r.Note {
		t.Errorf("copied as %+v", into.Note)
	}
	if into.Policy != r.Policy {
		t.Errorf("the cursor is %+v", into.Policy)
	}
	if into.Out != nil || into.Reply.Count(wire.Answer) != 0 || into.Reply.Truncated() {
		t.Error("what was written of the response is not dropped")
	}
	for i := range msg { // the next query comes in
		msg[i] = 0xee
	}
	r.Receive(query(0, 1, 0), out)
	r.Ask, r.Suffixes, r.EDNS = Ask{}, wire.Labels{}, wire.EDNS{}
	for i := range out {
		out[i] = 0xee
	}

	if !bytes.Equal(into.Msg, before) || into.Name.String() != "wWw.example." || into.Ask.Name.String() != "wWw.example." || !into.Ask.DO {
		t.Errorf("the query is %q, Ask %+v", into.Msg, into.Ask)
	}
	if into.Ask.Labels != &into.Suffixes || into.Ask.Labels.Hash[0] != wire.HashName(into.Name) || &into.Ask.Name[0] != &into.Name[0] {
		t.Error("Ask is not a view of its own query")
	}
	if data, ok := into.EDNS.Option(wire.OptPadding); !ok || string(data) != "\x00\x08clientco" {
		t.Errorf("option is %q, %v", data, ok)
	}
	into.Reply.Add(wire.Answer, into.Ask.Name, big(2), nil)
	into.Finish(wire.NoError)
	var m dns.Msg
	if err := m.Unpack(into.Fit(1232)); err != nil || len(m.Answer) != 2 || m.Id != 0xabcd || m.Question[0].Name != "wWw.example." || m.IsEdns0() == nil {
		t.Errorf("answered with %v, %v", &m, err)
	} else if o := m.IsEdns0().Option; len(o) != 1 || o[0].Option() != dns.EDNS0NSID {
		t.Errorf("answered with the options %v, want that which was there before", o)
	}
}

// Detach keeps what Ask was changed to.
func TestDetachAskChanged(t *testing.T) {
	r := newRequest(UDP)
	r.Receive(query(0, 1, 0), make([]byte, 1024))
	var l wire.Labels
	other := wire.Name("\x05other\x00")
	l.Scan(other)
	r.Ask.Name, r.Ask.Labels, r.Ask.Type = other, &l, wire.TypeA
	var into Request
	r.Detach(&into, make([]byte, len(r.Msg)), make([]byte, 1024))
	if into.Ask.Name.String() != "other." || into.Ask.Labels != &l || into.Ask.Type != wire.TypeA || into.Name.String() != "wWw.example." {
		t.Errorf("Ask is %+v", into.Ask)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for s := range Sources {
		seen[Source(s).String()] = true
	}
	if len(seen) != Sources || SourceError != Source(Sources-1) {
		t.Errorf("sources are %v", seen)
	}
	if UDP.String() != "udp" || TCP.String() != "tcp" || UDP.Stream() || !TCP.Stream() {
		t.Error("transports are mixed up")
	}
}
