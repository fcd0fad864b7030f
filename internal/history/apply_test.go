package history

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestApply(t *testing.T) {
	s := newSite(t)
	m := s.open()
	got, err := m.Apply(toNew(0))
	if err != nil || got.Version.ID != 2 || got.Version.Who != "ann" || got.Pending != nil || got.Served != "1 zones" {
		t.Fatalf("%+v, %v", got, err)
	}
	s.is("applied", newText, false)
	if all := s.versions(); !slices.Equal(all, []string{newText, oldText}) {
		t.Errorf("versions are %q", all)
	}
	l, err := m.List(false)
	if err != nil || len(l.Versions) != 2 || !l.Versions[0].Current || l.Versions[1].Current || l.Versions[1].Comment != firstFound || l.ETag != sum([]byte(newText)) {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := m.List(true); err != nil || l.ETag != "" || l.Versions[0].ETag != "" {
		t.Errorf("masked: %+v, %v", l, err)
	}
	if d, err := m.Diff("", "", false); err != nil || !strings.Contains(d, "+cache: on\n") {
		t.Errorf("diff: %q, %v", d, err)
	}
	// The same once more changes nothing, and makes the server read its files.
	if got, err := m.Apply(Change{Text: newText, IfMatch: "*"}); err != nil || got.Version.ID != 2 || s.reloads != 2 || len(s.versions()) != 2 {
		t.Errorf("the same: %+v, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	etag := sum([]byte(oldText))
	for _, c := range []struct {
		name   string
		change Change
		want   error
	}{
		{"without an ETag", Change{Text: newText}, ErrNoMatch},
		{"of another text (RFC 9110 §13.1.1)", Change{Text: newText, IfMatch: sum([]byte(newText))}, ErrChanged},
		{"a weak ETag (RFC 9110 §13.1.1)", Change{Text: newText, IfMatch: `W/"` + etag + `"`}, ErrChanged},
		{"in quotes, one of two", Change{Text: newText, IfMatch: `"x", "` + etag + `"`}, nil},
		{"any", Change{Text: newText, IfMatch: "*"}, nil},
		{"a problem", Change{Text: "broken\n", IfMatch: "*"}, &ProblemsError{}},
		{"a new zone without its file", Change{Text: "no zone\n", IfMatch: "*"}, &ProblemsError{}},
		{"not loadable", Change{Text: "unloadable\n", IfMatch: "*"}, ErrNotTaken},
		{"too long to confirm", Change{Text: newText, IfMatch: "*", Confirm: 25 * time.Hour}, ErrConfirm},
		{"to confirm before now", Change{Text: newText, IfMatch: "*", Confirm: -1}, ErrConfirm},
	} {
		s := newSite(t)
		m := s.open()
		_, err := m.Apply(c.change)
		problems, isProblems := errors.AsType[*ProblemsError](err)
		if _, want := c.want.(*ProblemsError); want != isProblems || !want && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if isProblems && len(problems.Problems) != 1 {
			t.Errorf("%s: problems are %v", c.name, problems.Problems)
		}
		if c.want == nil {
			s.is(c.name, newText, false)
			continue
		}
		s.is(c.name, oldText, false)
		if all := s.versions(); len(all) > 1 {
			t.Errorf("%s: versions are %q", c.name, all)
		}
		if _, err := m.Apply(toNew(0)); err != nil {
			t.Errorf("%s, and then a sound one: %v", c.name, err)
		}
	}
}

// A zone whose file is gone already does not keep other changes out.
func TestOldZoneTrouble(t *testing.T) {
	s := newSite(t)
	s.edit("no zone\n")
	if _, err := s.open().Apply(Change{Text: "no zone\nmore\n", IfMatch: "*"}); err != nil {
		t.Error(err)
	}
}

func TestOff(t *testing.T) {
	s := newSite(t)
	s.dir = ""
	m := s.open()
	for name, do := range map[string]func() error{
		"apply":    func() error { _, err := m.Apply(toNew(0)); return err },
		"rollback": func() error { _, err := m.Rollback(0, toNew(0)); return err },
		"list":     func() error { _, err := m.List(false); return err },
		"version":  func() error { _, _, err := m.Version(1, false); return err },
		"diff":     func() error { _, err := m.Diff("", "", false); return err },
	} {
		if err := do(); !errors.Is(err, ErrOff) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := m.Text(false); err != nil || got.Text != oldText || got.ETag != sum([]byte(oldText)) {
		t.Errorf("%+v, %v", got, err)
	}
	if got := m.Check([]byte("x\nbroken\n")); len(got) != 1 || got[0].Pos.Line != 2 {
		t.Errorf("%v", got)
	}
}

func TestConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		m := s.open()
		got, err := m.Apply(toNew(time.Minute))
		if err != nil || got.Pending == nil || got.Pending.ID != 2 || got.Pending.Former != 1 || !got.Pending.Until.Equal(time.Now().Add(time.Minute)) {
			t.Fatalf("%+v, %v", got, err)
		}
		s.is("applied", newText, true)
		if _, err := m.Apply(Change{Text: "third\n", IfMatch: "*"}); !errors.Is(err, ErrPending) {
			t.Errorf("another change: %v", err)
		}
		if _, err := m.Rollback(2, Change{IfMatch: "*"}); !errors.Is(err, ErrPending) {
			t.Errorf("a rollback to the version that waits: %v", err)
		}
		time.Sleep(time.Minute - time.Second)
		if _, err := m.Confirm(1); !errors.Is(err, ErrNotWaits) {
			t.Errorf("another is confirmed: %v", err)
		}
		if v, err := m.Confirm(2); err != nil || v.ID != 2 {
			t.Errorf("%+v, %v", v, err)
		}
		time.Sleep(time.Hour)
		s.is("confirmed", newText, false)
		if _, err := m.Confirm(0); !errors.Is(err, ErrNotWaits) {
			t.Errorf("confirmed again: %v", err)
		}
	})
}

func TestNotConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		m := s.open()
		if _, err := m.Apply(toNew(time.Minute)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		s.is("just before", newText, true)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		s.is("at its end", oldText, false)
		if all := s.versions(); !slices.Equal(all, []string{newText, oldText}) {
			t.Errorf("versions are %q", all)
		}
		if _, err := m.Apply(toNew(0)); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// Confirmations that come at the very moment: either all of the change stays, and one
// was told so, or all of it goes.
func TestConfirmRace(t *testing.T) {
	outcomes := map[bool]int{}
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			m := s.open()
			var mu sync.Mutex
			confirmed := 0
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					time.Sleep(time.Minute)
					_, err := m.Confirm(2)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						confirmed++
					} else if !errors.Is(err, ErrNotWaits) {
						t.Error(err)
					}
				})
			}
			if _, err := m.Apply(toNew(time.Minute)); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
			synctest.Wait()
			want := oldText
			if confirmed > 0 {
				want = newText
			}
			if confirmed > 1 {
				t.Errorf("confirmed %d times", confirmed)
			}
			s.is("after the race", want, false)
			outcomes[confirmed > 0]++
		})
	}
	t.Logf("confirmed or not: %v", outcomes)
}

