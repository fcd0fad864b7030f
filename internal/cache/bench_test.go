package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// load is many questions with their responses, and what is needed to ask them.
type load struct {
	queries   []wire.Query
	responses [][]byte
	reply     wire.Builder
	buf       []byte
}

func newLoad(b testing.TB, names int) *load {
	l := &load{queries: make([]wire.Query, names), buf: make([]byte, 4096)}
	for i := range names {
		q := fmt.Sprintf("host%07d.example.", i)
		msg := response(b, q+" A", 0, q+" 300 IN A 192.0.2.1")
		l.responses = append(l.responses, msg)
		ask := append([]byte(nil), msg[:wire.HeaderSize+len(q)+5]...)
		ask[2], ask[7] = 1, 0
		if err := l.queries[i].Parse(ask); err != nil {
			b.Fatal(err)
		}
	}
	return l
}

func (l *load) key(i int) Key {
	q := &l.queries[i]
	return Key{Name: q.Name, Hash: q.Hash, Type: q.Type, Class: q.Class}
}

func benchGet(b *testing.B, names int) {
	c := open(b, Config{Size: 64 << 20})
	n := newNumbered(b, c)
	for i := range names {
		n.ask(uint64(i))
	}
	b.ReportAllocs()
	i, hits := uint64(0), 0
	for b.Loop() {
		n.set(i % uint64(names))
		if n.get() {
			hits++
		}
		i += 7919
	}
	b.ReportMetric(float64(hits)/float64(b.N), "hits/op")
}

// BenchmarkGet asks for few names, BenchmarkGetMany for so many as fill two thirds of the
// cache; both make up the question, which BenchmarkGetHot does not.
func BenchmarkGet(b *testing.B)     { benchGet(b, 1000) }
func BenchmarkGetMany(b *testing.B) { benchGet(b, 300_000) }

func BenchmarkGetHot(b *testing.B) {
	c := open(b, Config{Size: 64 << 20})
	l := newLoad(b, 1)
	k := l.key(0)
	c.Put(&k, l.responses[0], 0, 1)
	b.ReportAllocs()
	for b.Loop() {
		l.reply.Begin(&l.queries[0], l.buf)
		if c.Get(&k, second, &l.reply, false).Verdict != Fresh {
			b.Fatal("missed")
		}
	}
}

func BenchmarkGetMiss(b *testing.B) {
	c := open(b, Config{Size: 64 << 20})
	l := newLoad(b, 1)
	k := l.key(0)
	for b.Loop() {
		l.reply.Begin(&l.queries[0], l.buf)
		c.Get(&k, second, &l.reply, false)
	}
}

// BenchmarkPut replaces few entries; BenchmarkPutFull puts new names into a full
// cache.
func BenchmarkPut(b *testing.B) {
	c := open(b, Config{Size: 64 << 20})
	l := newLoad(b, 1000)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		k := l.key(i)
		c.Put(&k, l.responses[i], second, 1)
		if i++; i == len(l.queries) {
			i = 0
		}
	}
}

func BenchmarkPutFull(b *testing.B) {
	c := open(b, Config{Size: 8 << 20})
	l := newLoad(b, 1)
	k := l.key(0)
	msg := l.responses[0]
	b.ReportAllocs()
	n := uint64(0)
	for b.Loop() {
		n++
		renumber(&k, msg, n)
		if got := c.Put(&k, msg, time.Duration(n), 1); got != Kept {
			b.Fatal(got)
		}
	}
	st := c.Stats()
	b.ReportMetric(float64(st.Used)/float64(st.Entries), "octets/entry")
}

// renumber gives k and its response another name of the same length.
func renumber(k *Key, msg []byte, n uint64) {
	name := k.Name[1:12]
	for i := range 7 {
		name[4+i] = byte('a' + n>>(4*i)&15)
	}
	copy(msg[wire.HeaderSize:], k.Name)
	k.Hash = wire.HashName(k.Name)
}

func BenchmarkPutSigned(b *testing.B) {
	c := open(b, Config{Size: 64 << 20})
	a := newAsker(b, c)
	a.ask("www.example. A")
	msg := response(b, "www.example. A", 0, "www.example. 300 IN CNAME a.example.", "www.example. 300 IN"+rrsig, "a.example. 100 IN A 192.0.2.1", "a.example. 100 IN"+rrsig)
	b.ReportAllocs()
	for b.Loop() {
		c.Put(&a.key, msg, second, 1)
	}
}
