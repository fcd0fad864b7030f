package cache

import (
	"container/list"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/waymark-dns/waymark/internal/wire"
)

// numbered asks for names that are numbers, and puts in what is not there. Each
// response takes 112 octets, or a few more.
type numbered struct {
	c     *Cache
	query wire.Query
	key   Key
	msg   []byte
	reply wire.Builder
	buf   []byte
	now   time.Duration
}

const numberedSize = 112

func newNumbered(t testing.TB, c *Cache) *numbered {
	l := newLoad(t, 1)
	n := &numbered{c: c, query: l.queries[0], msg: l.responses[0], buf: l.buf}
	n.key = l.key(0)
	return n
}

func (n *numbered) set(number uint64) {
	renumber(&n.key, n.msg, number)
}

// get tells whether the number is there.
func (n *numbered) get() bool {
	n.reply.Begin(&n.query, n.buf)
	return n.c.Get(&n.key, n.now, &n.reply, false).Verdict == Fresh
}

// ask is get, and on a miss puts it in.
func (n *numbered) ask(number uint64) bool {
	n.now++
	n.set(number)
	if n.get() {
		return true
	}
	n.c.Put(&n.key, n.msg, n.now, 0)
	return false
}

// oneGoroutine leaves out, in builds with the race detector, what is long and has
// nothing to show it.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("long, and of one goroutine")
	}
}

// A scan of names that are asked for once does not push out what is asked for
// again and again. The first names to be moved are still too many to be kept all,
// so the hits are counted from the third capacity on.
func TestScan(t *testing.T) {
	oneGoroutine(t)
	const size = 4 << 20
	n := newNumbered(t, open(t, Config{Size: size}))
	const all = size / numberedSize
	const hot = all / 4
	hits, asked := 0, 0
	for i := range uint64(10 * all) {
		n.ask(1<<24 + i)
		if i%4 != 0 { // each hot name once for every capacity of others
			continue
		}
		hit := n.ask(i / 4 % hot)
		if i < 3*all {
			continue
		}
		asked++
		if hit {
			hits++
		}
	}
	if hits < asked*99/100 {
		t.Errorf("of %d questions for hot names %d were hits", asked, hits)
	}
	st := n.c.Stats()
	if st.Evictions < 8*all || st.Dropped != 0 || st.Entries > all {
		t.Errorf("it was no scan: %+v", st)
	}
	if st.Used < size*7/10 {
		t.Errorf("of %d octets %d are in use", size, st.Used)
	}
}

// With names as popular as names are, the cache has more hits than an LRU that
// has no tables at all and nine tenths of the memory. (Tables and segments that
// are not full take a quarter of so small a cache.)
func TestHitRatio(t *testing.T) {
	oneGoroutine(t)
	const names, questions = 160_000, 1_000_000
	const size = names * numberedSize / 4
	n := newNumbered(t, open(t, Config{Size: size}))
	lru := newLRU(names / 4 * 9 / 10)
	zipf := newZipf(names, 1)
	hits, ideal := 0, 0
	for i := range questions {
		k := zipf.next()
		a, b := n.ask(k), lru.ask(k)
		if i < questions/4 {
			continue // filling
		}
		if a {
			hits++
		}
		if b {
			ideal++
		}
	}
	t.Logf("%.2f %% hits, LRU %.2f %%", float64(hits)*400/3/questions, float64(ideal)*400/3/questions)
	if hits < ideal {
		t.Errorf("%d hits, the LRU has %d", hits, ideal)
	}
}

type lru struct {
	most  int
	order list.List
	at    map[uint64]*list.Element
}

func newLRU(most int) *lru { return &lru{most: most, at: map[uint64]*list.Element{}} }

func (l *lru) ask(k uint64) bool {
	if e, ok := l.at[k]; ok {
		l.order.MoveToFront(e)
		return true
	}
	l.at[k] = l.order.PushFront(k)
	if len(l.at) > l.most {
		delete(l.at, l.order.Remove(l.order.Back()).(uint64))
	}
	return false
}

// zipf deals numbers, the one of rank k in proportion to 1/k^s. (That of
// math/rand/v2 wants s above 1.)
type zipf struct {
	sums []float64
	dice *rand.Rand
}

func newZipf(n int, s float64) *zipf {
	z := &zipf{sums: make([]float64, n), dice: rand.New(rand.NewPCG(1, 2))}
	sum := 0.0
	for i := range n {
		sum += 1 / math.Pow(float64(i+1), s)
		z.sums[i] = sum
	}
	return z
}

