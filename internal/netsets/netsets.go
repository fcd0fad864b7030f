// Package netsets adds addresses to sets of the kernel, ipsets and sets of
// nftables, in the background: a firewall or a routing table then treats them as
// its owner wants. It makes no sets and removes nothing from them, and knows
// neither names nor policy. Actions of the policy call it, app owns the Writer.
//
// A Writer's life: Add puts an address into the queue, writeLoop takes all that
// is there at once, sorts it by target and writes each target's part in one
// transaction. What was written is remembered for a minute and not written
// again.
package netsets

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	queueSize = 4096
	batchSize = 256 // two elements each, in one attribute of at most 64 KiB

	// lookAgain is how long what is known of a set holds. A set that was made anew
	// shows by then.
	lookAgain = time.Second
	// keepWritten is how long a set is trusted to keep what was written to it,
	// where its elements have no shorter time of their own.
	keepWritten = time.Minute
	// logAgain is how often the failures of one target are logged.
	logAgain = time.Minute
	// maxStates bounds what is remembered of targets: more than one configuration
	// has, so that those of earlier ones go.
	maxStates = 256
)

var (
	errClosed = errors.New("the writer of kernel sets is closed")
	errSystem = errors.New("this system has neither ipsets nor nftables: nothing is added to sets")
)

// sets is the kernel's sets: of this system, or of a test. One goroutine calls.
type sets interface {
	// look finds a set and says what it is like.
	look(t *Target) (about, error)
	// add puts addresses into a set: all, or perhaps none where it fails. It is
	// narrow where less went in than the prefixes that the target makes of them.
	add(t *Target, s about, addrs []netip.Addr) (narrow bool, err error)
	close() error
}

// about is what is known of a set.
type about struct {
	interval bool          // takes prefixes
	timeout  time.Duration // of an element; 0 is for ever
	handle   uint64        // another where the set was made anew; 0 where the kernel tells none
}

// Writer adds addresses to sets. Its methods may be called at once from many
// goroutines.
type Writer struct {
	now func() time.Duration
	log *slog.Logger

	queue  chan job
	recent *recent
	stop   chan struct{}
	ended  chan struct{} // writeLoop has
	once   sync.Once

	written, failed, dropped atomic.Uint64

	// Of writeLoop.
	sets   sets
	states map[Target]*state
	batch  []job
	addrs  []netip.Addr
}

// job is one address for a target, or the wish to be told that all before it are
// written.
type job struct {
	target *Target
	addr   netip.Addr
	done   chan struct{}
}

// state is what the writer knows of a target.
type state struct {
	about  about
	known  bool // about is of the set as it was at looked
	looked time.Duration
	seen   bool // a handle was seen

	told   bool // of a failure, at toldAt
	toldAt time.Duration
	untold uint64 // addresses that failed since then
	muted  bool   // nothing more is to be said
}

// NewWriter starts a writer. now is the time since any one moment. Nothing of the
// kernel is touched before the first address comes.
func NewWriter(now func() time.Duration, log *slog.Logger) *Writer {
	w := newWriter(now, log, newSets())
	go w.writeLoop() // Close ends it and waits for it
	return w
}

func newWriter(now func() time.Duration, log *slog.Logger, s sets) *Writer {
	return &Writer{
		now: now, log: log,
		queue: make(chan job, queueSize), recent: newRecent(),
		stop: make(chan struct{}), ended: make(chan struct{}),
		sets: s, states: map[Target]*state{},
	}
}

// Add has the address written to the target's set, soon. It never waits: where
// the queue is full the address is dropped and counted. The address must be of
// the family that t.Takes says; others are ignored. The writer keeps t.
func (w *Writer) Add(t *Target, a netip.Addr) {
	if !t.Takes(a) || w.recent.has(t, a, w.now()) {
		return
	}
	select {
	case w.queue <- job{target: t, addr: a}:
	default:
		w.dropped.Add(1)
	}
}

// Flush waits until what was added before is written, or has failed. Its error is
// that of ctx, or that the writer is closed.
func (w *Writer) Flush(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case w.queue <- job{done: done}:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.ended:
		return errClosed
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.ended:
		return errClosed
	}
}

// Close writes what was added and ends the writer. Add does nothing afterwards.
func (w *Writer) Close() error {
	w.once.Do(func() { close(w.stop) })
	<-w.ended
	return w.sets.close()
}

// Counts are addresses since the writer began.
type Counts struct {
	Written uint64 // into sets; those that were there lately are not written again
	Failed  uint64 // because of the set, or the right to write to it
	Dropped uint64 // because the queue was full
}

