package xfr

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	apexText = "example.org."
	keyText  = "key.example."
	soaText  = "example.org. 3600 IN SOA ns.example.org. host.example.org. 7 3600 600 86400 300"
)

// patience bounds what should never take long.
const patience = 20 * time.Second

var secret = []byte("0123456789abcdef0123456789abcdef")

func testKey(t testing.TB, secret []byte) *wire.TSIGKey {
	t.Helper()
	k, err := wire.NewTSIGKey(testkit.Name(t, keyText), "hmac-sha256", secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// fake is a primary in memory. Each query gets the messages that its function
// gives; a nil closes the connection.
type fake struct {
	t      testing.TB
	soa    func(q *dns.Msg) [][]byte
	axfr   func(q *dns.Msg) [][]byte
	signed bool
	asked  []uint16 // types, in order
}

// dial is the client's end of a new connection.
func (f *fake) dial(context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	go f.serveLoop(server) // ends when the client closes
	return client, nil
}

func (f *fake) serveLoop(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		msg := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, msg); err != nil {
			return
		}
		q := new(dns.Msg)
		if err := q.Unpack(msg); err != nil {
			f.t.Errorf("the query cannot be read: %v", err)
			return
		}
		f.asked = append(f.asked, q.Question[0].Qtype)
		do := f.axfr
		if q.Question[0].Qtype == dns.TypeSOA {
			do = f.soa
		}
		for _, out := range do(q) {
			if out == nil {
				return
			}
			if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
				return
			}
		}
	}
}

// answers makes one message of each string of records, separated by semicolons.
func answers(t testing.TB, edit func(i int, m *dns.Msg), parts ...string) func(*dns.Msg) [][]byte {
	return func(q *dns.Msg) [][]byte {
		var out [][]byte
		prior := ""
		if sig := q.IsTsig(); sig != nil {
			prior = sig.MAC
		}
		for i, part := range parts {
			m := reply(t, q, part)
			if edit != nil {
				edit(i, m)
			}
			if m.IsTsig() == nil || len(m.IsTsig().MAC) > 0 {
				out = append(out, pack(t, m))
				continue
			}
			msg, mac, err := dns.TsigGenerate(m, base64.StdEncoding.EncodeToString(secret), prior, i > 0)
			if err != nil {
				t.Errorf("signing: %v", err)
			}
			prior, out = mac, append(out, msg)
		}
		return out
	}
}

// reply is a response with those records.
func reply(t testing.TB, q *dns.Msg, records string) *dns.Msg {
	m := new(dns.Msg)
	m.SetReply(q)
	m.Authoritative, m.Compress = true, true
	for text := range strings.SplitSeq(records, ";") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Errorf("reading %q: %v", text, err)
			continue
		}
		m.Answer = append(m.Answer, rr)
	}
	return m
}

func pack(t testing.TB, m *dns.Msg) []byte {
	b, err := m.Pack()
	if err != nil {
		t.Errorf("packing: %v", err)
	}
	return b
}

// sign is an edit that gives each message, or those that only tells, a record.
func sign(only func(i int) bool) func(int, *dns.Msg) {
	return func(i int, m *dns.Msg) {
		if only == nil || only(i) {
			m.SetTsig(keyText, dns.HmacSHA256, 300, testTime.Unix())
		}
	}
}

var testTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// collect keeps what a transfer hands out as text.
func collect(t testing.TB, into *[]string) func([]zonefile.Record) error {
	return func(batch []zonefile.Record) error {
		for i := range batch {
			r := &batch[i]
			rr, err := dns.NewRR(fmt.Sprintf("%s %d IN %s \\# %d %x", r.Owner, r.TTL, wire.TypeString(r.Type), len(r.RDATA), r.RDATA))
			if err != nil {
				t.Fatalf("record %d: %v", r.Line, err)
			}
			if len(*into)+1 != r.Line {
				t.Errorf("record %d is told as the %dth", len(*into)+1, r.Line)
			}
			*into = append(*into, fmt.Sprintf("%s %d %s %x", r.Owner, r.TTL, dns.TypeToString[rr.Header().Rrtype], r.RDATA))
		}
		return nil
	}
}