func (z *zipf) next() uint64 {
	x := z.dice.Float64() * z.sums[len(z.sums)-1]
	low, high := 0, len(z.sums)
	for low < high {
		if mid := (low + high) / 2; z.sums[mid] < x {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return uint64(low)
}

// Where everything is popular, room is made all the same: no fill is dropped, and
// some of what was popular stays.
func TestAllPopular(t *testing.T) {
	oneGoroutine(t)
	const size = 4 << 20
	n := newNumbered(t, open(t, Config{Size: size}))
	const all = size / numberedSize
	for i := range uint64(10 * all) {
		n.ask(i)
		for range 3 {
			n.get()
		}
		if s := &n.c.shards[0]; len(s.free)+len(s.retired) < spares {
			t.Fatalf("after %d names %d segments are free", i, len(s.free)+len(s.retired))
		}
	}
	if st := n.c.Stats(); st.Dropped != 0 || st.Entries < all/2 {
		t.Errorf("%+v", st)
	}
	consistent(t, n.c)
}

// What is beyond MaxStale is not copied on, however popular it was.
func TestDeadIsDropped(t *testing.T) {
	n := newNumbered(t, open(t, Config{MaxStale: 10 * second}))
	s := &n.c.shards[0]
	for end, want := range map[time.Duration]bool{309 * second: true, 310 * second: false} {
		n.c.FlushAll()
		n.set(1)
		n.c.Put(&n.key, n.msg, 0, 0)
		n.get()
		p := n.key.probe()
		_, v, e := s.find(&p)
		s.mu.Lock()
		kept := s.judge(e, slotOffset(v), mostKept, end) > 0
		s.mu.Unlock()
		if kept != want || n.get() != want {
			t.Errorf("after %v it is kept: %v", end, kept)
		}
		consistent(t, n.c)
	}
}

// An entry that is copied on keeps all that is known of it.
func TestMoved(t *testing.T) {
	n := newNumbered(t, open(t, Config{MaxStale: 3600 * second}))
	n.set(1)
	n.c.Put(&n.key, n.msg, 0, 77)
	n.get()
	n.now = 400 * second
	n.c.Failed(&n.key, n.now)
	p := n.key.probe()
	s := n.c.shard(p.hash)
	_, before, _ := s.find(&p)
	for i := range uint64(MinSize / numberedSize) {
		n.set(i + 2)
		n.c.Put(&n.key, n.msg, n.now, 0)
	}
	n.set(1)
	_, after, _ := s.find(&p)
	if slotOffset(after) == slotOffset(before) || after == 0 || s.segmentOf(slotOffset(after)).small {
		t.Fatalf("not moved to the main queue: slot was %x, is %x", before, after)
	}
	n.reply.Begin(&n.query, n.buf)
	if hit := n.c.Get(&n.key, n.now, &n.reply, false); hit != (Hit{Verdict: Stale, Upstream: 77}) || n.reply.Count(wire.Answer) != 1 {
		t.Errorf("moved it is found as %+v", hit)
	}
}

// While somebody is inside, no segment is filled again: fills are dropped, not
// waited for. When all have left, they go on.
func TestNoSegmentFree(t *testing.T) {
	n := newNumbered(t, open(t, Config{}))
	n.set(1)
	n.c.Put(&n.key, n.msg, 0, 0)
	p := n.key.probe()
	g := n.c.epoch.enter(unsafe.Pointer(n))
	_, _, e := n.c.shard(p.hash).find(&p)
	before := append([]byte(nil), e.message()...)
	dropped := 0
	for i := range uint64(20_000) {
		n.set(i + 2)
		if n.c.Put(&n.key, n.msg, 0, 0) == NoRoom {
			dropped++
		}
	}
	if st := n.c.Stats(); dropped == 0 || st.Dropped != uint64(dropped) {
		t.Errorf("%d fills found no room, %d are counted", dropped, st.Dropped)
	}
	if string(before) != string(e.message()) {
		t.Error("what a reader looks at was written over")
	}
	g.leave()
	if n.set(1 << 20); n.c.Put(&n.key, n.msg, 0, 0) != Kept || !n.get() {
		t.Error("nothing is stored when readers have left")
	}
	consistent(t, n.c)
}

// consistent compares the numbers that a cache keeps with what is in it.
func consistent(t *testing.T, c *Cache) {
	t.Helper()
	entries, octets := 0, int64(0)
	for i := range c.shards {
		s := &c.shards[i]
		for j := range s.buckets {
			for k := range s.buckets[j] {
				v := s.buckets[j][k].Load()
				if v == 0 {
					continue
				}
				e := s.entry(slotOffset(v))
				entries++
				octets += int64(e.size())
				if h := s.home(e.hash); h != uint64(j) && h^1 != uint64(j) || v&tagMask != e.hash&tagMask {
					t.Errorf("shard %d, bucket %d leads to an entry that does not belong there", i, j)
				}
			}
		}
		if n := len(s.free) + len(s.retired) + s.small.len() + s.main.len(); n != len(s.segments) {
			t.Errorf("shard %d has %d segments, and knows of %d", i, len(s.segments), n)
		}
	}
	if st := c.Stats(); st.Entries != entries || st.Used != octets {
		t.Errorf("%+v, but there are %d entries with %d octets", st, entries, octets)
	}
}

// Readers, writers and those who flush, all at once: what is found is always the
// response to the question, whole.
func TestConcurrent(t *testing.T) {
	c := open(t, Config{})
	rounds := 40_000
	if raceDetector {
		rounds = 4000
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			w := newWorker(t, c)
			dice := rand.New(rand.NewPCG(1, uint64(worker)))
			for range rounds {
				w.turn(uint32(dice.IntN(6000)), dice)
			}
		})
	}
	wg.Go(func() {
		for i := range rounds / 1000 {
			if i%8 == 7 {
				c.FlushAll()
			}
			c.FlushTree(wire.Name("\x01" + string(rune('a'+i%16)) + "\x07example\x00"))
			c.Each(0, func(e Entry) bool {
				return len(e.Name) == len("\x08aaaabbbb\x01a\x07example\x00") || t.Failed() || fail(t, e.Name)
			})
			if _, err := c.Dump(discard{}, 0, time.Time{}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	consistent(t, c)
	c.FlushAll()
	if st := c.Stats(); st.Entries != 0 || st.Used != 0 {
		t.Errorf("after a flush there are %+v", st)
	}
}

func fail(t *testing.T, name wire.Name) bool {
	t.Errorf("listed as %s", name)
	return false
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// worker asks for names that are numbers: in the response to n there are n%30+1
// addresses, and all are n.
type worker struct {
	t     *testing.T
	c     *Cache
	query wire.Query
	reply wire.Builder
	msg   []byte
	buf   []byte
}

func newWorker(t *testing.T, c *Cache) *worker {
	return &worker{t: t, c: c, msg: make([]byte, 0, 4096), buf: make([]byte, 4096)}
}

func (w *worker) turn(n uint32, dice *rand.Rand) {
	const name = "\x08........\x01.\x07example\x00"
	msg := append(w.msg[:0], 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	msg = append(msg, name...)
	for i := range 8 {
		msg[13+i] = byte('a' + n>>(4*i)&15)
	}
	msg[22] = byte('a' + n%16)
	msg = append(msg, 0, 1, 0, 1)
	if err := w.query.Parse(msg); err != nil {
		w.t.Error(err)
		return
	}
	k := Key{Name: w.query.Name, Hash: w.query.Hash, Type: wire.TypeA, Class: wire.ClassIN}
	w.reply.Begin(&w.query, w.buf)
	if hit := w.c.Get(&k, 0, &w.reply, dice.IntN(2) == 0); hit.Verdict == Fresh {
		w.look(n)
		if dice.IntN(8) > 0 {
			return
		}
	}
	set := wire.RRset{Type: wire.TypeA, Class: wire.ClassIN, TTL: 300, Count: int(n%30) + 1}
	for range set.Count {
		set.RDATA = append(set.RDATA, 0, 4, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	sigs := wire.RRset{Type: wire.TypeRRSIG, Class: wire.ClassIN, TTL: 300, Count: 1, RDATA: append([]byte{0, 20}, make([]byte, 20)...)}
	w.reply.Begin(&w.query, w.buf)
	if n%3 == 0 {
		w.reply.Add(wire.Answer, w.query.Name, &set, &sigs)
	} else {
		w.reply.Add(wire.Answer, w.query.Name, &set, nil)
	}
	if got := w.c.Put(&k, w.reply.End(wire.NoError), 0, 0); got != Kept && got != NoRoom {
		w.t.Errorf("Put says %d", got)
	}
}

// look checks a response to n.
func (w *worker) look(n uint32) {
	var r wire.Response
	var rec wire.Record
	msg := w.reply.End(wire.NoError)
	r.Read(msg)
	count := uint32(0)
	for r.Next(&rec) {
		if rec.Type != wire.TypeA {
			continue
		}
		count++
		d := msg[rec.RDATA:rec.End]
		if got := uint32(d[0])<<24 | uint32(d[1])<<16 | uint32(d[2])<<8 | uint32(d[3]); got != n || rec.TTL != 300 {
			w.t.Errorf("in the response to %d stands %d with TTL %d", n, got, rec.TTL)
			return
		}
	}
	if !r.Whole() || count != n%30+1 {
		w.t.Errorf("the response to %d has %d addresses, whole %v", n, count, r.Whole())
	}
}