func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		m := s.open()
		if _, err := m.Apply(toNew(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got, err := m.Rollback(0, Change{}); err != nil || got.Version.ID != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		s.is("given up", oldText, false)
		time.Sleep(time.Hour)
		if s.reloads != 2 {
			t.Errorf("%d reloads", s.reloads)
		}
	})
}

func TestRollback(t *testing.T) {
	s := newSite(t)
	m := s.open()
	if _, err := m.Rollback(0, Change{IfMatch: "*"}); !errors.Is(err, ErrNoVersion) {
		t.Errorf("without a version: %v", err)
	}
	for _, text := range []string{newText, "third\n"} {
		if _, err := m.Apply(Change{Text: text, IfMatch: "*"}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := m.Rollback(0, Change{IfMatch: "*"})
	if err != nil || got.Version.ID != 4 || got.Version.Comment != "back to version 2" {
		t.Errorf("%+v, %v", got, err)
	}
	s.is("back by one", newText, false)
	if _, err := m.Rollback(1, Change{IfMatch: sum([]byte("third\n"))}); !errors.Is(err, ErrChanged) {
		t.Errorf("an old ETag: %v", err)
	}
	if _, err := m.Rollback(1, Change{IfMatch: "*"}); err != nil {
		t.Error(err)
	}
	s.is("back to the first", oldText, false)
	if _, err := m.Rollback(9, Change{IfMatch: "*"}); !errors.Is(err, ErrNoVersion) {
		t.Errorf("to none: %v", err)
	}
}

// What someone writes into the file is never lost.
func TestHandEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		m := s.open()
		if _, err := m.Apply(toNew(0)); err != nil {
			t.Fatal(err)
		}
		s.edit("by hand\n")
		if _, err := m.Apply(Change{Text: "third\n", IfMatch: sum([]byte(newText))}); !errors.Is(err, ErrChanged) {
			t.Errorf("an old ETag: %v", err)
		}
		if _, err := m.Rollback(1, Change{IfMatch: "*"}); err != nil {
			t.Fatal(err)
		}
		if all := s.versions(); !slices.Equal(all, []string{oldText, "by hand\n", newText, oldText}) {
			t.Errorf("after a rollback: %q", all)
		}
		if _, err := m.Apply(toNew(time.Minute)); err != nil {
			t.Fatal(err)
		}
		s.edit("by hand again\n")
		time.Sleep(time.Hour)
		s.is("taken back", oldText, false)
		if all := s.versions(); all[0] != "by hand again\n" {
			t.Errorf("after taking back: %q", all)
		}
	})
}