func primary(t testing.TB, f *fake, limits Limits) *Primary {
	f.t = t
	p := &Primary{Addr: "memory", Dial: f.dial, Limits: limits, Now: func() time.Time { return testTime }, Deadline: deadline}
	if f.signed {
		p.Key = testKey(t, secret)
	}
	return p
}

const (
	aText = "a.example.org. 300 IN A 192.0.2.1"
	mText = "m.example.org. 300 IN MX 10 a.example.org."
)

// Every way in which a primary may misbehave that we know of, and the sound ones.
func TestFetch(t *testing.T) {
	soa, whole := soaText, soaText+";"+aText+";"+mText+";"+soaText
	first := func(do func(m *dns.Msg)) func(int, *dns.Msg) {
		return func(i int, m *dns.Msg) {
			if i == 0 {
				do(m)
			}
		}
	}
	every := func(only func(i int) bool) func(int, *dns.Msg) { return sign(only) }
	for _, c := range []struct {
		name   string
		signed bool
		limits Limits
		edit   func(i int, m *dns.Msg)
		parts  []string
		after  [][]byte // behind the messages; nil closes
		want   error
		count  int
	}{
		{name: "one message", parts: []string{whole}, count: 3},
		{name: "a record a message, RFC 5936 2.2", parts: []string{soa, aText, mText, soa}, count: 3},
		{name: "a zone of its SOA record alone", parts: []string{soa, soa}, count: 1},
		{name: "no question from the second message on, 2.2.2", parts: []string{soa, aText, soa}, count: 2,
			edit: func(i int, m *dns.Msg) {
				if i > 0 {
					m.Question = nil
				}
			}},
		{name: "TTL with the top bit set, RFC 2181 8", parts: []string{soa, "a.example.org. 3000000000 IN A 192.0.2.1", soa}, count: 2},
		{name: "OPT beside the records", parts: []string{whole}, edit: first(func(m *dns.Msg) { m.SetEdns0(1232, false) }), count: 3},
		{name: "another ID", parts: []string{whole}, edit: first(func(m *dns.Msg) { m.Id++ }), want: ErrID},
		{name: "another ID later", parts: []string{soa, aText, soa}, edit: func(i int, m *dns.Msg) { m.Id += uint16(i) }, want: ErrID},
		{name: "a query", parts: []string{whole}, edit: first(func(m *dns.Msg) { m.Response = false }), want: ErrHeader},
		{name: "another opcode", parts: []string{whole}, edit: first(func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }), want: ErrHeader},
		{name: "TC", parts: []string{whole}, edit: first(func(m *dns.Msg) { m.Truncated = true }), want: ErrTruncated},
		{name: "REFUSED", parts: []string{""}, edit: first(func(m *dns.Msg) { m.Rcode = dns.RcodeRefused }), want: &RcodeError{wire.Refused}},
		{name: "SERVFAIL in the middle", parts: []string{soa, aText}, want: &RcodeError{wire.ServFail},
			edit: func(i int, m *dns.Msg) { m.Rcode = i * dns.RcodeServerFailure }},
		{name: "no question at first", parts: []string{whole}, edit: first(func(m *dns.Msg) { m.Question = nil }), want: ErrQuestion},
		{name: "another question", parts: []string{whole}, edit: first(func(m *dns.Msg) { m.Question[0].Name = "example.net." }), want: ErrQuestion},
		{name: "another type asked", parts: []string{whole}, edit: first(func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeIXFR }), want: ErrQuestion},
		{name: "two questions", parts: []string{whole}, edit: first(func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }), want: ErrQuestion},
		{name: "no records", parts: []string{""}, want: ErrEmpty},
		{name: "no records in the middle", parts: []string{soa, "", soa}, want: ErrEmpty},
		{name: "another record first", parts: []string{aText + ";" + whole}, want: ErrNoSOA},
		{name: "SOA of another zone first", parts: []string{strings.Replace(soa, "example.org.", "org.", 1) + ";" + aText}, want: ErrNoSOA},
		{name: "another serial at the end", parts: []string{soa, aText, strings.Replace(soa, " 7 ", " 8 ", 1)}, want: ErrSerial},
		{name: "SOA below the apex", parts: []string{soa, "sub." + soa, soa}, want: ErrExtraSOA},
		{name: "records behind the end", parts: []string{whole + ";" + aText}, want: ErrAfterEnd},
		{name: "a third SOA", parts: []string{soa + ";" + soa + ";" + soa}, want: ErrAfterEnd},
		{name: "out of the zone", parts: []string{soa + ";a.example.net. 300 IN A 192.0.2.1"}, want: ErrOutOfZone},
		{name: "the parent's name", parts: []string{soa + ";org. 300 IN A 192.0.2.1"}, want: ErrOutOfZone},
		{name: "class CH", parts: []string{soa + ";a.example.org. 300 CH TXT x"}, want: ErrRecord},
		{name: "a type of queries", parts: []string{soa + ";a.example.org. 300 IN TYPE252 \\# 1 00"}, want: ErrRecord},
		{name: "records in the authority section", parts: []string{whole}, want: ErrRecord,
			edit: first(func(m *dns.Msg) { m.Ns = m.Answer[1:2] })},
		{name: "records in the additional section", parts: []string{whole}, want: ErrRecord,
			edit: first(func(m *dns.Msg) { m.Extra = m.Answer[1:2] })},
		{name: "closed before the end", parts: []string{soa, aText}, after: [][]byte{nil}, want: ErrClosed},
		{name: "shorter than a header", parts: []string{soa}, after: [][]byte{make([]byte, 11)}, want: ErrMalformed},
		{name: "an empty message", parts: []string{soa}, after: [][]byte{{}}, want: ErrMalformed},
		{name: "never a next message", parts: []string{soa}, limits: Limits{Idle: 50 * time.Millisecond}, want: os.ErrDeadlineExceeded},
		{name: "as many records as allowed", parts: []string{whole}, limits: Limits{Records: 3}, count: 3},
		{name: "too many records", parts: []string{whole}, limits: Limits{Records: 2}, want: ErrTooMany},
		{name: "too many octets", parts: []string{soa, aText, mText, soa}, limits: Limits{Octets: 300}, want: ErrTooLarge},

		{name: "TSIG on all", signed: true, edit: every(nil), parts: []string{soa, aText, mText, soa}, count: 3},
		{name: "TSIG missing on all", signed: true, parts: []string{soa, aText, soa}, want: wire.ErrTSIGMissing},
		{name: "TSIG missing at the end", signed: true, edit: every(func(i int) bool { return i < 2 }), parts: []string{soa, aText, soa}, want: wire.ErrTSIGTail},
		{name: "TSIG with a message left out of the digest", signed: true, edit: every(func(i int) bool { return i != 1 }), parts: []string{soa, aText, soa}, want: wire.ErrBadSig},
		{name: "TSIG late", signed: true, parts: []string{whole}, want: wire.ErrBadTime,
			edit: func(_ int, m *dns.Msg) { m.SetTsig(keyText, dns.HmacSHA256, 300, testTime.Unix()-301) }},
		{name: "TSIG with another key", signed: true, parts: []string{whole}, want: wire.ErrBadKey,
			edit: func(_ int, m *dns.Msg) { m.SetTsig("other.example.", dns.HmacSHA256, 300, testTime.Unix()) }},
		{name: "NOTAUTH without TSIG", signed: true, parts: []string{""}, edit: first(func(m *dns.Msg) { m.Rcode = dns.RcodeNotAuth }), want: &RcodeError{wire.NotAuth}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{signed: c.signed}
			f.soa = answers(t, nil, soa)
			if c.signed {
				f.soa = answers(t, sign(nil), soa)
			}
			f.axfr = func(q *dns.Msg) [][]byte { return append(answers(t, c.edit, c.parts...)(q), c.after...) }
			limits := c.limits
			if limits.Idle == 0 {
				limits.Idle = patience
			}
			var got []string
			result, err := primary(t, f, limits).Fetch(t.Context(), testkit.Name(t, apexText), Have{}, collect(t, &got))
			if !sameError(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil && (len(got) != c.count || result.Records != c.count || result.Serial != 7) {
				t.Errorf("%d records, result %+v, want %d: %q", len(got), result, c.count, got)
			}
		})
	}
}

