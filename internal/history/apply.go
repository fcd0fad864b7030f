package history

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

// The functions stand in the order in which a change meets them.

// Change is a text that is to be the configuration.
type Change struct {
	Text string `json:"text"`
	// IfMatch is the ETag of the text that is to be replaced, or "*" for any; a list
	// with commas and quotes is one of RFC 9110 §13.1.1. It must not be empty.
	IfMatch string `json:"if_match"`
	Who     string `json:"who"`
	Comment string `json:"comment"`
	// Confirm is the time to confirm in; 0 needs no confirmation.
	Confirm time.Duration `json:"confirm"`
}

// Applied is what came of a change.
type Applied struct {
	Version Version  `json:"version"`
	Pending *Pending `json:"pending"` // nil where nothing is to be confirmed
	Served  string   `json:"served"`  // what the server says that it serves now
}

// Apply makes a text the configuration and reloads the server. Of an error nothing
// has changed, unless the error says that taking it back failed as well; then that is
// tried again. A *ProblemsError tells what is wrong with the text, ErrNotTaken that the
// reload failed.
func (m *Manager) Apply(c Change) (Applied, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(); err != nil {
		return Applied{}, err
	}
	return m.apply(c)
}

// Rollback makes the text of a version the configuration, as a new version; c.Text is
// not looked at. id 0 is the version before the present one. Where a change waits for
// its confirmation, 0 or the number of the version before it takes that change back.
func (m *Manager) Rollback(id int, c Change) (Applied, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mk := m.wait.Load(); mk != nil && !m.closed && (id == 0 || id == mk.Former) {
		return m.giveUp(mk)
	}
	if err := m.ready(); err != nil {
		return Applied{}, err
	}
	now, err := m.read()
	if err != nil {
		return Applied{}, err
	}
	if id == 0 {
		if id, err = m.before(sum(now)); err != nil {
			return Applied{}, err
		}
	}
	_, text, err := m.store.read(id)
	if err != nil {
		return Applied{}, err
	}
	c.Text = string(text)
	c.Comment = cmp.Or(c.Comment, fmt.Sprintf("back to version %d", id))
	return m.apply(c)
}

// giveUp takes the change back that waits, because someone says so.
func (m *Manager) giveUp(mk *marker) (Applied, error) {
	served, err := m.takeBack(mk)
	if err != nil {
		return Applied{}, err
	}
	v, _, err := m.store.read(mk.Former)
	v.Current = true
	return Applied{Version: v, Served: served}, err
}

// Confirm keeps the change that waits. id is the number of its version; 0 is whichever
// waits. Who confirms need not be who made the change.
func (m *Manager) Confirm(id int) (Version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mk := m.wait.Load()
	switch {
	case m.closed:
		return Version{}, ErrClosed
	case mk == nil || id != 0 && id != mk.ID:
		return Version{}, ErrNotWaits
	case mk.Trouble != "":
		return Version{}, ErrReverting
	}
	if err := m.forget(); err != nil {
		return Version{}, fmt.Errorf("confirming: %w", err)
	}
	v, _, err := m.store.read(mk.ID)
	return v, err
}

// ready tells why no change can be made now.
func (m *Manager) ready() error {
	mk := m.wait.Load()
	switch {
	case m.closed:
		return ErrClosed
	case m.conf.Dir == "":
		return ErrOff
	case mk != nil && !mk.restored: // else only a reload is missing, and one is to come
		return ErrPending
	}
	return nil
}

func (m *Manager) apply(c Change) (Applied, error) {
	if c.IfMatch == "" {
		return Applied{}, ErrNoMatch
	}
	if c.Confirm < 0 || c.Confirm > maxConfirm {
		return Applied{}, ErrConfirm
	}
	now, err := m.read()
	if err != nil {
		return Applied{}, err
	}
	if !matches(c.IfMatch, sum(now)) {
		return Applied{}, ErrChanged
	}
	if err := m.refused([]byte(c.Text), now); err != nil {
		return Applied{}, err
	}
	if c.Text == string(now) {
		return m.same(now)
	}
	mk, v, err := m.record(c, now)
	if err != nil {
		return Applied{}, err
	}
	return m.swap(mk, v, c)
}

