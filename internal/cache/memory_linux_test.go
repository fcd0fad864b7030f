//go:build !race

package cache

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// resident is the octets of memory that this process takes.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// However many fills of whatever sizes there are, the process grows by no more
// than the size of the cache and a little.
func TestMemoryBound(t *testing.T) {
	const size = 32 << 20
	before := resident(t)
	c := open(t, Config{Size: size, MaxStale: 3600 * second})
	fills := 2_000_000
	if testing.Short() {
		fills = 200_000
	}
	f := newFiller(t)
	for i := range fills {
		f.fill(c, time.Duration(i)*time.Millisecond)
	}
	grown := resident(t) - before
	st := c.Stats()
	t.Logf("grown by %d octets, %.3f of the size; %+v", grown, float64(grown)/size, st)
	if grown > size*115/100 {
		t.Errorf("grown by %d octets, the cache has %d", grown, int64(size))
	}
	if st.Dropped != 0 || st.Evictions < uint64(fills)/4 || st.Used < size/2 {
		t.Errorf("it was not full: %+v", st)
	}
	consistent(t, c)
}

// filler makes up responses: names of all lengths, one to sixty addresses, signed
// or not.
type filler struct {
	dice  *rand.Rand
	query wire.Query
	ask   []byte
	reply wire.Builder
	buf   []byte
	rdata []byte
	sigs  wire.RRset
	t     *testing.T
}

func newFiller(t *testing.T) *filler {
	f := &filler{dice: rand.New(rand.NewPCG(3, 4)), buf: make([]byte, 8192), t: t}
	for range 60 {
		f.rdata = append(f.rdata, 0, 4, 192, 0, 2, 1)
	}
	f.sigs = wire.RRset{Type: wire.TypeRRSIG, Class: 1, TTL: 60, Count: 1, RDATA: append([]byte{0, 100}, make([]byte, 100)...)}
	return f
}

func (f *filler) fill(c *Cache, now time.Duration) {
	n := 12 + f.dice.IntN(50)
	f.ask = append(f.ask[:0], 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, byte(n))
	f.ask = binary.BigEndian.AppendUint64(f.ask, f.dice.Uint64())
	for range n - 8 {
		f.ask = append(f.ask, 'x')
	}
	f.ask = append(f.ask, "\x07example\x00\x00\x01\x00\x01"...)
	if err := f.query.Parse(f.ask); err != nil {
		f.t.Fatal(err)
	}
	count := 1 + f.dice.IntN(4)
	if f.dice.IntN(20) == 0 {
		count *= 15
	}
	set := wire.RRset{Type: wire.TypeA, Class: 1, TTL: 60, Count: count, RDATA: f.rdata[:6*count]}
	sigs := &f.sigs
	if count > 1 {
		sigs = nil
	}
	f.reply.Begin(&f.query, f.buf)
	f.reply.Add(wire.Answer, f.query.Name, &set, sigs)
	msg := f.reply.End(wire.NoError)
	k := Key{Name: f.query.Name, Hash: f.query.Hash, Type: wire.TypeA, Class: 1, View: uint32(f.dice.IntN(2))}
	for range f.dice.IntN(3) { // some are asked for
		f.reply.Begin(&f.query, f.buf[4096:])
		c.Get(&k, now, &f.reply, true)
	}
	if got := c.Put(&k, msg, now, 0); got != Kept {
		f.t.Fatalf("Put says %d", got)
	}
}