func sameError(err, want error) bool {
	var code, wantCode *RcodeError
	if errors.As(want, &wantCode) {
		return errors.As(err, &code) && code.Rcode == wantCode.Rcode
	}
	return errors.Is(err, want)
}

// The SOA record is asked for first: a serial that is not newer costs one message
// (RFC 1982 §3.2).
func TestFetchSerial(t *testing.T) {
	for _, c := range []struct {
		name      string
		have      Have
		edit      func(int, *dns.Msg)
		soa       string
		unchanged bool
		want      error
	}{
		{name: "none held", soa: soaText},
		{name: "older held", soa: soaText, have: Have{6, true}},
		{name: "same held", soa: soaText, have: Have{7, true}, unchanged: true},
		{name: "newer held", soa: soaText, have: Have{8, true}, unchanged: true},
		{name: "older across the wrap", soa: soaText, have: Have{0xffff_fff0, true}},
		{name: "newer across the wrap", soa: soaText, have: Have{7 + 1<<31 - 1, true}, unchanged: true},
		{name: "not authoritative", soa: soaText, edit: func(_ int, m *dns.Msg) { m.Authoritative = false }, want: ErrNotAuth},
		{name: "no SOA record", soa: aText, want: ErrNoSOA},
		{name: "SOA record of the parent", soa: strings.Replace(soaText, "example.org.", "org.", 1), want: ErrNoSOA},
		{name: "NXDOMAIN", edit: func(_ int, m *dns.Msg) { m.Rcode = dns.RcodeNameError }, want: &RcodeError{wire.NXDomain}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{soa: answers(t, c.edit, c.soa), axfr: answers(t, nil, soaText+";"+aText+";"+soaText)}
			var got []string
			result, err := primary(t, f, Limits{Idle: patience}).Fetch(t.Context(), testkit.Name(t, apexText), c.have, collect(t, &got))
			if !sameError(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if result.Unchanged != c.unchanged || err == nil && len(f.asked) != map[bool]int{true: 1, false: 2}[c.unchanged] {
				t.Errorf("result %+v after queries %v", result, f.asked)
			}
		})
	}
}

// An error of the callback ends the transfer and comes out as it is.
func TestFetchCallback(t *testing.T) {
	f := &fake{soa: answers(t, nil, soaText), axfr: answers(t, nil, soaText, aText, soaText)}
	full := errors.New("full")
	_, err := primary(t, f, Limits{Idle: patience}).Fetch(t.Context(), testkit.Name(t, apexText), Have{}, func([]zonefile.Record) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

// A transfer ends with its context, whatever the primary does.
func TestFetchCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{soa: answers(t, nil, soaText), axfr: answers(t, nil, soaText)}
	_, err := primary(t, f, Limits{Idle: patience}).Fetch(ctx, testkit.Name(t, apexText), Have{}, func([]zonefile.Record) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestDialError(t *testing.T) {
	refused := errors.New("refused")
	p := &Primary{Addr: "memory", Now: time.Now, Deadline: deadline, Dial: func(context.Context) (net.Conn, error) { return nil, refused }}
	if _, err := p.Serial(t.Context(), testkit.Name(t, apexText)); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func deadline(d time.Duration) time.Time { return time.Now().Add(d) }
