package qlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/waymark-dns/waymark/internal/durable"
)

// Config is how a log is kept.
type Config struct {
	Dir     string        // of its files; it is made where its parent is there
	Keep    int64         // octets of all files; beyond that the oldest go
	Age     time.Duration // of the oldest rows; 0 is any
	Privacy Privacy
	Without Without
	Names   Names
	Sinks   []Sink
	Now     func() time.Duration // as Request.At
	Wall    func() time.Time
	Log     *slog.Logger // of the program
}

// Without says what is left out of rows.
type Without struct{ ClientPorts, Answers bool }

// Sink is where rows go besides the files.
type Sink interface {
	// Put takes rows, which it may not keep. It never waits: what a sink has no room
	// for it drops and counts.
	Put(rows []Row)
	// Close sends what there is, for a bounded time.
	Close() error
}

// Times of the log.
const (
	flushEvery = time.Second      // as much is lost when the program is killed
	segmentAge = 15 * time.Minute // of rows that are not in a segment yet
	leastWait  = time.Millisecond // between two looks at the rings
	mostWait   = 50 * time.Millisecond
)

// Log is a log that is kept. Its methods may be called by any goroutine.
type Log struct {
	cfg    Config
	lock   *os.File // of the folder, while the log is open
	scribe scribe
	keeper keeper

	requests chan func() // for the writer
	jobs     chan job    // for who makes segments
	spare    chan *table // that it is done with
	ctx      context.Context
	stop     context.CancelFunc
	writer   sync.WaitGroup
	maker    sync.WaitGroup

	mu    sync.Mutex // guards what follows
	rings []*Ring
	feeds []*Feed

	written atomic.Uint64 // rows
	lost    atomic.Uint64 // rows that no disk had room for

	writerState
}

// writerState is the writer's own.
type writerState struct {
	table   *table
	tail    tailFile
	flushed time.Duration // when the tail was last written
	begun   time.Duration // when the table got its first row
	wait    time.Duration
	rows    []Row // for feeds and sinks
	add     func(*Record)
}

// Open opens the log of a folder, and makes segments of what was left there.
func Open(c Config) (*Log, error) {
	if err := os.Mkdir(c.Dir, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("opening the query log: %w", err)
	}
	lock, err := lockDir(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the query log: %w", err)
	}
	l, err := open(c, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return l, nil
}

// lockFile makes sure that one program writes to a folder: two would take each other's
// tails for those of a run that is over.
const lockFile = "lock"

const lockText = "waymark-lock 1\n"

func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	if err := durable.Lock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: another program writes its log here; name another folder (%w)", dir, err), f.Close())
	}
	_, err = f.WriteAt([]byte(lockText), 0)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = nil // the lock counts, not what is in the file
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func open(c Config, lock *os.File) (*Log, error) {
	l := &Log{
		lock: lock, cfg: c, requests: make(chan func()), jobs: make(chan job, 1), spare: make(chan *table, 1),
		scribe: scribe{names: c.Names, privacy: privacy{level: c.Privacy}},
		keeper: keeper{dir: c.Dir, keep: c.Keep, age: c.Age, log: c.Log, wall: c.Wall, create: createFile},
	}
	if c.Privacy == Pseudonyms {
		key, err := openKey(c.Dir)
		if err != nil {
			return nil, err
		}
		l.scribe.privacy.key = key
	}
	if err := l.keeper.open(); err != nil {
		return nil, fmt.Errorf("opening the query log: %w", err)
	}
	enc, err := newEncoder()
	if err != nil {
		return nil, err
	}
	l.table, l.wait = newTable(), mostWait
	l.tail = tailFile{keeper: &l.keeper}
	l.spare <- newTable()
	l.flushed = c.Now()
	l.add = func(rec *Record) {
		if c.Without.ClientPorts {
			rec.Port = 0
		}
		l.table.add(rec, &l.scribe)
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.writer.Go(func() { l.writeLoop(l.ctx) })
	l.maker.Go(func() { l.makeLoop(enc) })
	return l, nil
}

// Add makes the log read rings that it does not read yet.
func (l *Log) Add(rings ...*Ring) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range rings {
		if !slices.Contains(l.rings, g) {
			g.Attach(!l.cfg.Without.Answers)
			l.rings = append(l.rings, g)
		}
	}
}

