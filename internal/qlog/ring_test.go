package qlog

import (
	"bytes"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// request is an answered query, number n of many, of a name of size octets.
func request(n, size int) *serve.Request {
	var name wire.Name
	for left := size - 1; left > 0; {
		l := min(left-1, 63)
		if left-1-l == 1 { // one octet would be left over, and a label has two
			l--
		}
		name = append(append(name, byte(l)), bytes.Repeat([]byte{'a' + byte(n%26)}, l)...)
		left -= l + 1
	}
	r := &serve.Request{
		Client: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)}), uint16(n)),
		Peer:   &serve.Peer{Proto: serve.TCP, Index: uint16(n + 1)},
		At:     time.Duration(n),
		Note:   serve.Note{Source: serve.SourceZone, Rule: uint16(n + 2), Rcode: wire.NXDomain, EDE: 5, Size: uint16(n + 3)},
	}
	r.Name, r.Type, r.Class, r.Flags = append(name, 0), wire.TypeMX, wire.ClassCH, wire.FlagRD
	r.Msg = make([]byte, 12+size)
	r.EDNS.DO = n&1 == 1
	return r
}

// record is what the log should have of request(n, size).
func record(n, size int) Record {
	r := request(n, size)
	return Record{
		At: r.At, Client: r.Client, Name: r.Name, Type: r.Type, Class: r.Class, Rcode: wire.NXDomain, Flags: wire.FlagRD,
		Proto: serve.TCP, Source: serve.SourceZone, Listener: uint16(n + 1), Rule: uint16(n + 2), EDE: 5,
		QuerySize: uint16(12 + size), Size: uint16(n + 3), DO: n&1 == 1,
	}
}

// same compares all of two records.
func same(a, b Record) bool {
	names := bytes.Equal(a.Name, b.Name)
	a.Name, b.Name = nil, nil
	return names && reflect.DeepEqual(a, b)
}

// drain is every record that can be read, with a name of its own.
func drain(g *Ring) (all []Record) {
	g.Drain(func(rec Record) {
		rec.Name = slices.Clone(rec.Name)
		all = append(all, rec)
	})
	return all
}

// sizes are lengths of names, the shortest and the longest among them.
var sizes = [...]int{1, 3, 17, 64, 65, 130, 192, 193, 254, 255}

func TestRing(t *testing.T) {
	g := NewRing()
	g.Attach()
	if got := drain(g); got != nil {
		t.Errorf("an empty ring has %v", got)
	}
	for n, size := range sizes {
		g.Observe(request(n, size))
	}
	if got := drain(g); got != nil {
		t.Errorf("%d records are read before Flush", len(got))
	}
	g.Flush()
	got := drain(g)
	if len(got) != len(sizes) {
		t.Fatalf("%d records of %d", len(got), len(sizes))
	}
	for n, size := range sizes {
		if want := record(n, size); !same(got[n], want) {
			t.Errorf("record %d is\n%+v, want\n%+v", n, got[n], want)
		}
	}
	if again := drain(g); again != nil {
		t.Errorf("%d records are read twice", len(again))
	}
}

func TestRingAddresses(t *testing.T) {
	g := NewRing()
	g.Attach()
	clients := []string{"192.0.2.1:53", "[2001:db8::1]:65535", "[::]:0", "255.255.255.255:1"}
	for _, c := range clients {
		r := request(0, 3)
		r.Client = netip.MustParseAddrPort(c)
		g.Observe(r)
	}
	g.Flush()
	for i, rec := range drain(g) {
		if rec.Client.String() != clients[i] {
			t.Errorf("client %s comes out as %s", clients[i], rec.Client)
		}
	}
}

