package netsets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSets notes what is written. The writer's goroutine and the test take turns,
// with Flush between them.
type fakeSets struct {
	about  about
	looks  int
	calls  []string // addresses of each add that went well, by set
	noSet  error
	refuse netip.Addr // fails, and with it all that go in with it
	narrow bool
}

func (f *fakeSets) look(*Target) (about, error) {
	f.looks++
	return f.about, f.noSet
}

func (f *fakeSets) add(t *Target, _ about, addrs []netip.Addr) (bool, error) {
	if f.noSet != nil {
		return false, f.noSet
	}
	if slices.Contains(addrs, f.refuse) {
		return false, errors.New("refused")
	}
	f.calls = append(f.calls, t.set+fmt.Sprint(addrs))
	return f.narrow || !f.about.interval, nil
}

func (f *fakeSets) close() error { return nil }

// bench is a writer to test, its sets, log and clock.
type bench struct {
	t    *testing.T
	sets *fakeSets
	log  bytes.Buffer
	now  atomic.Int64
	*Writer
	four, six *Target
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, sets: &fakeSets{about: about{interval: true}}}
	b.Writer = newWriter(func() time.Duration { return time.Duration(b.now.Load()) }, slog.New(slog.NewTextHandler(&b.log, nil)), b.sets)
	b.recent.secret = [2]uint64{0x9e3779b97f4a7c15, 0xd1b54a32d192ed03} // no two of a test meet in one slot
	all, err := ParseNFTSet("inet,t,s,ipv4_addr,24 inet,t,s6,ipv6_addr,48")
	if err != nil {
		t.Fatal(err)
	}
	b.four, b.six = &all[0], &all[1]
	return b
}

// start starts the writer's goroutine.
func (b *bench) start() *bench {
	go b.writeLoop()
	b.t.Cleanup(func() {
		if err := b.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return b
}

// add adds addresses to the target of their family, waits, and checks what was
// written since the last time.
func (b *bench) add(addrs string, want ...string) {
	b.t.Helper()
	for _, s := range strings.Fields(addrs) {
		a := netip.MustParseAddr(s)
		if b.four.Takes(a) {
			b.Add(b.four, a)
		} else {
			b.Add(b.six, a)
		}
	}
	b.flush()
	slices.Sort(b.sets.calls)
	if !slices.Equal(b.sets.calls, want) {
		b.t.Errorf("adding %s wrote %q, want %q", addrs, b.sets.calls, want)
	}
	b.sets.calls = nil
}

func (b *bench) flush() {
	b.t.Helper()
	if err := b.Flush(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) counts(want Counts) {
	b.t.Helper()
	if got := b.Counts(); got != want {
		b.t.Errorf("counts %+v, want %+v", got, want)
	}
}

func (b *bench) logged(want int) {
	b.t.Helper()
	if got := strings.Count(b.log.String(), "\n"); got != want {
		b.t.Errorf("%d lines in the log, want %d:\n%s", got, want, &b.log)
	}
}

func (b *bench) pass(d time.Duration) { b.now.Add(int64(d)) }

// What waits in the queue is written in one go, by set and in order.
func TestBatch(t *testing.T) {
	b := newBench(t)
	for _, s := range []string{"192.0.2.9", "192.0.2.1", "192.0.2.9"} {
		b.Add(b.four, netip.MustParseAddr(s))
		b.Add(b.six, netip.MustParseAddr("2001:db8::"+s[8:]))
	}
	b.Add(b.four, netip.MustParseAddr("2001:db8::1")) // of the other family
	b.start().add("", "s6[2001:db8::1 2001:db8::9]", "s[192.0.2.1 192.0.2.9]")
	b.counts(Counts{Written: 4})
	b.logged(0)
}

func TestRecent(t *testing.T) {
	b := newBench(t).start()
	b.add("192.0.2.1", "s[192.0.2.1]")
	b.add("192.0.2.1 192.0.2.200") // of the same prefix
	b.add("192.0.3.1 2001:db8::1", "s6[2001:db8::1]", "s[192.0.3.1]")
	b.pass(keepWritten - 1)
	b.add("192.0.2.1")
	b.pass(1)
	b.add("192.0.2.2", "s[192.0.2.2]")

	b.sets.about.interval = false // single addresses
	b.pass(keepWritten)
	b.add("192.0.2.1", "s[192.0.2.1]")
	b.add("192.0.2.1 192.0.2.2", "s[192.0.2.2]")

	b.sets.about = about{interval: true, timeout: 20 * time.Second} // of an element
	b.pass(keepWritten)
	b.add("192.0.2.1", "s[192.0.2.1]")
	b.pass(5*time.Second - 1)
	b.add("192.0.2.1")
	b.pass(1)
	b.add("192.0.2.1", "s[192.0.2.1]")
}

// Equal targets of two rules, or of two configurations, are one.
func TestEqualTargets(t *testing.T) {
	b := newBench(t).start()
	b.add("192.0.2.1", "s[192.0.2.1]")
	again := *b.four
	b.four = &again
	b.add("192.0.2.1")
	again.bits = 25
	b.add("192.0.2.1", "s[192.0.2.1]")
}

// Where a prefix did not fit, its other addresses are tried too.
func TestNarrow(t *testing.T) {
	b := newBench(t).start()
	b.sets.narrow = true
	b.add("192.0.2.1", "s[192.0.2.1]")
	b.add("192.0.2.1 192.0.2.2", "s[192.0.2.2]")
}

// A set is looked for again after a second, and what was written to an earlier
// one is forgotten.
func TestNewSet(t *testing.T) {
	b := newBench(t).start()
	b.sets.about.handle = 1
	b.add("192.0.2.1 192.0.3.1", "s[192.0.2.1 192.0.3.1]")
	b.pass(lookAgain - 1)
	b.add("192.0.4.1", "s[192.0.4.1]")
	if b.sets.looks != 1 {
		t.Errorf("looked %d times within a second", b.sets.looks)
	}
	b.sets.about.handle = 2
	b.pass(1)
	b.add("192.0.5.1", "s[192.0.5.1]")
	b.add("192.0.2.1 192.0.5.1", "s[192.0.2.1]")
	if b.sets.looks != 2 {
		t.Errorf("looked %d times", b.sets.looks)
	}
}

func TestMissingSet(t *testing.T) {
	b := newBench(t).start()
	b.add("192.0.2.1", "s[192.0.2.1]")
	b.sets.noSet = errors.New("gone")
	b.add("192.0.3.1 192.0.3.2")
	b.add("2001:db8::1")
	b.logged(2) // of two targets
	b.pass(logAgain - 1)
	b.add("192.0.3.1")
	b.logged(2)
	b.pass(1)
	b.add("192.0.3.1")
	b.logged(3)
	if last := b.log.String(); !strings.Contains(last, "addresses=2 error=gone") || !strings.Contains(last, `set="nftables set inet t s"`) {
		t.Errorf("logged %s", last)
	}
	b.counts(Counts{Written: 1, Failed: 5})
	b.sets.noSet = nil
	b.add("192.0.2.1 192.0.3.1", "s[192.0.2.1 192.0.3.1]") // the set's return ends the memory of what the old one had
}

// An address that cannot be added takes no other with it.
func TestOneFails(t *testing.T) {
	b := newBench(t)
	b.sets.refuse = netip.MustParseAddr("192.0.3.1")
	for _, s := range []string{"192.0.2.1", "192.0.3.1", "192.0.4.1"} {
		b.Add(b.four, netip.MustParseAddr(s))
	}
	b.start().add("", "s[192.0.2.1]", "s[192.0.4.1]")
	b.counts(Counts{Written: 2, Failed: 1})
	b.logged(1)
}

// A system without sets is told of once.
func TestNoSystem(t *testing.T) {
	b := newBench(t).start()
	b.sets.noSet = errSystem
	b.add("192.0.2.1")
	b.pass(10 * logAgain)
	b.add("192.0.2.1")
	b.logged(1)
}

func TestQueueFull(t *testing.T) {
	b := newBench(t)
	for i := range queueSize + 3 {
		b.Add(b.four, netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}))
	}
	b.counts(Counts{Dropped: 3})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Flush with a full queue: %v", err)
	}
	b.start().flush()
	b.counts(Counts{Written: queueSize, Dropped: 3})
	if n := len(b.sets.calls); n != queueSize/batchSize {
		t.Errorf("written in %d goes, want %d", n, queueSize/batchSize)
	}
}

