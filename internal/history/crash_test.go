package history

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// most is more than the operations of one change.
const most = 12

var errStop = errors.New("the machine stops")

// crash applies a change on a disk that stops the machine at operation n, before it or
// behind it, and reports whether it came to that.
func (s *site) crash(n int, behind bool, c Change) (stopped bool) {
	stop := func(o operation) error {
		if o.n == n {
			panic(errStop)
		}
		return nil
	}
	s.disk = counted(stop, fine)
	if behind {
		s.disk = counted(fine, stop)
	}
	m := open(Config{
		Path: s.path, Dir: s.dir, Keep: s.keep, Check: s.check, Reload: s.reload, Wall: time.Now,
		Log: s.open().conf.Log,
	}, s.disk)
	defer func() {
		if r := recover(); r != nil {
			if r != errStop {
				panic(r)
			}
			stopped = true
			m.end() // its goroutines are gone with the machine
		}
		s.disk = realDisk()
	}()
	if _, err := m.Apply(c); err != nil && !errors.Is(err, ErrNotTaken) {
		s.t.Error(err)
	}
	m.Close()
	return false
}

// Whenever the machine stops, the next start has a whole text: the old one, unless the
// change was through. Nothing keeps the next change from being made.
func TestCrash(t *testing.T) {
	for _, c := range []struct {
		name   string
		change Change
	}{
		{"at once", toNew(0)},
		{"to confirm", toNew(time.Minute)},
		{"not loadable", Change{Text: "unloadable\n", IfMatch: "*"}},
	} {
		stops := 0
		for n := 1; n <= most; n++ {
			for _, behind := range []bool{false, true} {
				name := fmt.Sprintf("%s, operation %d, behind it %v", c.name, n, behind)
				s := newSite(t)
				stopped := s.crash(n, behind, c.change)
				if stopped {
					stops++
				}
				done, err := Recover(s.path, time.Now)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				got := s.text()
				through := c.name == "at once" && got == newText && (!stopped || behind)
				if got != oldText && !through {
					t.Errorf("%s: %q", name, got)
				}
				if through && done != "" {
					t.Errorf("%s: recovered: %s", name, done)
				}
				if s.waits() {
					t.Errorf("%s: still waits", name)
				}
				if _, err := s.open().Apply(Change{Text: "next\n", IfMatch: "*"}); err != nil {
					t.Errorf("%s, next: %v", name, err)
				}
				if all := s.versions(); all[0] != "next\n" || !strings.Contains(strings.Join(all, ""), oldText) {
					t.Errorf("%s, next: %q", name, all)
				}
			}
		}
		if stops < 8 {
			t.Errorf("%s: stopped %d times only", c.name, stops)
		}
	}
}

// Whichever operation fails, by itself or with all that follow: the old text is there,
// at the latest when the disk is mended, and the error is told.
func TestDiskFails(t *testing.T) {
	for n := 1; n <= most; n++ {
		for _, onwards := range []bool{false, true} {
			name := fmt.Sprintf("operation %d, and those behind %v", n, onwards)
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				var mended, failed atomic.Bool
				s.disk = counted(func(o operation) error {
					if !mended.Load() && (o.n == n || onwards && o.n > n) {
						failed.Store(true)
						return syscall.ENOSPC
					}
					return nil
				}, fine)
				m := s.open()
				_, err := m.Apply(toNew(0))
				if !failed.Load() {
					s.is(name, newText, false)
					return
				}
				if !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%s: %v", name, err)
				}
				mended.Store(true)
				time.Sleep(2 * again)
				synctest.Wait()
				s.is(name, oldText, false)
				if _, err := m.Apply(toNew(0)); err != nil {
					t.Errorf("%s, mended: %v", name, err)
				}
				s.is(name+", mended", newText, false)
			})
		}
	}
}

// A change cannot be taken back for a while: that is told, confirming it does not help,
// and it is tried until it works.
func TestTakingBackFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var full atomic.Bool
		s.disk = counted(func(operation) error {
			if full.Load() {
				return syscall.ENOSPC
			}
			return nil
		}, fine)
		m := s.open()
		if _, err := m.Apply(toNew(time.Minute)); err != nil {
			t.Fatal(err)
		}
		full.Store(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		s.is("full", newText, true)
		if p := m.Pending(); p == nil || !strings.Contains(p.Trouble, "no space") {
			t.Errorf("%+v", p)
		}
		if _, err := m.Confirm(0); !errors.Is(err, ErrReverting) {
			t.Errorf("confirmed: %v", err)
		}
		full.Store(false)
		time.Sleep(again)
		synctest.Wait()
		s.is("mended", oldText, false)
		if p := m.Pending(); p != nil {
			t.Errorf("%+v", p)
		}
	})
}

