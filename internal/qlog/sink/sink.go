// Package sink sends rows of the query log elsewhere: dnstap, syslog, JSON lines,
// ClickHouse. It is not the log itself, which package qlog keeps, and has no say in
// which queries are logged. app opens the sinks of a configuration; package qlog
// hands them rows. A sink never makes its caller wait: it has a queue of bounded
// size, and what does not fit is dropped and counted.
package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/waymark-dns/waymark/internal/qlog"
)

const (
	// drainLimit is how long Close waits for a peer to take what is queued: less than
	// service managers wait before they kill.
	drainLimit = 5 * time.Second
	// graceLimit is how long Close then waits for a system call that cannot be broken
	// off, such as a write to a pipe that nobody reads.
	graceLimit = time.Second
	// hurry is the longest pause between tries while Close waits.
	hurry = 250 * time.Millisecond
)

// Env is what a sink needs of its surroundings. Only Wall must be given.
type Env struct {
	Log    *slog.Logger     // where a peer that goes away or comes back is told; nil is nowhere
	Wall   func() time.Time // the time of day
	Stdout io.Writer        // nil is os.Stdout

	// Dial connects; nil is a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// outlet is the far end of a sink. The sink's goroutine alone calls it.
type outlet interface {
	// send sends what is left of b and says how many of its items, from the first on,
	// need not be sent again. It returns soon after ctx ends.
	send(ctx context.Context, b *batch) (items int, err error)
	// close says goodbye to the peer and frees what the outlet has.
	close(ctx context.Context) error
}

var errStuck = errors.New("it is still writing")

// refusedError is the peer's word that it will never take a batch.
type refusedError struct{ error }

// parts is what kinds of sinks differ in.
type parts struct {
	encode encoder
	out    outlet
	spill  *spill        // nil: what cannot be sent waits in the queue alone
	rows   int           // of a batch
	linger time.Duration // how long a batch may wait to become full
}

// Sink is one open sink.
type Sink struct {
	name string
	log  *slog.Logger
	parts
	queue  queue
	counts counts

	once   sync.Once
	err    error           // of Close, which alone sets it
	stop   chan struct{}   // closed by Close
	done   chan struct{}   // closed when sendLoop has ended
	ctx    context.Context // ends when Close has waited long enough
	cancel context.CancelFunc

	// Of sendLoop.
	away  bool // the last try failed
	pause backoff
	again *time.Timer // when to look at the spill folder; nil: there is no need
	lost  int         // rows dropped since Close was called
	end   error       // how it went; to be read when done is closed
}

// Open opens a sink. Config.Check has found no problem in c. No peer need be there
// yet; what cannot be read or created on this machine is an error. The caller closes
// the sink.
func Open(c Config, env Env) (*Sink, error) {
	if env.Log == nil {
		env.Log = slog.New(slog.DiscardHandler)
	}
	if env.Dial == nil {
		env.Dial = new(net.Dialer).DialContext
	}
	if env.Stdout == nil {
		env.Stdout = os.Stdout
	}
	k := kindOf(c.Kind)
	if k == nil {
		return nil, fmt.Errorf("opening a sink: unknown kind %q", c.Kind)
	}
	p, err := k.open(c, env)
	if err != nil {
		return nil, fmt.Errorf("opening the sink %s: %w", c.Name(), err)
	}
	s := &Sink{name: c.Name(), log: env.Log.With("sink", c.Name()), parts: p, stop: make(chan struct{}), done: make(chan struct{})}
	s.queue.init(int(c.Queue), p.rows)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.sendLoop() // until Close, which waits for it
	return s, nil
}

// Name is the kind and where to, as Config.Name.
func (s *Sink) Name() string { return s.name }

// Put queues rows; it never waits for the peer. What does not fit is dropped and
// counted, and so is everything after Close. The rows are the caller's again when Put
// returns. It may be called by many goroutines.
func (s *Sink) Put(rows []qlog.Row) {
	s.counts.dropped.Add(uint64(s.queue.put(rows, s.encode)))
}

// Close sends what is queued, for at most five seconds, and ends the sink. What the
// peer does not take is spilled where there is a spill folder, and otherwise an error.
// It may be called more than once.
func (s *Sink) Close() error {
	s.once.Do(func() {
		s.queue.close()
		close(s.stop)
		ended := s.ended(drainLimit)
		s.cancel()
		err := errStuck
		if ended || s.ended(graceLimit) {
			err = s.end
		}
		if err != nil {
			s.err = fmt.Errorf("closing the sink %s: %w", s.name, err)
		}
	})
	return s.err
}

// ended waits for sendLoop, but not longer than limit.
func (s *Sink) ended(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-s.done:
		return true
	case <-t.C:
		return false
	}
}

// sendLoop takes batches from the queue until Close.
func (s *Sink) sendLoop() {
	defer close(s.done)
	s.claim()
	for {
		due, probe := s.gather()
		if !s.stopping() && s.spill.holding() && (probe || !s.away) {
			s.unspill()
		}
		if !due {
			continue
		}
		switch b := s.queue.take(); {
		case b != nil:
			s.deliver(b)
			s.queue.settle(b)
		case s.stopping():
			s.finish()
			return
		}
	}
}