// matches tells whether an ETag is among those asked for. Weak ones never are (RFC
// 9110 §13.1.1).
func matches(list, etag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimSuffix(strings.TrimPrefix(one, `"`), `"`) == etag {
			return true
		}
	}
	return false
}

// refused tells what is wrong with a text. A zone's file that cannot be read now is
// no reason against a change that has nothing to do with it.
func (m *Manager) refused(text, now []byte) error {
	if len(text) > tree.MaxSize {
		return ErrTooLarge
	}
	problems := m.conf.Check(text)
	if !slices.ContainsFunc(problems, isZoneFile) {
		return problemsError(problems)
	}
	known := map[string]bool{}
	for _, p := range m.conf.Check(now) {
		known[p.Text] = p.ZoneFile
	}
	return problemsError(slices.DeleteFunc(problems, func(p plan.Problem) bool { return p.ZoneFile && known[p.Text] }))
}

func isZoneFile(p plan.Problem) bool { return p.ZoneFile }

func problemsError(problems []plan.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &ProblemsError{problems}
}

// same reloads without a change: the file may have been written by hand.
func (m *Manager) same(now []byte) (Applied, error) {
	if err := m.store.found(now, m.wall()); err != nil {
		return Applied{}, err
	}
	served, err := m.conf.Reload(m.ctx)
	if err != nil {
		return Applied{}, fmt.Errorf("%w: %w", ErrNotTaken, err)
	}
	if m.wait.Load() != nil {
		if err := m.forget(); err != nil {
			return Applied{}, err
		}
	}
	v, err := m.store.find(sum(now))
	v.Current = true
	return Applied{Version: v, Served: served}, err
}

// record keeps what is now in the file and what is to come as versions, and makes
// the marker of the change. Nothing is written but versions.
func (m *Manager) record(c Change, now []byte) (*marker, Version, error) {
	if err := m.store.found(now, m.wall()); err != nil {
		return nil, Version{}, err
	}
	former, id, err := m.sound(now)
	if err != nil {
		return nil, Version{}, err
	}
	v, err := m.store.add(Version{Time: m.wall(), Who: oneLine(c.Who), Comment: oneLine(c.Comment)}, []byte(c.Text))
	if err != nil {
		return nil, Version{}, err
	}
	mk := &marker{
		Pending: Pending{ID: v.ID, Former: id, Who: v.Who},
		Now:     sum(now), New: v.ETag, Old: sum(former), former: former, Dir: m.conf.Dir, Keep: m.conf.Keep, Socket: m.conf.Socket,
	}
	if c.Confirm > 0 {
		mk.Until = m.wall().Add(c.Confirm)
	}
	return mk, v, nil
}

// sound is the text to go back to, and its version: what is in the file, or the newest
// version without problems where someone has written into the file what the server
// cannot have taken.
func (m *Manager) sound(now []byte) ([]byte, int, error) {
	v, err := m.store.find(sum(now))
	if err != nil || !m.broken(now) {
		return now, v.ID, err
	}
	ids, err := m.store.ids()
	if err != nil {
		return nil, 0, err
	}
	for _, id := range ids {
		if _, text, err := m.store.read(id); err == nil && !m.broken(text) {
			return text, id, nil
		}
	}
	return now, v.ID, nil
}

// broken tells whether a text could not be served, whatever becomes of the zones.
func (m *Manager) broken(text []byte) bool {
	return slices.ContainsFunc(m.conf.Check(text), func(p plan.Problem) bool { return !p.ZoneFile })
}

// oneLine is a text of others for one line of a list.
func oneLine(text string) string {
	const most = 200 // runes
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?")))
	return strings.TrimSpace(string(runes[:min(len(runes), most)]))
}