// With a reader that keeps up nothing is lost, however often the ring goes round.
func TestRingWraps(t *testing.T) {
	g := NewRing()
	g.Attach()
	next := 0
	for n := range 20_000 {
		g.Observe(request(n, sizes[n%len(sizes)]))
		if n%7 != 0 {
			continue
		}
		g.Flush()
		for _, rec := range drain(g) {
			if want := record(next, sizes[next%len(sizes)]); !same(rec, want) {
				t.Fatalf("record %d is\n%+v, want\n%+v", next, rec, want)
			}
			next++
		}
		if next != n+1 {
			t.Fatalf("%d records of %d", next, n+1)
		}
	}
	if g.Dropped() != 0 {
		t.Errorf("%d records were dropped", g.Dropped())
	}
}

// With a reader that does not come, the newest are dropped and counted; after it
// came there is room again.
func TestRingFull(t *testing.T) {
	g := NewRing()
	g.Attach()
	for range 3 {
		before := g.Dropped()
		const all = 4000
		for n := range all {
			g.Observe(request(n, 60))
			g.Flush()
		}
		got := drain(g)
		if lost := int(g.Dropped() - before); len(got)+lost != all || len(got) < RingSize/128-10 {
			t.Fatalf("%d records read, %d dropped of %d", len(got), lost, all)
		}
		for n, rec := range got {
			if want := record(n, 60); !same(rec, want) {
				t.Fatalf("record %d is\n%+v, want\n%+v", n, rec, want)
			}
		}
	}
}

// Nobody reads: the writer goes on, and counts nothing as lost. A reader that
// comes later gets what is written from then on, all of it.
func TestRingOverwrites(t *testing.T) {
	g := NewRing()
	for round := range 4 {
		for n := range 3001 * (round + 1) {
			g.Observe(request(n, sizes[n%len(sizes)]))
			if n%10 == 0 {
				g.Flush()
			}
		}
	}
	if g.Dropped() != 0 {
		t.Errorf("%d records were dropped", g.Dropped())
	}
	g.Flush()
	g.Attach()
	if got := drain(g); got != nil {
		t.Errorf("%d records from before", len(got))
	}
	const all = 800 // as much as the ring holds
	for n := range all {
		g.Observe(request(n, 255))
		g.Flush()
	}
	got := drain(g)
	if len(got)+int(g.Dropped()) != all || len(got) < RingSize/maxRecord*9/10 {
		t.Fatalf("%d records read, %d dropped", len(got), g.Dropped())
	}
	for n, rec := range got {
		if want := record(n, 255); !same(rec, want) {
			t.Fatalf("record %d is\n%+v, want\n%+v", n, rec, want)
		}
	}
}

// One writes, one reads, at once; the reader attaches while the writer runs.
func TestRingTogether(t *testing.T) {
	g := NewRing()
	const all = 50_000
	var wg sync.WaitGroup
	attached, done := make(chan struct{}), make(chan struct{})
	wg.Go(func() {
		defer close(done)
		r := request(0, 20)
		for n := range all {
			r.At, r.Note.Size = time.Duration(n), uint16(n)
			g.Observe(r)
			if n%32 == 0 {
				g.Flush()
			}
			if n == all/2 {
				<-attached
			}
		}
		g.Flush()
	})
	g.Attach()
	close(attached)
	last, read := time.Duration(-1), 0
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		g.Drain(func(rec Record) {
			if rec.At <= last || rec.Size != uint16(rec.At) || len(rec.Name) != 20 || rec.Listener != 1 {
				t.Errorf("record %d behind %d: %+v", rec.At, last, rec)
			}
			last = rec.At
			read++
		})
	}
	wg.Wait()
	if read+int(g.Dropped()) < all/2 || read+int(g.Dropped()) > all {
		t.Errorf("%d records read, %d dropped of %d", read, g.Dropped(), all)
	}
}