// Close writes what was added.
func TestClose(t *testing.T) {
	b := newBench(t)
	b.Add(b.four, netip.MustParseAddr("192.0.2.1"))
	go b.writeLoop()
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	b.counts(Counts{Written: 1})
	b.Add(b.four, netip.MustParseAddr("192.0.3.1"))
	if err := b.Flush(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("Flush behind Close: %v", err)
	}
	b.counts(Counts{Written: 1})
}

// What is remembered of targets stays bounded over many configurations.
func TestManyTargets(t *testing.T) {
	b := newBench(t).start()
	for i := range 3 * maxStates {
		all, err := ParseIPSet(fmt.Sprintf("s%d,inet,24", i))
		if err != nil {
			t.Fatal(err)
		}
		b.Add(&all[0], netip.MustParseAddr("192.0.2.1"))
	}
	b.flush()
	if n := len(b.states); n > maxStates {
		t.Errorf("%d targets are remembered", n)
	}
	b.counts(Counts{Written: 3 * maxStates})
}

func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	b := newBench(t)
	i := 0
	check := func(what string) {
		t.Helper()
		if n := testing.AllocsPerRun(200, func() {
			i++
			b.Add(b.four, netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}))
			b.Add(b.six, netip.MustParseAddr("2001:db8::1"))
		}); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	check("queued")
	for len(b.queue) < queueSize {
		b.Add(b.four, netip.MustParseAddr("10.255.0.1"))
	}
	check("dropped")
	b.start().flush()
	i = 0
	check("known")
}

func BenchmarkAddKnown(b *testing.B) {
	w := newWriter(func() time.Duration { return 0 }, slog.New(slog.DiscardHandler), &fakeSets{})
	all, err := ParseIPSet("s,inet,24")
	if err != nil {
		b.Fatal(err)
	}
	a := netip.MustParseAddr("192.0.2.1")
	w.recent.put(&all[0], all[0].prefix(a), 1)
	b.ReportAllocs()
	for b.Loop() {
		w.Add(&all[0], a)
	}
}