// Where the file is broken by hand, what comes back is the newest text that is not.
func TestBackToSound(t *testing.T) {
	s := newSite(t)
	m := s.open()
	if _, err := m.Apply(toNew(0)); err != nil {
		t.Fatal(err)
	}
	s.edit("broken by hand\n")
	if _, err := m.Apply(Change{Text: "unloadable\n", IfMatch: "*"}); !errors.Is(err, ErrNotTaken) {
		t.Errorf("%v", err)
	}
	s.is("not taken", newText, false)
	if all := s.versions(); !slices.Equal(all, []string{"broken by hand\n", newText, oldText}) {
		t.Errorf("versions are %q", all)
	}
}

// The file is replaced between the look at it and the write.
func TestReplacedMeanwhile(t *testing.T) {
	s := newSite(t)
	s.disk = counted(func(o operation) error {
		if o.path == markerPath(s.path) && o.n < 5 {
			s.edit("by hand\n")
		}
		return nil
	}, fine)
	m := s.open()
	if _, err := m.Apply(toNew(0)); !errors.Is(err, ErrChanged) {
		t.Errorf("%v", err)
	}
	if s.text() != "by hand\n" || s.waits() || s.reloads > 0 {
		t.Errorf("the file is %q, waits %v, %d reloads", s.text(), s.waits(), s.reloads)
	}
	if all := s.versions(); len(all) != 1 {
		t.Errorf("versions are %q", all)
	}
}

func TestKeep(t *testing.T) {
	s := newSite(t)
	s.keep = 3
	m := s.open()
	for _, text := range []string{"a\n", "b\n", "c\n", "d\n"} {
		if _, err := m.Apply(Change{Text: text, IfMatch: "*"}); err != nil {
			t.Fatal(err)
		}
	}
	if all := s.versions(); !slices.Equal(all, []string{"d\n", "c\n", "b\n"}) {
		t.Errorf("versions are %q", all)
	}
}

func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		m := s.open()
		if _, err := m.Apply(toNew(time.Minute)); err != nil {
			t.Fatal(err)
		}
		m.Close()
		time.Sleep(time.Hour)
		s.is("closed", newText, true)
		for _, do := range []func() error{
			func() error { _, err := m.Apply(toNew(0)); return err },
			func() error { _, err := m.Confirm(0); return err },
			func() error { _, err := m.Rollback(0, toNew(0)); return err },
		} {
			if err := do(); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
	})
}

// The server stops while it reloads: the file is put back at once or at the next start.
func TestClosedWhileReloading(t *testing.T) {
	s := newSite(t)
	m := s.open()
	s.beforeRead = m.end
	if _, err := m.Apply(toNew(0)); !errors.Is(err, ErrNotTaken) {
		t.Errorf("%v", err)
	}
	m.Close()
	if _, err := Recover(s.path, time.Now); err != nil || s.text() != oldText || s.waits() {
		t.Errorf("%v, %q", err, s.text())
	}
}

func TestFileGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		m := s.open()
		if _, err := m.Apply(toNew(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(s.path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		s.is("taken back", oldText, false)
		if err := os.Remove(s.path); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Apply(toNew(0)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
}