func TestShared(t *testing.T) {
	g := NewRing()
	g.Attach()
	s := NewShared(g)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := range 100 {
				s.Observe(request(100*w+n, 9))
			}
			s.Flush()
		})
	}
	wg.Wait()
	seen := map[time.Duration]bool{}
	for _, rec := range drain(g) {
		if want := record(int(rec.At), 9); !same(rec, want) || seen[rec.At] {
			t.Errorf("record is %+v, want %+v", rec, want)
		}
		seen[rec.At] = true
	}
	if len(seen) != 800 || g.Dropped() != 0 {
		t.Errorf("%d records, %d dropped", len(seen), g.Dropped())
	}
}

func TestAllocsObserve(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	g, r := NewRing(), request(1, 30)
	if n := testing.AllocsPerRun(10_000, func() { g.Observe(r); g.Flush() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	g.Attach()
	count := 0
	each := func(Record) { count++ }
	if n := testing.AllocsPerRun(1000, func() { g.Observe(r); g.Flush(); g.Drain(each) }); n != 0 || count == 0 {
		t.Errorf("%v allocations with a reader of %d records", n, count)
	}
}

func BenchmarkObserve(b *testing.B) {
	g, r := NewRing(), request(1, 30)
	b.ReportAllocs()
	for b.Loop() {
		g.Observe(r)
	}
}

// FuzzRecord puts any query and takes it out again, with the ring's place given.
func FuzzRecord(f *testing.F) {
	f.Add("\x03www\x07example\x00", []byte("\xc0\x00\x02\x01"), uint64(1)<<40, uint64(0x0102030405060708), uint64(0xffffffffffffffff))
	f.Add("\x00", make([]byte, 16), uint64(0), uint64(0), uint64(0))
	f.Add(strings.Repeat("\x04long", 50)+"\x03end\x00", []byte{}, uint64(0xffffffffffffffff), uint64(0xffffffffffffffff), uint64(1))
	f.Fuzz(func(t *testing.T, name string, addr []byte, at, x, y uint64) {
		if len(name) > wire.MaxName {
			return
		}
		r := &serve.Request{Peer: &serve.Peer{Proto: serve.Proto(x & 1), Index: uint16(x >> 8)}, At: time.Duration(at)}
		if a, ok := netip.AddrFromSlice(addr); ok {
			r.Client = netip.AddrPortFrom(a.Unmap(), uint16(x>>24))
		} else {
			r.Client = netip.AddrPortFrom(netip.IPv6Unspecified(), 1)
		}
		r.Name, r.Type, r.Class, r.Flags = wire.Name(name), uint16(y), uint16(y>>16), uint16(y>>32)
		r.Msg = make([]byte, uint16(y>>48))
		r.EDNS.DO = x&2 != 0
		r.Note = serve.Note{Source: serve.Source(x >> 4 & 3), Rule: uint16(x >> 40), Rcode: wire.Rcode(x >> 16), EDE: uint16(x >> 48), Size: uint16(at)}
		b := bytes.Repeat([]byte{0xee}, maxRecord+8)
		size := put(b[:maxRecord], r)
		rec, took := get(b)
		want := Record{
			At: r.At, Client: r.Client, Name: r.Name, Type: r.Type, Class: r.Class, Rcode: r.Note.Rcode, Flags: r.Flags,
			Proto: r.Peer.Proto, Source: r.Note.Source, Listener: r.Peer.Index, Rule: r.Note.Rule, EDE: r.Note.EDE,
			QuerySize: uint16(len(r.Msg)), Size: r.Note.Size, DO: r.EDNS.DO,
		}
		if took != size || size%8 != 0 || size < headSize+len(name) || size > maxRecord || !same(rec, want) {
			t.Fatalf("%d octets put, %d taken:\n%+v, want\n%+v", size, took, rec, want)
		}
		if b[0] == 0 && b[1] == 0 {
			t.Fatal("the record looks like the mark of the end")
		}
		if !bytes.Equal(b[size:], bytes.Repeat([]byte{0xee}, len(b)-size)) {
			t.Fatal("something was written behind the record")
		}
	})
}
