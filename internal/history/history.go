// Package history changes the configuration file of a running server with a safety
// net: a text is checked, kept as a version, written whole or not at all, and taken
// back by itself where the server does not take it, where nobody confirms it in time,
// or where the server stops before that. It reads no configuration and serves
// nothing: app hands in how a text is checked and how the server reloads; the API and
// the command line call it, and cmd calls Recover before it reads a configuration.
//
// A configuration may include other files. They are checked as they stand; versions
// are of the main file alone.
package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/durable"
	"github.com/waymark-dns/waymark/internal/plan"
)

// What keeps a configuration from being changed.
var (
	ErrOff       = errors.New("no history is kept, so that nothing could be taken back: add history: {dir: …} to the configuration and start the server again")
	ErrClosed    = errors.New("the server is stopping")
	ErrNoMatch   = errors.New("which text is to be replaced was not said")
	ErrChanged   = errors.New("the file is not the one that was meant: it has been changed meanwhile")
	ErrPending   = errors.New("a change waits for its confirmation: confirm it or take it back first")
	ErrConfirm   = fmt.Errorf("the time to confirm in must be at most %v, and not below 0", maxConfirm)
	ErrNotWaits  = errors.New("no such change waits for its confirmation")
	ErrReverting = errors.New("nobody has confirmed it in time: it is being taken back")
	ErrNoVersion = errors.New("there is no such version")
	ErrNotTaken  = errors.New("the server did not take it")
	ErrUnmasked  = errors.New("the text cannot be read, so that what is secret in it is not known")
	ErrTooLarge  = errors.New("larger than a configuration may be")
)

// maxConfirm is the longest time to confirm in: nobody remembers longer.
const maxConfirm = 24 * time.Hour

// again is how long the manager waits before it tries once more to take a change
// back.
const again = 10 * time.Second

// ProblemsError is a text that is no configuration for this server.
type ProblemsError struct {
	Problems []plan.Problem // at least one
}

