// Package store keeps the zones that are managed through the API: their records,
// and the history of their changes, in one bbolt file. Every change is a
// transaction that is validated as a whole first and is on disk before it is
// confirmed. It answers no query and knows neither the API nor the configuration:
// whoever calls it (app, and through it the API) swaps in the zone.Zone that a
// change returns.
//
// Files in the order a change meets them: import.go and gather.go (a whole zone),
// edit.go (some RRsets), rules.go and serial.go (may it be), commit.go and chunk.go
// (onto the disk), history.go (back again), read.go and text.go (out of it).
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Errors of opening a store.
var (
	ErrDamaged = errors.New("zone store is damaged")
	ErrLocked  = errors.New("zone store is in use by another process")
	ErrFormat  = errors.New("zone store has a format that this version does not know")
)

// Errors of changes and questions.
var (
	ErrNoZone    = errors.New("no such zone in the store")
	ErrExists    = errors.New("zone is in the store already")
	ErrMatch     = errors.New("zone has changed: its serial is not the one expected")
	ErrSerial    = errors.New("serial is not newer than the present one (RFC 1982)")
	ErrNoVersion = errors.New("no such version in the zone's history")
	ErrClosed    = errors.New("zone store is closed")
)

// format is the version of the file's layout.
const format = "1"

// The layout: bucket meta has the format under its key; bucket zones has a bucket
// for each apex (wire format, letters folded) with the keys below.
var (
	metaBucket    = []byte("meta")
	formatKey     = []byte("format")
	zonesBucket   = []byte("zones")
	headKey       = []byte("head")    // JSON of head
	chunksBucket  = []byte("chunks")  // records, see chunk.go
	historyBucket = []byte("history") // JSON of Version by number
	diffsBucket   = []byte("diffs")   // changes that led to a version, by its number
)

// SerialPolicy is how a serial grows that nobody states.
type SerialPolicy uint8

// Policies of serials.
const (
	Increment SerialPolicy = iota // by one
	Date                          // YYYYMMDDnn of today, or by one where that is not newer
)

// Config is what a store is opened with.
type Config struct {
	Path     string // of the file; it is made where it is not there
	Serial   SerialPolicy
	Versions int           // of a zone's history that are kept, 1,000 if 0
	Octets   int64         // of a zone's history that are kept, 128 MiB if 0
	Wait     time.Duration // for another process to leave the file, 1 second if 0
	Now      func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Versions <= 0 {
		c.Versions = 1000
	}
	if c.Octets <= 0 {
		c.Octets = 128 << 20
	}
	if c.Wait <= 0 {
		c.Wait = time.Second
	}
	return c
}

// Store is an open store. Any number of goroutines may use it at once; changes of
// one zone wait for each other.
type Store struct {
	cfg Config
	db  *bbolt.DB

	mu    sync.Mutex       // guards turns
	turns map[string]*turn // zones that are being changed
}

// turn is a zone's lock, which waiting can leave.
type turn struct {
	free  chan struct{} // has a token while nobody changes the zone
	users int           // who hold it or wait for it
}

// Open opens the store, or makes it. Errors are ErrDamaged, ErrLocked, ErrFormat
// and those of the file.
func Open(cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	s := &Store{cfg: cfg, turns: map[string]*turn{}}
	err := guarded(func() error { return s.open() })
	if err != nil {
		if s.db != nil {
			_ = guarded(s.db.Close)
		}
		return nil, fmt.Errorf("opening zone store %s: %w", cfg.Path, err)
	}
	return s, nil
}

func (s *Store) open() error {
	if err := os.MkdirAll(filepath.Dir(s.cfg.Path), 0o750); err != nil {
		return fmt.Errorf("making its folder: %w", err)
	}
	info, err := os.Stat(s.cfg.Path)
	fresh := errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0
	s.db, err = bbolt.Open(s.cfg.Path, 0o600, &bbolt.Options{Timeout: s.cfg.Wait, FreelistType: bbolt.FreelistMapType})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return ErrLocked
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case err != nil:
		return err
	}
	if fresh {
		if err := s.initialise(); err != nil {
			return err
		}
		return syncFolder(filepath.Dir(s.cfg.Path))
	}
	return s.db.View(s.verify)
}

func (s *Store) initialise() error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucket(zonesBucket); err != nil {
			return err
		}
		return meta.Put(formatKey, []byte(format))
	})
}

// verify looks whether the file is a store of ours and whole as far as that costs
// nothing; chunks and differences have checksums of their own.
func (s *Store) verify(tx *bbolt.Tx) error {
	if info, err := os.Stat(s.cfg.Path); err != nil || info.Size() < tx.Size() {
		return fmt.Errorf("%w: the file is cut short", ErrDamaged)
	}
	meta := tx.Bucket(metaBucket)
	if meta == nil || tx.Bucket(zonesBucket) == nil {
		return fmt.Errorf("%w: it has no index of zones", ErrDamaged)
	}
	if have := string(meta.Get(formatKey)); have != format {
		return fmt.Errorf("%w: %q, not %q", ErrFormat, have, format)
	}
	return nil
}

// Close waits for transactions under way and closes the file.
func (s *Store) Close() error {
	if err := guarded(s.db.Close); err != nil {
		return fmt.Errorf("closing zone store %s: %w", s.cfg.Path, err)
	}
	return nil
}

// guarded calls do. bbolt maps the file and trusts its pages, so damage shows as a
// panic or as a fault of the memory map: both become ErrDamaged, and the server
// goes on.
func guarded(do func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return do()
}

// view runs a read transaction on the bucket of a zone.
func (s *Store) view(apex wire.Name, do func(b *bbolt.Bucket) error) error {
	return guarded(func() error {
		return closed(s.db.View(func(tx *bbolt.Tx) error {
			b := zoneBucket(tx, apex)
			if b == nil {
				return ErrNoZone
			}
			return do(b)
		}))
	})
}

// update runs a write transaction. When it returns without an error the change is
// on disk.
func (s *Store) update(do func(tx *bbolt.Tx) error) error {
	return guarded(func() error { return closed(s.db.Update(do)) })
}

func closed(err error) error {
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// zoneBucket is the bucket of a zone, nil where there is none.
func zoneBucket(tx *bbolt.Tx, apex wire.Name) *bbolt.Bucket {
	return tx.Bucket(zonesBucket).Bucket(apex.Fold())
}

// take waits for the zone's turn. The caller calls the result when it is done.
func (s *Store) take(ctx context.Context, apex wire.Name) (func(), error) {
	key := string(apex.Fold())
	s.mu.Lock()
	t := s.turns[key]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		s.turns[key] = t
	}
	t.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(s.turns, key)
		}
	}
	select {
	case <-t.free:
		return func() { t.free <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// head is the present state of a zone.
type head struct {
	Number  uint64    `json:"number"` // of the version
	Serial  uint32    `json:"serial"`
	Records int       `json:"records"`
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
	Oldest  uint64    `json:"oldest"` // number of the oldest version in the history
	Octets  int64     `json:"octets"` // of the differences in the history
}

// readHead reads the head of a zone's bucket.
func readHead(b *bbolt.Bucket) (head, error) {
	var h head
	if err := json.Unmarshal(b.Get(headKey), &h); err != nil {
		return h, fmt.Errorf("reading the zone's head: %w: %w", ErrDamaged, err)
	}
	return h, nil
}
