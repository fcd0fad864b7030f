package history

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waymark-dns/waymark/internal/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a folder with a configuration, and a server that reads it.
type site struct {
	t          *testing.T
	path, dir  string
	disk       disk
	refuses    atomic.Bool // every reload
	mu         sync.Mutex  // guards what follows
	served     string      // the text that the server has taken last
	reloads    int
	keep       int
	beforeRead func() // of a reload
}

const (
	oldText = "listen: [udp://127.0.0.1:53]\n"
	newText = "listen: [udp://127.0.0.1:53]\ncache: on\n"
)

var errReload = errors.New("the address is taken")

func newSite(t *testing.T) *site {
	dir := t.TempDir()
	s := &site{t: t, path: filepath.Join(dir, "waymark.yaml"), dir: filepath.Join(dir, "versions"), disk: realDisk(), keep: 10}
	s.edit(oldText)
	s.served = oldText
	return s
}

// edit is a person with an editor.
func (s *site) edit(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path, []byte(text), 0o640); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) text() string {
	s.t.Helper()
	text, err := os.ReadFile(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *site) taken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
}

// check finds fault with what says so itself.
func (s *site) check(text []byte) []plan.Problem {
	var all []plan.Problem
	for i, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, "broken") {
			all = append(all, plan.Problem{Pos: plan.Pos{File: s.path, Line: i + 1, Column: 1}, Text: line})
		}
		if strings.Contains(line, "no zone") {
			all = append(all, plan.Problem{Text: line, ZoneFile: true})
		}
	}
	return all
}

func (s *site) reload(ctx context.Context) (string, error) {
	if s.beforeRead != nil {
		s.beforeRead()
	}
	text, err := os.ReadFile(s.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reloads++
	switch {
	case err != nil:
		return "", err
	case ctx.Err() != nil:
		return "", ctx.Err()
	case s.refuses.Load(), strings.Contains(string(text), "unloadable"), strings.Contains(string(text), "broken"):
		return "", errReload
	}
	s.served = string(text)
	return "1 zones", nil
}

func (s *site) open() *Manager {
	m := open(Config{
		Path: s.path, Dir: s.dir, Keep: s.keep, Check: s.check, Reload: s.reload, Wall: time.Now, Log: slog.New(slog.DiscardHandler),
	}, s.disk)
	s.t.Cleanup(m.Close)
	m.Serve()
	return m
}

func (s *site) waits() bool {
	_, err := os.Lstat(markerPath(s.path))
	return err == nil
}

// is checks what the file has, what the server has taken, and whether a change waits.
func (s *site) is(name, want string, waits bool) {
	s.t.Helper()
	if got := s.text(); got != want {
		s.t.Errorf("%s: the file is %q, want %q", name, got, want)
	}
	if got := s.taken(); got != want {
		s.t.Errorf("%s: the server has %q, want %q", name, got, want)
	}
	if s.waits() != waits {
		s.t.Errorf("%s: a change waits on the disk: %v", name, s.waits())
	}
}

// versions is the texts of all versions, the newest first.
func (s *site) versions() []string {
	s.t.Helper()
	st := store{dir: s.dir, disk: realDisk()}
	ids, err := st.ids()
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for _, id := range ids {
		_, text, err := st.read(id)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}

// toNew is the change of these tests.
func toNew(confirm time.Duration) Change {
	return Change{Text: newText, IfMatch: sum([]byte(oldText)), Who: "ann", Confirm: confirm}
}

// operation is a write or a removal.
type operation struct {
	n    int
	path string
}

// counted is a real disk that calls before and behind each operation; an error of
// either is that of the operation.
func counted(before, behind func(operation) error) disk {
	n := 0
	do := func(path string, f func() error) error {
		n++
		o := operation{n, path}
		if err := before(o); err != nil {
			return err
		}
		return errors.Join(f(), behind(o))
	}
	real := realDisk()
	return disk{
		write: func(path string, text []byte, mode fs.FileMode) error {
			return do(path, func() error { return real.write(path, text, mode) })
		},
		remove: func(path string) error { return do(path, func() error { return real.remove(path) }) },
	}
}

func fine(operation) error { return nil }
