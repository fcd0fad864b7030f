package api

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/waymark-dns/waymark/internal/history"
	"github.com/waymark-dns/waymark/internal/plan"
)

var configRoutes = []route{
	{method: http.MethodGet, path: "config", scope: Read, do: (*Server).config},
	{method: http.MethodPost, path: "config/check", scope: Admin, body: configBody, do: (*Server).checkConfig},
	{method: http.MethodPut, path: "config", scope: Admin, body: configBody, do: (*Server).applyConfig},
	{method: http.MethodPost, path: "config/confirm", scope: Admin, body: smallBody, do: (*Server).confirmConfig},
	{method: http.MethodPost, path: "config/rollback", scope: Admin, body: smallBody, do: (*Server).rollbackConfig},
	{method: http.MethodGet, path: "config/history", scope: Read, do: (*Server).configHistory},
	{method: http.MethodGet, path: "config/history/{id}", scope: Read, do: (*Server).configVersion},
	{method: http.MethodGet, path: "config/diff", scope: Read, do: (*Server).configDiff},
}

// masked tells whether secrets are hidden from who asks.
func masked(r *http.Request) bool { return asks(r).scope < Admin }

// manager is who changes the configuration.
func (s *Server) manager() (*history.Manager, error) {
	if m := s.conf.Live.History(); m != nil {
		return m, nil
	}
	return nil, problem(http.StatusNotFound, "the server was started without a configuration file")
}

// config is the file as it is. Secrets in it are for administrators.
func (s *Server) config(w http.ResponseWriter, r *http.Request) error {
	m, err := s.manager()
	if err != nil {
		return err
	}
	text, err := m.Text(masked(r))
	if err != nil {
		return historyProblem(err)
	}
	w.Header().Set("ETag", `"`+text.ETag+`"`)
	return reply(w, http.StatusOK, text)
}

// text is the body, which is a configuration.
func text(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, badBody(err)
	}
	return b, nil
}

// faults is problems of a configuration as clients see them.
func faults(problems []plan.Problem) []Fault {
	all := []Fault{}
	for _, p := range problems {
		all = append(all, Fault{File: p.Pos.File, Line: p.Pos.Line, Text: p.Text, Mend: p.Mend})
	}
	return all
}

func (s *Server) checkConfig(w http.ResponseWriter, r *http.Request) error {
	m, err := s.manager()
	if err != nil {
		return err
	}
	b, err := text(r)
	if err != nil {
		return err
	}
	found := faults(m.Check(b))
	return reply(w, http.StatusOK, map[string]any{"ok": len(found) == 0, "errors": found})
}

// confirm is how long a change may wait for its confirmation; 0 needs none.
func confirm(r *http.Request) (time.Duration, error) {
	if param(r, "confirm") == "" {
		return 0, nil
	}
	n, err := number(r, "confirm", 0, 24*3600)
	return time.Duration(n) * time.Second, err
}

func (s *Server) applyConfig(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "confirm", "comment"); err != nil {
		return err
	}
	m, err := s.manager()
	if err != nil {
		return err
	}
	wait, err := confirm(r)
	if err != nil {
		return err
	}
	if r.Header.Get("If-Match") == "" {
		return problem(http.StatusPreconditionRequired, "If-Match: send the ETag of the configuration that is to be replaced")
	}
	b, err := text(r)
	if err != nil {
		return err
	}
	done, err := m.Apply(history.Change{Text: string(b), IfMatch: r.Header.Get("If-Match"), Who: asks(r).name, Comment: param(r, "comment"), Confirm: wait})
	return applied(w, r, done, err)
}

// applied tells what came of a change.
func applied(w http.ResponseWriter, r *http.Request, done history.Applied, err error) error {
	if err != nil {
		return historyProblem(err)
	}
	note(r, "configuration version %d", done.Version.ID)
	w.Header().Set("ETag", `"`+done.Version.ETag+`"`)
	return reply(w, http.StatusOK, done)
}

// historyProblem is what a client is told of an error of the history.
func historyProblem(err error) error {
	var bad *history.ProblemsError
	if errors.As(err, &bad) {
		p := problem(http.StatusUnprocessableEntity, "nothing has changed: the text is no configuration for this server")
		p.Errors = faults(bad.Problems)
		return p
	}
	for _, known := range []struct {
		err    error
		status int
	}{
		{history.ErrOff, http.StatusNotFound}, {history.ErrNoVersion, http.StatusNotFound},
		{history.ErrNoMatch, http.StatusPreconditionRequired}, {history.ErrChanged, http.StatusPreconditionFailed},
		{history.ErrPending, http.StatusConflict}, {history.ErrNotWaits, http.StatusConflict}, {history.ErrReverting, http.StatusConflict},
		{history.ErrConfirm, http.StatusBadRequest}, {history.ErrTooLarge, http.StatusRequestEntityTooLarge},
		{history.ErrNotTaken, http.StatusUnprocessableEntity}, {history.ErrUnmasked, http.StatusForbidden},
		{history.ErrClosed, http.StatusServiceUnavailable},
	} {
		if errors.Is(err, known.err) {
			return problem(known.status, "%v", err)
		}
	}
	return err
}

// version names a version; 0 is what the route says.
type version struct {
	ID int `json:"id"`
}

func (s *Server) confirmConfig(w http.ResponseWriter, r *http.Request) error {
	m, err := s.manager()
	if err != nil {
		return err
	}
	var sent version
	if err := read(r, &sent); err != nil {
		return err
	}
	v, err := m.Confirm(sent.ID)
	if err != nil {
		return historyProblem(err)
	}
	note(r, "configuration version %d confirmed", v.ID)
	return reply(w, http.StatusOK, v)
}

func (s *Server) rollbackConfig(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "confirm", "comment"); err != nil {
		return err
	}
	m, err := s.manager()
	if err != nil {
		return err
	}
	wait, err := confirm(r)
	if err != nil {
		return err
	}
	var sent version
	if err := read(r, &sent); err != nil {
		return err
	}
	match := r.Header.Get("If-Match")
	if match == "" {
		match = "*"
	}
	done, err := m.Rollback(sent.ID, history.Change{IfMatch: match, Who: asks(r).name, Comment: param(r, "comment"), Confirm: wait})
	return applied(w, r, done, err)
}

func (s *Server) configHistory(w http.ResponseWriter, r *http.Request) error {
	m, err := s.manager()
	if err != nil {
		return err
	}
	list, err := m.List(masked(r))
	if err != nil {
		return historyProblem(err)
	}
	if list.Versions == nil {
		list.Versions = []history.Version{}
	}
	return reply(w, http.StatusOK, list)
}

func (s *Server) configVersion(w http.ResponseWriter, r *http.Request) error {
	m, err := s.manager()
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil {
		return problem(http.StatusNotFound, "there is no version %q", r.PathValue("id"))
	}
	v, text, err := m.Version(id, masked(r))
	if err != nil {
		return historyProblem(err)
	}
	return reply(w, http.StatusOK, map[string]any{"version": v, "text": text.Text})
}

func (s *Server) configDiff(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "from", "to"); err != nil {
		return err
	}
	m, err := s.manager()
	if err != nil {
		return err
	}
	diff, err := m.Diff(param(r, "from"), param(r, "to"), masked(r))
	if err != nil {
		return historyProblem(err)
	}
	return reply(w, http.StatusOK, map[string]string{"diff": diff})
}