// The former text is back, and the server does not take it: the next change is let in.
func TestReloadFailsTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.edit("unloadable by hand\n")
		m := s.open()
		if _, err := m.Apply(Change{Text: newText, IfMatch: "*", Confirm: time.Minute}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s.text() != "unloadable by hand\n" || s.taken() != newText || m.Pending() == nil || m.Pending().Trouble == "" {
			t.Errorf("file %q, server %q, pending %+v", s.text(), s.taken(), m.Pending())
		}
		if _, err := m.Apply(Change{Text: "third\n", IfMatch: "*"}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		s.is("the next", "third\n", false)
	})
}

// The same, and then the server takes the text that is there.
func TestReloadFailsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		m := s.open()
		if _, err := m.Apply(toNew(time.Minute)); err != nil {
			t.Fatal(err)
		}
		s.refuses.Store(true)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if s.text() != oldText || s.taken() != newText || m.Pending() == nil {
			t.Errorf("file %q, server %q, pending %+v", s.text(), s.taken(), m.Pending())
		}
		if _, err := m.Apply(Change{Text: "broken\n", IfMatch: "*"}); err == nil || m.Pending() == nil {
			t.Errorf("a broken text: %v, %+v", err, m.Pending())
		}
		s.refuses.Store(false)
		if _, err := m.Apply(Change{Text: oldText, IfMatch: "*"}); err != nil || m.Pending() != nil {
			t.Errorf("the text that is there: %v, %+v", err, m.Pending())
		}
		s.is("taken at last", oldText, false)
	})
}

// What a start finds unconfirmed goes before the file is read.
func TestRecover(t *testing.T) {
	s := newSite(t)
	if done, err := Recover(s.path, time.Now); done != "" || err != nil {
		t.Errorf("nothing waits: %q, %v", done, err)
	}
	m := s.open()
	if _, err := m.Apply(toNew(time.Hour)); err != nil {
		t.Fatal(err)
	}
	m.Close()
	s.edit("by hand\n")
	left := filepath.Join(filepath.Dir(s.path), ".waymark.yaml.123.tmp")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := Recover(s.path, time.Now)
	if err != nil || !strings.Contains(done, "version 2") || !strings.Contains(done, "version 1") {
		t.Errorf("%q, %v", done, err)
	}
	if all := s.versions(); s.text() != oldText || all[0] != "by hand\n" || s.waits() {
		t.Errorf("%q, %q", s.text(), all)
	}
	if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
		t.Error("what was left of a write is still there")
	}
}

// A second server, started by mistake, leaves the change of the first alone.
func TestRecoverRunning(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	s := newSite(t)
	m := s.open()
	m.conf.Socket = socket
	if _, err := m.Apply(toNew(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if done, err := Recover(s.path, time.Now); done != "" || err != nil || s.text() != newText || !s.waits() {
		t.Errorf("%q, %v, %q", done, err, s.text())
	}
	m.Close()
	_ = l.Close()
	if done, err := Recover(s.path, time.Now); done == "" || err != nil || s.text() != oldText {
		t.Errorf("%q, %v, %q", done, err, s.text())
	}
}

// Recover fails at each operation, and then does not: the manager goes on where it
// could not.
func TestRecoverFails(t *testing.T) {
	for n := 1; n <= 2; n++ {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			m := s.open()
			if _, err := m.Apply(toNew(time.Hour)); err != nil {
				t.Fatal(err)
			}
			m.Close()
			broken := counted(func(o operation) error {
				if o.n == n {
					return syscall.EROFS
				}
				return nil
			}, fine)
			if done, err := recoverWith(s.path, time.Now, broken); done != "" || !errors.Is(err, syscall.EROFS) || !s.waits() {
				t.Errorf("operation %d: %q, %v", n, done, err)
			}
			s.open()
			time.Sleep(time.Second)
			synctest.Wait()
			s.is(fmt.Sprintf("operation %d", n), oldText, false)
		})
	}
}

func TestReadOnlyFolder(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("this user may write everywhere")
	}
	s := newSite(t)
	folder := filepath.Dir(s.path)
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
	if _, err := s.open().Apply(toNew(0)); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
	s.is("read-only", oldText, false)
}
