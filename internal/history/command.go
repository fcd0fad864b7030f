package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// maxShown is the longest text that an answer of the control socket holds, in octets.
const maxShown = 60 << 10

// Command does what the command line asks for, and answers with a text for people.
// The first of args says what; "apply" and "rollback" end with a Change in JSON.
func (m *Manager) Command(args []string) (string, error) {
	if len(args) == 0 {
		return "", errors.New("config needs to know what to do")
	}
	rest := args[1:]
	for _, c := range []struct {
		name string
		args int
		do   func(*Manager, []string) (string, error)
	}{
		{"get", 1, (*Manager).getCommand},
		{"check", 1, (*Manager).checkCommand},
		{"apply", 1, (*Manager).applyCommand},
		{"confirm", 1, (*Manager).confirmCommand},
		{"history", 0, (*Manager).listCommand},
		{"show", 1, (*Manager).showCommand},
		{"diff", 2, (*Manager).diffCommand},
		{"rollback", 2, (*Manager).rollbackCommand},
	} {
		switch {
		case c.name != args[0]:
		case c.args != len(rest):
			return "", fmt.Errorf("config %s: wrong number of arguments", args[0])
		default:
			return c.do(m, rest)
		}
	}
	return "", fmt.Errorf("no command config %q: there are get, check, apply, confirm, history, show, diff and rollback", args[0])
}

// fits is a text for an answer.
func fits(text string) (string, error) {
	if len(text) > maxShown {
		return "", fmt.Errorf("the text has %d octets, more than the control socket carries: read the file itself", len(text))
	}
	return strings.TrimSuffix(text, "\n"), nil // the command line ends it
}

func (m *Manager) getCommand(args []string) (string, error) {
	t, err := m.Text(args[0] == "masked")
	if err != nil {
		return "", err
	}
	if args[0] == "etag" {
		return t.ETag, nil
	}
	return fits(t.Text)
}

func (m *Manager) checkCommand(args []string) (string, error) {
	if err := problemsError(m.Check([]byte(args[0]))); err != nil {
		return err.Error(), errors.New("the text has problems")
	}
	return "no problems", nil
}

func (m *Manager) applyCommand(args []string) (string, error) {
	c, err := change(args[0])
	if err != nil {
		return "", err
	}
	return m.told(m.Apply(c))
}

func (m *Manager) rollbackCommand(args []string) (string, error) {
	id, err := version(args[0])
	if err != nil {
		return "", err
	}
	c, err := change(args[1])
	if err != nil {
		return "", err
	}
	return m.told(m.Rollback(id, c))
}

func change(text string) (c Change, err error) {
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return Change{}, fmt.Errorf("reading the change: %w", err)
	}
	return c, nil
}

// version reads the number of a version, or 0 where none is given.
func version(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	return number(text)
}

// told is what came of a change.
func (m *Manager) told(a Applied, err error) (string, error) {
	var wrong *ProblemsError
	if errors.As(err, &wrong) {
		return wrong.Error(), errors.New("the text has problems; nothing has changed")
	}
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("version %d is in use", a.Version.ID)
	if a.Pending != nil {
		text += fmt.Sprintf(" until %s: confirm it with waymark config confirm %d, or version %d comes back",
			stamp(a.Pending.Until), a.Pending.ID, a.Pending.Former)
	}
	return text + "\n" + a.Served, nil
}

func (m *Manager) confirmCommand(args []string) (string, error) {
	id, err := version(args[0])
	if err != nil {
		return "", err
	}
	v, err := m.Confirm(id)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("version %d stays in use", v.ID), nil
}

func (m *Manager) listCommand([]string) (string, error) {
	l, err := m.List(false)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "VERSION\tTIME\tWHO\tCOMMENT")
	found := false
	for _, v := range l.Versions {
		id, comment := strconv.Itoa(v.ID), v.Comment
		if v.Current {
			id, found = id+" *", true
		}
		if v.Trouble != "" {
			_, _ = fmt.Fprintf(t, "%s\t\t\t%s\n", id, v.Trouble)
			continue
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", id, stamp(v.Time), v.Who, comment)
	}
	_ = t.Flush()
	if len(l.Versions) == 0 {
		b.Reset()
		b.WriteString("no versions yet: the first change makes them\n")
	} else if !found {
		b.WriteString("the file is none of them: it was written by hand since\n")
	}
	if p := l.Pending; p != nil {
		fmt.Fprintf(&b, "version %d waits for its confirmation until %s, else version %d comes back\n", p.ID, stamp(p.Until), p.Former)
		if p.Trouble != "" {
			fmt.Fprintf(&b, "taking it back failed: %s\n", p.Trouble)
		}
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func (m *Manager) showCommand(args []string) (string, error) {
	id, err := number(args[0])
	if err != nil {
		return "", err
	}
	_, t, err := m.Version(id, false)
	if err != nil {
		return "", err
	}
	return fits(t.Text)
}

func (m *Manager) diffCommand(args []string) (string, error) {
	d, err := m.Diff(args[0], args[1], false)
	if err != nil {
		return "", err
	}
	if d == "" {
		return "no difference", nil
	}
	return strings.TrimSuffix(d, "\n"), nil
}

// stamp is a time for people.
func stamp(t time.Time) string { return t.Local().Format(time.DateTime) }