// Error is one problem a line.
func (e *ProblemsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Config is what a manager is made with.
type Config struct {
	Path   string // of the main file
	Dir    string // of the versions; empty is off: then the file can be looked at and checked only
	Keep   int    // versions, at least 2
	Socket string // of the server's commands, by which it is known to run; may be empty

	// Check returns what is wrong with a text that is to stand at Path. It may be called
	// by many at once.
	Check func(text []byte) []plan.Problem
	// Reload makes the server read its files. An error means that what was served before
	// is served still, or that less works than before. The text says what is served.
	Reload func(ctx context.Context) (string, error)
	Wall   func() time.Time
	Log    *slog.Logger
}

// Manager owns the configuration file of a running server. Its methods may be called
// by many at once; those that change something wait for each other, and for the reload
// in them.
type Manager struct {
	keeper
	conf Config
	ctx  context.Context // of reloads; ends with Close
	end  context.CancelFunc
	wait atomic.Pointer[marker] // the change that waits; nil is none. It is written under mu only

	mu     sync.Mutex // one change at a time; guards what follows
	timer  *time.Timer
	closed bool
}

// New makes a manager. It touches no file.
func New(c Config) *Manager { return open(c, realDisk()) }

func open(c Config, d disk) *Manager {
	m := &Manager{conf: c, keeper: keeper{
		path: c.Path, disk: d, wall: c.Wall, store: store{dir: c.Dir, keep: c.Keep, disk: d},
	}}
	m.ctx, m.end = context.WithCancel(context.Background())
	return m
}

// Serve takes up a change that still waits from before the start, which Recover could
// not take back.
func (m *Manager) Serve() {
	m.mu.Lock()
	defer m.mu.Unlock()
	mk, err := readMarker(m.path)
	switch {
	case err != nil:
		m.conf.Log.Error("whether a change of the configuration waits is not known", "error", err)
	case mk != nil:
		m.hold(mk, 0)
	}
}

// Close stops a reload that a change waits for, and what waits for a time. A change
// that waits for its confirmation is taken back at the next start.
func (m *Manager) Close() {
	m.end()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.timer != nil {
		m.timer.Stop()
	}
}

// Text is a text of the configuration.
type Text struct {
	Path string `json:"path"` // of the file that it is for
	ETag string `json:"etag"` // of this text: masked it has another
	Text string `json:"text"`
}

// Text is the file as it is now; masked is without its secrets.
func (m *Manager) Text(masked bool) (Text, error) {
	now, err := m.read()
	if err != nil {
		return Text{}, err
	}
	return m.shown(now, masked)
}

func (m *Manager) shown(text []byte, masked bool) (Text, error) {
	if masked {
		hidden, err := Mask(m.path, text)
		if err != nil {
			return Text{}, err
		}
		text = []byte(hidden)
	}
	return Text{Path: m.path, ETag: sum(text), Text: string(text)}, nil
}

// Check returns all that is wrong with a text, were it to stand in the file, sorted
// by position. It changes nothing.
func (m *Manager) Check(text []byte) []plan.Problem { return m.conf.Check(text) }

// List is the versions, the newest first, and how the file stands to them.
type List struct {
	Versions []Version `json:"versions"`
	// ETag is of the file as it is now; it is empty where secrets are masked.
	ETag    string   `json:"etag,omitempty"`
	Pending *Pending `json:"pending"` // nil is none
}

// List lists the versions. masked leaves out sums of texts that hold secrets, by which
// those could be guessed.
func (m *Manager) List(masked bool) (List, error) {
	if m.conf.Dir == "" {
		return List{}, ErrOff
	}
	all, err := m.store.list()
	if err != nil {
		return List{}, err
	}
	l := List{Versions: all, Pending: m.Pending()}
	if now, err := m.read(); err == nil {
		l.ETag = sum(now)
	}
	found := false
	for i := range l.Versions {
		v := &l.Versions[i]
		if !found && v.ETag == l.ETag && v.ETag != "" {
			v.Current, found = true, true
		}
		if masked {
			v.ETag = ""
		}
	}
	if masked {
		l.ETag = ""
	}
	return l, nil
}

// Pending is the change that waits for its confirmation; nil is none.
func (m *Manager) Pending() *Pending {
	mk := m.wait.Load()
	if mk == nil {
		return nil
	}
	p := mk.Pending
	return &p
}

// Version is one version and its text.
func (m *Manager) Version(id int, masked bool) (Version, Text, error) {
	if m.conf.Dir == "" {
		return Version{}, Text{}, ErrOff
	}
	v, text, err := m.store.read(id)
	if err != nil {
		return Version{}, Text{}, err
	}
	t, err := m.shown(text, masked)
	v.ETag = t.ETag
	return v, t, err
}

// Diff is what differs between two versions, as a unified diff. Each is a number of a
// version, or "current" for the file as it is now; an empty from is the version before
// that of the file, an empty to the file.
func (m *Manager) Diff(from, to string, masked bool) (string, error) {
	now, err := m.read()
	if err != nil {
		return "", err
	}
	if from == "" {
		id, err := m.before(sum(now))
		if err != nil {
			return "", err
		}
		from = fmt.Sprint(id)
	}
	var texts, names [2]string
	for i, which := range []string{from, to} {
		if which == "" || which == "current" {
			t, err := m.shown(now, masked)
			if err != nil {
				return "", err
			}
			texts[i], names[i] = t.Text, m.path
			continue
		}
		id, err := number(which)
		if err != nil {
			return "", err
		}
		_, t, err := m.Version(id, masked)
		if err != nil {
			return "", err
		}
		texts[i], names[i] = t.Text, "version "+which
	}
	return Diff(names[0], names[1], texts[0], texts[1]), nil
}

// before is the newest version in front of that with the sum: what is gone back to.
// Where the file is no version, it is the newest of all.
func (m *Manager) before(now string) (int, error) {
	if m.conf.Dir == "" {
		return 0, ErrOff
	}
	all, err := m.store.list()
	if err != nil {
		return 0, err
	}
	at := 0
	for at < len(all) && all[at].ETag != now {
		at++
	}
	if at == len(all) {
		at = -1
	}
	for _, v := range all[at+1:] {
		if v.Trouble == "" && v.ETag != now {
			return v.ID, nil
		}
	}
	return 0, fmt.Errorf("looking for the version before: %w", ErrNoVersion)
}

// sum is what a text is known by: its SHA-256 in hexadecimal.
func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// keeper is the main file and its versions. Recover has it without a server.
type keeper struct {
	path  string
	disk  disk
	store store
	wall  func() time.Time
}

// disk is how files are changed. Tests have one that fails.
type disk struct {
	write  func(path string, text []byte, mode fs.FileMode) error
	remove func(path string) error
}

func realDisk() disk { return disk{write: durable.WriteFile, remove: durable.Remove} }

// read is the main file's text.
func (k *keeper) read() ([]byte, error) {
	f, err := os.Open(k.path)
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	defer f.Close() // nothing is written
	text, err := io.ReadAll(io.LimitReader(f, tree.MaxSize+1))
	if err == nil && len(text) > tree.MaxSize {
		err = ErrTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("reading configuration %s: %w", k.path, err)
	}
	return text, nil
}
