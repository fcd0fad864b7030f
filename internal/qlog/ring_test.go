package qlog

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
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
		Note:   serve.Note{Source: serve.SourceZone, Rule: uint16(n + 2), Rcode: wire.NXDomain, EDE: 5, Size: uint16(n + 3), Upstream: uint16(n + 4), Flags: wire.FlagQR | wire.FlagAA | wire.FlagRD},
	}
	r.Name, r.Type, r.Class, r.Flags = append(name, 0), wire.TypeMX, wire.ClassCH, wire.FlagRD
	r.Msg = make([]byte, 12+size)
	r.EDNS.DO = n&1 == 1
	return r
}

// now is the clock of rings in tests: what is flushed is 5 ms late.
func now() time.Duration { return 5 * time.Millisecond }

// told is a record as people have it.
type told struct {
	Row
	at time.Duration
}

// tell is a record in words; its numbers are in them.
func tell(rec *Record) told {
	numbered := func(what string) func(uint16) string {
		return func(n uint16) string { return fmt.Sprintf("%s%d", what, n) }
	}
	s := scribe{names: Names{Rule: numbered("rule"), Upstream: numbered("upstream"), Listener: numbered("listener")}}
	t := newTable()
	t.add(rec, &s)
	return told{t.row(0), rec.At}
}

// record is what the log should have of request(n, size).
func record(n, size int) told {
	r := request(n, size)
	flags := "AA RD"
	if n&1 == 1 {
		flags += " DO"
	}
	return told{at: r.At, Row: Row{
		Time:     int64(r.At / time.Microsecond),
		Sender:   Sender{Client: r.Client.Addr().String(), ClientPort: r.Client.Port(), Protocol: "tcp", Listener: fmt.Sprintf("listener%d", n+1)},
		Question: Question{Name: r.Name.String(), Type: "MX", Class: "CH"},
		Outcome:  Outcome{Rcode: "NXDOMAIN", Flags: flags, Source: "zone", Rule: fmt.Sprintf("rule%d", n+2), Upstream: fmt.Sprintf("upstream%d", n+4), EDE: "4"},
		Latency:  uint32((now() - r.At) / time.Microsecond), QuerySize: uint16(12 + size), Size: uint16(n + 3),
	}}
}

// drain is every record that can be read.
func drain(g *Ring) (all []told) {
	g.Drain(func(rec *Record) { all = append(all, tell(rec)) })
	return all
}

// sizes are lengths of names, the shortest and the longest among them.
var sizes = [...]int{1, 3, 17, 64, 65, 130, 192, 193, 254, 255}

func TestRing(t *testing.T) {
	g := NewRing(now)
	g.Attach(true)
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
		if want := record(n, size); got[n] != want {
			t.Errorf("record %d is\n%+v, want\n%+v", n, got[n], want)
		}
	}
	if again := drain(g); again != nil {
		t.Errorf("%d records are read twice", len(again))
	}
}

func TestRingAddresses(t *testing.T) {
	g := NewRing(now)
	g.Attach(true)
	clients := []string{"192.0.2.1 53", "2001:db8::1 65535", ":: 0", "255.255.255.255 1"}
	for _, c := range clients {
		r := request(0, 3)
		addr, port, _ := strings.Cut(c, " ")
		n, _ := strconv.Atoi(port)
		r.Client = netip.AddrPortFrom(netip.MustParseAddr(addr), uint16(n))
		g.Observe(r)
	}
	g.Flush()
	for i, rec := range drain(g) {
		if got := fmt.Sprintf("%s %d", rec.Client, rec.ClientPort); got != clients[i] {
			t.Errorf("client %s comes out as %s", clients[i], got)
		}
	}
}