// Counts is what the writer has done.
func (w *Writer) Counts() Counts {
	return Counts{Written: w.written.Load(), Failed: w.failed.Load(), Dropped: w.dropped.Load()}
}

// writeLoop writes what is in the queue until it is told to stop and the queue is
// empty.
func (w *Writer) writeLoop() {
	defer close(w.ended)
	for {
		select {
		case j := <-w.queue:
			w.take(j)
		case <-w.stop:
			for {
				select {
				case j := <-w.queue:
					w.take(j)
				default:
					return
				}
			}
		}
	}
}

// take writes one job and those behind it that are there already.
func (w *Writer) take(j job) {
	w.batch = w.batch[:0]
	for more := true; more && j.done == nil; {
		w.batch = append(w.batch, j)
		j = job{}
		if len(w.batch) == batchSize {
			break
		}
		select {
		case j = <-w.queue:
		default:
			more = false
		}
	}
	w.writeBatch()
	if j.done != nil {
		close(j.done)
	}
}

// writeBatch sorts the batch by target and address, and writes it without those
// that are in their sets by now.
func (w *Writer) writeBatch() {
	slices.SortFunc(w.batch, func(a, b job) int {
		return cmp.Or(cmp.Compare(a.target.sum, b.target.sum), a.addr.Compare(b.addr))
	})
	for i := 0; i < len(w.batch); {
		t, now := w.batch[i].target, w.now()
		w.addrs = w.addrs[:0]
		for ; i < len(w.batch) && *w.batch[i].target == *t; i++ {
			if !w.recent.has(t, w.batch[i].addr, now) {
				w.addrs = append(w.addrs, w.batch[i].addr)
			}
		}
		if w.addrs = slices.Compact(w.addrs); len(w.addrs) > 0 {
			w.write(t, w.addrs)
		}
	}
}

// write adds addresses to one set: all in one go, and where that fails one by
// one, so that one that cannot be added takes no other with it.
func (w *Writer) write(t *Target, addrs []netip.Addr) {
	s := w.state(t)
	if w.now()-s.looked >= lookAgain {
		s.known = false
	}
	if !s.known && !w.look(t, s, len(addrs)) {
		return
	}
	if narrow, err := w.sets.add(t, s.about, addrs); err == nil {
		w.wrote(t, s, addrs, narrow)
		return
	}
	if !w.look(t, s, len(addrs)) {
		return
	}
	for i, a := range addrs {
		if narrow, err := w.sets.add(t, s.about, addrs[i:i+1]); err != nil {
			w.fail(t, s, 1, err)
		} else {
			w.wrote(t, s, []netip.Addr{a}, narrow)
		}
	}
}

// look learns what a set is like. It is false where there is no such set: n
// addresses cannot be added.
func (w *Writer) look(t *Target, s *state, n int) bool {
	now, err := w.sets.look(t)
	if err != nil {
		s.known = false
		w.recent.forget(t)
		w.fail(t, s, n, err)
		return false
	}
	if s.seen && now.handle != s.about.handle {
		w.recent.forget(t)
	}
	s.about, s.known, s.seen, s.looked = now, true, true, w.now()
	return true
}

// wrote remembers what is in a set now.
func (w *Writer) wrote(t *Target, s *state, addrs []netip.Addr, narrow bool) {
	w.written.Add(uint64(len(addrs)))
	keep := keepWritten
	if s.about.timeout > 0 {
		keep = min(keep, s.about.timeout/4) // in good time before it goes
	}
	until := w.now() + keep
	for _, a := range addrs {
		p := netip.PrefixFrom(a, a.BitLen())
		if s.about.interval && !narrow {
			p = t.prefix(a)
		}
		w.recent.put(t, p, until)
	}
}

// fail counts addresses that could not be added, and says so once in a while.
func (w *Writer) fail(t *Target, s *state, n int, err error) {
	w.failed.Add(uint64(n))
	s.untold += uint64(n)
	now := w.now()
	if s.muted || s.told && now-s.toldAt < logAgain {
		return
	}
	w.log.Warn("adding to a set of the kernel failed", "set", t.String(), "addresses", s.untold, "error", err)
	s.told, s.toldAt, s.untold = true, now, 0
	s.muted = errors.Is(err, errSystem)
}

func (w *Writer) state(t *Target) *state {
	s := w.states[*t]
	if s == nil {
		if len(w.states) == maxStates {
			clear(w.states)
		}
		s = &state{}
		w.states[*t] = s
	}
	return s
}
