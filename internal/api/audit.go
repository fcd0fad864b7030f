package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"
)

// Entry is one change, or an attempt at one.
type Entry struct {
	Time   time.Time `json:"time"`
	Who    string    `json:"who"`
	From   string    `json:"from"` // address
	Method string    `json:"method"`
	Path   string    `json:"path"`
	Status int       `json:"status"`         // of the answer
	What   string    `json:"what,omitempty"` // what changed, or why not
}

// The audit trail's file: a line of JSON each, behind a line that says its version.
const (
	auditVersion = `{"waymark-audit":1}`
	maxAudit     = 8 << 20 // octets of a file; the one before is kept beside it
	maxRecent    = 1000    // entries that are held in memory
)

// Audit is the trail of changes: the latest in memory, all of them in a file where
// there is one. A file that cannot be written to is told to the log, and stops no
// request.
type Audit struct {
	log *slog.Logger

	mu     sync.Mutex // guards what follows
	path   string     // empty is none
	file   *os.File
	size   int64
	recent []Entry
}

// OpenAudit opens the trail in a file; an empty path is one in memory.
func OpenAudit(path string, log *slog.Logger) (*Audit, error) {
	a := &Audit{log: log, path: path}
	if path == "" {
		return a, nil
	}
	if err := a.open(); err != nil {
		return nil, fmt.Errorf("opening the audit trail: %w", err)
	}
	return a, nil
}

// open opens the file and reads the latest entries.
func (a *Audit) open() error {
	text, err := os.ReadFile(a.path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if a.file, err = os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
		return err
	}
	a.size = int64(len(text))
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, smallBody)
	if a.size > 0 && (!lines.Scan() || lines.Text() != auditVersion) {
		return fmt.Errorf("%s: not a trail of this version; move it away", a.path)
	}
	for lines.Scan() {
		var e Entry
		if json.Unmarshal(lines.Bytes(), &e) == nil { // a line may be cut by a crash
			a.remember(e)
		}
	}
	if a.size > 0 && text[len(text)-1] != '\n' {
		a.put([]byte("\n"))
	}
	if a.size == 0 {
		a.put([]byte(auditVersion + "\n"))
	}
	return nil
}

func (a *Audit) remember(e Entry) {
	if len(a.recent) == maxRecent {
		a.recent = append(a.recent[:0], a.recent[maxRecent/4:]...)
	}
	a.recent = append(a.recent, e)
}

// add adds an entry of that time.
func (a *Audit) add(now time.Time, e Entry) {
	e.Time = now.UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return // there is nothing in it that JSON does not have
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remember(e)
	if a.file == nil {
		return
	}
	if a.size > maxAudit {
		a.turn()
	}
	a.put(append(line, '\n'))
}

// turn begins a new file.
func (a *Audit) turn() {
	_ = a.file.Close()
	err := os.Rename(a.path, a.path+".1")
	if err == nil {
		a.file, err = os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	}
	if err != nil {
		a.file = nil
		a.log.Error("the audit trail ends: its file could not be replaced", "error", err)
		return
	}
	a.size = 0
	a.put([]byte(auditVersion + "\n"))
}

func (a *Audit) put(b []byte) {
	if a.file == nil {
		return
	}
	n, err := a.file.Write(b)
	a.size += int64(n)
	if err != nil {
		a.log.Error("writing the audit trail failed", "error", err)
	}
}

// Close closes the file.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	a.file = nil
	return err
}

var auditRoutes = []route{
	{method: http.MethodGet, path: "audit", scope: Admin, do: (*Server).trail},
}

// trail lists changes, the latest first.
func (s *Server) trail(w http.ResponseWriter, r *http.Request) error {
	limit, err := number(r, "limit", 100, maxRecent)
	if err != nil {
		return err
	}
	s.audit.mu.Lock()
	defer s.audit.mu.Unlock()
	list := []Entry{}
	for i := len(s.audit.recent) - 1; i >= 0 && len(list) < limit; i-- {
		list = append(list, s.audit.recent[i])
	}
	return reply(w, http.StatusOK, map[string]any{"entries": list})
}
