package wire

import (
	"bytes"
	"testing"
)

// copied is a response to a query for wWw.example with a CNAME, its address, and
// an SOA.
func copied(t *testing.T, query []byte, buf []byte) *Builder {
	t.Helper()
	var q Query
	if err := q.Parse(query); err != nil {
		t.Fatal(err)
	}
	b := &Builder{}
	b.Begin(&q, buf)
	b.Flags = FlagRA
	host := Name("\x04host\x07example\x00")
	b.Add(Answer, q.Name, &RRset{Type: TypeCNAME, Class: ClassIN, TTL: 5, Count: 1, RDATA: append([]byte{0, byte(len(host))}, host...)}, nil)
	b.Add(Answer, host, &RRset{Type: TypeA, Class: ClassIN, TTL: 6, Count: 2, RDATA: []byte{0, 4, 1, 2, 3, 4, 0, 4, 5, 6, 7, 8}}, nil)
	soa := append(append([]byte{}, host...), host...)
	soa = append(soa, make([]byte, 20)...)
	b.Add(Authority, Name("\x07example\x00"), &RRset{Type: TypeSOA, Class: ClassIN, TTL: 7, Count: 1, RDATA: append([]byte{0, byte(len(soa))}, soa...)}, nil)
	b.End(NXDomain)
	return b
}

const copyQuery = "\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03wWw\x07example\x00\x00\x01\x00\x01"

func TestAdopt(t *testing.T) {
	from := copied(t, []byte(copyQuery), make([]byte, 2048))
	var q Query
	if err := q.Parse([]byte(copyQuery)); err != nil {
		t.Fatal(err)
	}
	var b Builder
	b.Begin(&q, make([]byte, 2048))
	b.Add(Answer, q.Name, &RRset{Type: TypeA, Class: ClassIN, Count: 1, RDATA: []byte{0, 4, 9, 9, 9, 9}}, nil)
	b.Adopt(from)
	if got, want := b.End(NXDomain), from.End(NXDomain); !bytes.Equal(got, want) {
		t.Errorf("adopted % x\nwant % x", got, want)
	}
	b.Begin(&q, make([]byte, MinBuffer))
	big := &Builder{}
	big.Begin(&q, make([]byte, 4096))
	for range 200 {
		big.Add(Answer, q.Name, &RRset{Type: TypeA, Class: ClassIN, Count: 1, RDATA: []byte{0, 4, 9, 9, 9, 9}}, nil)
	}
	if b.Adopt(big); !b.Truncated() || b.Count(Answer) != 0 {
		t.Error("too large a response is adopted")
	}
}

// A response to one question becomes part of a response to another.
func TestAddMessage(t *testing.T) {
	from := copied(t, []byte(copyQuery), make([]byte, 2048)).End(NoError)
	other := []byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05other\x00\x00\x01\x00\x01")
	var q Query
	if err := q.Parse(other); err != nil {
		t.Fatal(err)
	}
	var b Builder
	b.Begin(&q, make([]byte, 2048))
	if !b.AddMessage(from) {
		t.Fatal("refused")
	}
	out := b.End(NoError)
	var old, now Response
	old.Read(from)
	now.Read(out)
	var x, y Record
	for old.Next(&x) {
		if !now.Next(&y) {
			t.Fatal("a record is missing")
		}
		var n1, n2 [MaxName]byte
		a, _, _ := ReadName(n1[:0], from, x.Start)
		c, _, _ := ReadName(n2[:0], out, y.Start)
		r1, _ := x.AppendRDATA(nil, from)
		r2, _ := y.AppendRDATA(nil, out)
		if x.Section != y.Section || x.Type != y.Type || x.TTL != y.TTL || !EqualFold(a, c) || !bytes.Equal(r1, r2) {
			t.Errorf("%+v %s % x became %+v %s % x", x, a, r1, y, c, r2)
		}
	}
	if now.Next(&y) || !now.Whole() {
		t.Error("there is more than there was")
	}
	if b.AddMessage(from[:len(from)-3]) {
		t.Error("a message that is cut is added")
	}
}
