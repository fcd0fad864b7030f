package xfr

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// stream is a connection whose other side has said everything already.
type stream struct {
	net.Conn
	in *bytes.Reader
}

func (s *stream) Read(b []byte) (int, error)      { return s.in.Read(b) }
func (s *stream) SetReadDeadline(time.Time) error { return nil }

// FuzzMessages looks for messages that break the reader, and for records that it
// should not hand out.
func FuzzMessages(f *testing.F) {
	q := new(dns.Msg)
	q.SetAxfr(apexText)
	q.Id = 1
	for _, parts := range [][]string{
		{soaText + ";" + aText + ";" + mText + ";" + soaText},
		{soaText, aText, mText, soaText},
		{soaText, "sub." + soaText},
		{soaText, "a.example.net. 300 IN A 192.0.2.1"},
	} {
		var in []byte
		for _, m := range answers(f, nil, parts...)(q) {
			in = append(binary.BigEndian.AppendUint16(in, uint16(len(m))), m...)
		}
		f.Add(in)
	}
	apex := testkit.Name(f, apexText)
	f.Fuzz(func(t *testing.T, in []byte) {
		c := &conversation{p: &Primary{Now: time.Now, Deadline: deadline}, apex: apex, limits: Limits{}.withDefaults(), conn: &stream{in: bytes.NewReader(in)}}
		x := &exchange{id: 1, typ: wire.TypeAXFR}
		count := 0
		err := c.response(x, func(batch []zonefile.Record) error {
			for i := range batch {
				r := &batch[i]
				count++
				if !r.Owner.Under(apex) || wire.UncompressedEnd(r.Owner, 0) != len(r.Owner) {
					t.Errorf("owner %x", []byte(r.Owner))
				}
				if !wire.CheckRDATA(r.Type, r.RDATA) || r.TTL >= 1<<31 || r.Line != count {
					t.Errorf("record %d: %+v", count, r)
				}
				if soa := r.Type == wire.TypeSOA; soa != (count == 1) {
					t.Errorf("record %d is of type %s", count, wire.TypeString(r.Type))
				}
			}
			return nil
		})
		if err == nil && (count == 0 || !c.seq.ended) {
			t.Error("no error, and no zone")
		}
	})
}