// Close writes what there is, closes the sinks and ends the log. Rings are not read
// any more: what comes is dropped and counted, until another log reads them.
func (l *Log) Close() error {
	l.stop()
	l.writer.Wait()
	close(l.jobs)
	l.maker.Wait()
	var errs []error
	for _, s := range l.cfg.Sinks {
		errs = append(errs, s.Close())
	}
	errs = append(errs, l.lock.Close())
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.feeds {
		f.close()
	}
	l.feeds = nil
	for _, g := range l.rings {
		g.Detach()
	}
	l.rings = nil
	return errors.Join(errs...)
}

// writeLoop drains the rings: often where much comes, seldom where little does.
func (l *Log) writeLoop(ctx context.Context) {
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			l.turn()
			l.finish()
			return
		case do := <-l.requests:
			do()
		case <-timer.C:
			l.turn()
			timer.Reset(l.wait)
		}
	}
}

// turn drains the rings once and writes what is due.
func (l *Log) turn() {
	now := l.cfg.Now()
	l.scribe.epoch = l.cfg.Wall().UnixMicro() - int64(now/time.Microsecond)
	l.mu.Lock()
	rings, feeds := l.rings, l.feeds
	l.mu.Unlock()
	before, used := len(l.table.rows), 0
	for _, g := range rings {
		used = max(used, g.Drain(l.add))
	}
	switch {
	case used > RingSize/4:
		l.wait = leastWait
	case used > RingSize/16:
		l.wait = max(l.wait/2, leastWait)
	case used < RingSize/64:
		l.wait = min(2*l.wait, mostWait)
	}
	if n := len(l.table.rows) - before; n > 0 {
		if before == 0 {
			l.begun = now
		}
		l.table.sortFrom(before)
		l.written.Add(uint64(n))
		l.tell(feeds, before)
	}
	full := l.table.full()
	if full || now-l.flushed >= flushEvery {
		l.flushed = now
		l.flush()
		l.keeper.retain(l.tail.size)
	}
	if full || len(l.table.rows) > 0 && (now-l.begun >= segmentAge || l.keeper.large(l.tail.size)) {
		l.finish()
	}
}

// tell hands the rows from that one on to feeds and sinks.
func (l *Log) tell(feeds []*Feed, from int) {
	if len(feeds)+len(l.cfg.Sinks) == 0 {
		return
	}
	l.rows = l.rows[:0]
	for i := from; i < len(l.table.rows); i++ {
		l.rows = append(l.rows, l.table.row(i))
	}
	for _, s := range l.cfg.Sinks {
		s.Put(l.rows)
	}
	for _, f := range feeds {
		f.put(l.rows)
	}
}

// flush writes what is new to the tail. What could not be written is written the next
// time.
func (l *Log) flush() {
	if len(l.table.rows) == l.tail.mark.rows {
		return
	}
	if err := l.tail.write(l.table); err != nil {
		l.keeper.warn("writing the query log failed; it is tried again each second", err)
	}
}

// finish makes a segment of the table. Where one is being made, it waits for that.
func (l *Log) finish() {
	l.flush()
	if len(l.table.rows) == 0 {
		return
	}
	full := l.table
	l.table = <-l.spare
	l.jobs <- job{table: full, tail: l.tail.leave(full)}
}

// Sync has everything that rings had published before the call in the files when it
// returns.
func (l *Log) Sync(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case l.requests <- func() { l.turn(); l.flush(); close(done) }:
		<-done
		return nil
	case <-l.ctx.Done():
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats is what a log has done.
type Stats struct {
	Rows     uint64 // written
	Dropped  uint64 // by rings that were full
	Lost     uint64 // rows that could not be written before there were too many
	Files    int
	Octets   int64 // of all files
	Failures uint64
}

// Stats is what the log has done so far.
func (l *Log) Stats() Stats {
	s := Stats{Rows: l.written.Load(), Lost: l.lost.Load(), Failures: l.keeper.failures.Load()}
	l.mu.Lock()
	for _, g := range l.rings {
		s.Dropped += g.Dropped()
	}
	l.mu.Unlock()
	s.Files, s.Octets = l.keeper.held()
	return s
}