// gather waits until there is something to do. due: there is a batch that should wait
// no longer, or the end has come. probe: it is time to try a peer that was away. When
// both are false there are spilled batches for a peer that is there.
func (s *Sink) gather() (due, probe bool) {
	var linger, again <-chan time.Time
	for {
		waiting, full := s.queue.state()
		switch {
		case full || waiting && s.linger == 0 || s.stopping():
			return true, false
		case !s.away && s.spill.holding():
			return false, false
		}
		if waiting && linger == nil {
			t := time.NewTimer(s.linger)
			defer t.Stop() // once: linger is set now
			linger = t.C
		}
		if s.again != nil {
			again = s.again.C
		}
		select {
		case <-s.queue.wake:
		case <-s.stop:
		case <-linger:
			return true, false
		case <-again:
			s.again = nil
			s.claim()
			return false, true
		}
	}
}

// deliver sends a batch, spills it, or drops it at the end.
func (s *Sink) deliver(b *batch) {
	for b.left() > 0 {
		if s.away && s.spill.holding() && s.keep(b) {
			return
		}
		n, err := s.out.send(s.ctx, b)
		s.counts.sent.Add(uint64(n))
		b.skip(n)
		switch {
		case err == nil:
			s.back()
		case s.refused(err):
			s.drop(b.left())
			return
		default:
			s.failed(err)
			if s.keep(b) {
				return
			}
			if !s.wait() {
				s.drop(b.left())
				return
			}
		}
	}
}

// unspill sends the oldest batch of the spill folder.
func (s *Sink) unspill() {
	b, err := s.spill.oldest()
	if err != nil {
		s.counts.errors.Add(1)
		s.log.Warn("a spilled batch of the query log is lost", "err", err)
		s.drop(s.spill.remove())
		return
	}
	_, err = s.out.send(s.ctx, b)
	switch {
	case err == nil:
		s.back()
		s.counts.sent.Add(uint64(s.spill.remove()))
	case s.refused(err):
		s.drop(s.spill.remove())
	default:
		s.failed(err)
		s.arm()
	}
	s.counts.disk.Store(s.spill.size())
}

// keep spills what is left of b; false: it cannot.
func (s *Sink) keep(b *batch) bool {
	if s.spill == nil || !s.claim() {
		return false
	}
	lost, err := s.spill.put(b)
	s.drop(lost)
	s.counts.disk.Store(s.spill.size())
	if err != nil {
		s.counts.errors.Add(1)
		s.log.Warn("spilling the query log failed", "err", err)
		return false
	}
	s.counts.spilled.Add(uint64(b.left()))
	s.arm()
	return true
}

// claim makes the spill folder ours, which another sink may still be using, as after
// a reload.
func (s *Sink) claim() bool {
	if s.spill == nil {
		return false
	}
	err := s.spill.claim()
	if err == nil {
		s.counts.disk.Store(s.spill.size())
		return true
	}
	s.arm()
	if !errors.Is(err, errClaimed) {
		s.counts.errors.Add(1)
		s.log.Warn("the spill folder of the query log cannot be used", "err", err)
	}
	return false
}

// arm sets the time of the next look at the spill folder, if none is set.
func (s *Sink) arm() {
	if s.again == nil {
		s.again = time.NewTimer(s.pause.next())
	}
}

// wait pauses before the next try; false: there is none, as Close has waited long
// enough.
func (s *Sink) wait() bool {
	pause, stop := s.pause.next(), s.stop
	if s.stopping() {
		pause, stop = min(pause, hurry), nil
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-stop:
	case <-s.ctx.Done():
	}
	return s.ctx.Err() == nil
}

// failed notes a try that failed.
func (s *Sink) failed(err error) {
	s.counts.errors.Add(1)
	s.counts.connected.Store(false)
	if !s.away {
		s.log.Warn("the query log cannot be sent; it is tried again", "err", err)
	}
	s.away = true
}

// back notes a try that did not fail.
func (s *Sink) back() {
	s.pause = backoff{}
	s.counts.connected.Store(true)
	if s.away {
		s.away = false
		s.log.Info("the query log is sent again", "dropped", s.counts.dropped.Load())
	}
}

// refused tells whether a batch is not to be sent again.
func (s *Sink) refused(err error) bool {
	if _, ok := errors.AsType[refusedError](err); !ok {
		return false
	}
	s.counts.errors.Add(1)
	s.log.Warn("the peer refuses a batch of the query log", "err", err)
	return true
}

func (s *Sink) drop(rows int) {
	s.counts.dropped.Add(uint64(rows))
	if s.stopping() {
		s.lost += rows
	}
}

// finish ends the loop.
func (s *Sink) finish() {
	if s.again != nil {
		s.again.Stop()
	}
	err := s.out.close(s.ctx)
	if s.lost > 0 {
		err = errors.Join(err, fmt.Errorf("%d rows were not sent", s.lost))
	}
	if s.spill != nil {
		err = errors.Join(err, s.spill.close())
	}
	s.counts.connected.Store(false)
	s.end = err
}

func (s *Sink) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}