// swap writes the file and reloads. The marker stands before the file is touched, and
// until the change is to stay: whenever the machine stops between, the next start goes
// back.
func (m *Manager) swap(mk *marker, v Version, c Change) (Applied, error) {
	if err := m.disk.write(markerPath(m.path), mk.seal(), 0o600); err != nil {
		return Applied{}, m.undo(mk, err, false)
	}
	now, err := m.read()
	if err == nil && sum(now) != mk.Now {
		err = ErrChanged
	}
	if err != nil {
		return Applied{}, m.undo(mk, err, false)
	}
	if err := m.disk.write(m.path, []byte(c.Text), 0o640); err != nil {
		return Applied{}, m.undo(mk, err, true)
	}
	served, err := m.conf.Reload(m.ctx)
	if err != nil {
		return Applied{}, m.undo(mk, fmt.Errorf("%w: %w", ErrNotTaken, err), true)
	}
	if c.Confirm > 0 {
		m.hold(mk, c.Confirm)
		m.conf.Log.Info("configuration changed, until it is confirmed", "version", v.ID, "who", v.Who, "until", mk.Until)
	} else {
		if err := m.forget(); err != nil {
			return Applied{}, m.undo(mk, err, true)
		}
		m.conf.Log.Info("configuration changed", "version", v.ID, "who", v.Who)
	}
	v.Current = true
	return Applied{Version: v, Pending: m.Pending(), Served: served}, nil
}

// undo ends a change that went wrong. touched is whether the file may be the new one.
func (m *Manager) undo(mk *marker, cause error, touched bool) error {
	var err error
	if touched {
		_, err = m.takeBack(mk)
	} else {
		err = m.forget()
	}
	if err != nil {
		return fmt.Errorf("%w; taking it back: %w", cause, err)
	}
	if err := m.store.remove(mk.ID); err != nil && !errors.Is(err, os.ErrNotExist) {
		m.conf.Log.Warn("a version that was not taken stays in the history", "version", mk.ID, "error", err)
	}
	return cause
}

// hold makes a change wait, to be taken back after a time.
func (m *Manager) hold(mk *marker, after time.Duration) {
	m.wait.Store(mk)
	m.timer = time.AfterFunc(after, func() { m.expire(mk) })
}

// forget ends the waiting of a change, which stays.
func (m *Manager) forget() error {
	if err := m.disk.remove(markerPath(m.path)); err != nil {
		return err
	}
	m.wait.Store(nil)
	if m.timer != nil {
		m.timer.Stop()
	}
	return nil
}

// expire takes a change back that nobody has confirmed in time. The timer calls it.
func (m *Manager) expire(mk *marker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.wait.Load() != mk {
		return
	}
	if _, err := m.takeBack(mk); err == nil {
		m.conf.Log.Warn("a change of the configuration was taken back: nobody has confirmed it in time", "version", mk.ID, "who", mk.Who)
	}
}

// takeBack puts the former text back and reloads. Where that fails it is tried again
// after a while.
func (m *Manager) takeBack(mk *marker) (string, error) {
	changed, err := m.restore(mk)
	restored := err == nil
	served := ""
	if err == nil && (changed || mk.Trouble != "" || m.wait.Load() == mk) {
		served, err = m.conf.Reload(m.ctx)
	}
	if err == nil {
		err = m.forget()
	}
	if err == nil {
		return served, nil
	}
	if m.timer != nil {
		m.timer.Stop()
	}
	next := *mk
	next.Trouble, next.restored = err.Error(), restored
	m.conf.Log.Error("taking a change of the configuration back failed", "version", mk.ID, "error", err, "again in", again)
	m.hold(&next, again)
	return "", err
}

// restore puts the text back that stood in the file before a change. What someone has
// written into it since becomes a version first. changed is whether the file was
// another.
func (k *keeper) restore(mk *marker) (changed bool, err error) {
	now, err := os.ReadFile(k.path)
	switch {
	case errors.Is(err, os.ErrNotExist): // nothing to keep
	case err != nil:
		return false, err
	case bytes.Equal(now, mk.former):
		return false, nil
	case sum(now) != mk.New:
		if err := k.store.found(now, k.wall()); err != nil {
			return false, fmt.Errorf("keeping what was written by hand: %w", err)
		}
	}
	return true, k.disk.write(k.path, mk.former, 0o640)
}