// With a reader that keeps up nothing is lost, however often the ring goes round.
func TestRingWraps(t *testing.T) {
	g := NewRing(now)
	g.Attach(true)
	next := 0
	for n := range 20_000 {
		g.Observe(request(n, sizes[n%len(sizes)]))
		if n%7 != 0 {
			continue
		}
		g.Flush()
		for _, rec := range drain(g) {
			if want := record(next, sizes[next%len(sizes)]); rec != want {
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
	g := NewRing(now)
	g.Attach(true)
	for range 3 {
		before := g.Dropped()
		const all = 16_000
		for n := range all {
			g.Observe(request(n, 60))
			g.Flush()
		}
		got := drain(g)
		if lost := int(g.Dropped() - before); len(got)+lost != all || len(got) < RingSize/160-10 {
			t.Fatalf("%d records read, %d dropped of %d", len(got), lost, all)
		}
		for n, rec := range got {
			if want := record(n, 60); rec != want {
				t.Fatalf("record %d is\n%+v, want\n%+v", n, rec, want)
			}
		}
	}
}

// Nobody reads: nothing is written or counted as lost. A reader that comes later, or
// again, gets what is observed from then on, all of it.
func TestRingUnread(t *testing.T) {
	g := NewRing(now)
	for round := range 3 {
		for n := range 20_000 {
			g.Observe(request(n, 60))
			g.Flush()
		}
		if g.Dropped() != 0 {
			t.Errorf("%d records were dropped", g.Dropped())
		}
		g.Attach(true)
		if got := drain(g); got != nil {
			t.Errorf("%d records from before", len(got))
		}
		for n := range 100 {
			g.Observe(request(n, sizes[n%len(sizes)]))
		}
		g.Flush()
		got := drain(g)
		if len(got) != 100 {
			t.Fatalf("round %d: %d records read, %d dropped", round, len(got), g.Dropped())
		}
		for n, rec := range got {
			if want := record(n, sizes[n%len(sizes)]); rec != want {
				t.Fatalf("record %d is\n%+v, want\n%+v", n, rec, want)
			}
		}
		g.Detach()
	}
}

// One writes, one reads, at once; the reader attaches while the writer runs.
func TestRingTogether(t *testing.T) {
	g := NewRing(now)
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
	g.Attach(true)
	close(attached)
	last, read := time.Duration(-1), 0
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		g.Drain(func(rec *Record) {
			if rec.At <= last || rec.Size != uint16(rec.At) || len(rec.Name) != 20 || rec.where>>32&0xffff != 1 {
				t.Errorf("record %d behind %d: %+v", rec.At, last, *rec)
			}
			last = rec.At
			read++
		})
	}
	wg.Wait()
	if read+int(g.Dropped()) < all/2-1 || read+int(g.Dropped()) > all {
		t.Errorf("%d records read, %d dropped of %d", read, g.Dropped(), all)
	}
}

func TestShared(t *testing.T) {
	g := NewRing(now)
	g.Attach(true)
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
		if want := record(int(rec.at), 9); rec != want || seen[rec.at] {
			t.Errorf("record is %+v, want %+v", rec, want)
		}
		seen[rec.at] = true
	}
	if len(seen) != 800 || g.Dropped() != 0 {
		t.Errorf("%d records, %d dropped", len(seen), g.Dropped())
	}
}

func TestAllocsObserve(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	g, r := NewRing(now), request(1, 30)
	if n := testing.AllocsPerRun(10_000, func() { g.Observe(r); g.Flush() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	g.Attach(true)
	count := 0
	each := func(*Record) { count++ }
	if n := testing.AllocsPerRun(1000, func() { g.Observe(r); g.Flush(); g.Drain(each) }); n != 0 || count == 0 {
		t.Errorf("%v allocations with a reader of %d records", n, count)
	}
}

func BenchmarkObserve(b *testing.B) {
	g, r := NewRing(now), request(1, 30)
	b.ReportAllocs()
	for b.Loop() {
		g.Observe(r)
	}
}

// FuzzRecord puts any query with any response and takes it out again.
func FuzzRecord(f *testing.F) {
	f.Add("\x03www\x07example\x00", []byte("\xc0\x00\x02\x01"), uint64(0x0102030405060708), []byte{})
	f.Add("\x00", make([]byte, 16), uint64(0), append(make([]byte, 6), 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 1))
	f.Add(strings.Repeat("\x04long", 50)+"\x03end\x00", []byte{}, uint64(1), []byte{})
	f.Fuzz(func(t *testing.T, name string, addr []byte, x uint64, out []byte) {
		if len(name) > wire.MaxName || len(name) == 0 {
			return
		}
		r := &serve.Request{Peer: &serve.Peer{Proto: serve.Proto(x & 1), Index: uint16(x >> 8)}, At: time.Duration(x), Client: netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(x))}
		if a, ok := netip.AddrFromSlice(addr); ok {
			r.Client = netip.AddrPortFrom(a.Unmap(), uint16(x>>24))
		}
		r.Name, r.Type, r.Class, r.Hash = wire.Name(name), uint16(x), uint16(x>>16), x
		r.Msg, r.Out = make([]byte, uint16(x>>48)), out
		r.Note = serve.Note{Source: serve.Source(x >> 4 & 3), Rule: uint16(x >> 40), Rcode: wire.Rcode(x >> 16), EDE: uint16(x >> 48), Size: uint16(x)}
		b := bytes.Repeat([]byte{0xee}, maxRecord+8)
		size := put(b[:maxRecord], r, true)
		var rec Record
		if took := get(b, &rec); took != size || size%8 != 0 || size < headSize+len(name) || size > maxRecord-stampSize {
			t.Fatalf("%d octets put, %d taken", size, took)
		}
		if string(rec.Name) != name || rec.Addr() != r.Client.Addr().Unmap() || rec.Port != r.Client.Port() || rec.Hash != x || rec.Size != r.Note.Size || len(rec.ECS) != 0 {
			t.Fatalf("%+v", rec)
		}
		rec.EachAnswer(func(a netip.Addr) {
			if !a.IsValid() || !bytes.Contains(out, a.AsSlice()) {
				t.Fatalf("address %s is not in the response", a)
			}
		})
		if !bytes.Equal(b[size:], bytes.Repeat([]byte{0xee}, len(b)-size)) {
			t.Fatal("something was written behind the record")
		}
	})
}
