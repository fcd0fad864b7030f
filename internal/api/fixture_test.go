package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"golang.org/x/crypto/bcrypt"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/explain"
	"github.com/waymark-dns/waymark/internal/history"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/stats"
	"github.com/waymark-dns/waymark/internal/upstream"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
	"github.com/waymark-dns/waymark/internal/zone/store"
	"github.com/waymark-dns/waymark/internal/zone/xfr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server that the API works on.
type world struct {
	t       *testing.T
	cache   *cache.Cache
	group   *upstream.Group
	log     *qlog.Log
	logDir  string
	store   *store.Store
	history *history.Manager
	series  *stats.Series
	served  map[string]*zone.Zone // managed
	files   []*zone.Zone
	file    string // of file.example.
	notYet  error
	reload  error
}

func (w *world) Status() Status {
	return Status{Version: "test", Uptime: time.Minute, Served: "zones", Listeners: []string{"udp://127.0.0.1:53"}}
}
func (w *world) Ready() error                           { return w.notYet }
func (w *world) Reload(context.Context) (string, error) { return "zones", w.reload }
func (w *world) Explain(_ context.Context, a explain.Asked) (*explain.Answered, error) {
	if _, err := a.Question(); err != nil {
		return nil, err
	}
	return &explain.Answered{Name: a.Name, Type: a.Type}, nil
}
func (w *world) Caches() []NamedCache {
	return []NamedCache{{Cache: w.cache}, {Tag: "second", Cache: w.cache}}
}
func (w *world) Groups() []NamedGroup { return []NamedGroup{{Name: "all", Group: w.group}} }
func (w *world) Sets() []SetView      { return []SetView{{Tag: "ads", Type: "domain_set", Entries: 3}} }
func (w *world) ReloadSet(tag string) error {
	if tag != "ads" {
		return errors.New("no such set")
	}
	return w.reload
}
func (w *world) QueryLog() (*qlog.Log, string)     { return w.log, w.logDir }
func (w *world) Series() ([]string, *stats.Series) { return []string{"queries"}, w.series }
func (w *world) Zones() []*zone.Zone {
	all := append([]*zone.Zone{}, w.files...)
	for _, z := range w.served {
		all = append(all, z)
	}
	return all
}
func (w *world) ZoneFile(apex wire.Name) (string, bool) {
	return w.file, w.file != "" && apex.String() == "file.example."
}
func (w *world) Store() *store.Store { return w.store }
func (w *world) UseZone(z *zone.Zone) error {
	w.served[z.Name().String()] = z
	return nil
}
func (w *world) DropZone(apex wire.Name) error {
	delete(w.served, apex.String())
	return nil
}
func (w *world) Primary(addr, _ string) (*xfr.Primary, error) {
	return nil, errors.New("no primary " + addr)
}
func (w *world) History() *history.Manager { return w.history }

const password = "correct horse"

// tokens are what clients show, by scope.
var tokens = map[Scope]string{Read: "look", Operate: "work", Admin: "rule"}

// rig is a server that listens, and who asks it.
type rig struct {
	*Server
	t     *testing.T
	world *world
	url   string
	as    Scope // whose token is shown; Nobody shows none
	head  map[string]string
}

func newRig(t *testing.T, change func(*Config, *world)) *rig {
	t.Helper()
	begin := time.Now()
	dir := t.TempDir()
	clock := Clock{Now: func() time.Duration { return time.Since(begin) }, Wall: time.Now, Deadline: func(d time.Duration) time.Time { return time.Now().Add(d) }}
	log := slog.New(slog.DiscardHandler)
	w := &world{t: t, served: map[string]*zone.Zone{}, series: stats.NewSeries([]uint64{0}), logDir: filepath.Join(dir, "log")}
	var err error
	keep := func(e error) {
		if e != nil {
			t.Fatal(e)
		}
	}
	w.cache, err = cache.New(cache.Config{Size: 1 << 20, MaxTTL: time.Hour, MaxNegativeTTL: time.Hour})
	keep(err)
	conf := upstream.DefaultConfig()
	conf.Servers = []upstream.Server{{Name: "udp://192.0.2.53:53", Addr: netipAddr("192.0.2.53:53")}}
	w.group, err = upstream.NewGroup(conf, upstream.Env{Now: clock.Now, Wake: func() {}, Outbox: &upstream.Outbox{}})
	keep(err)
	w.log, err = qlog.Open(qlog.Config{Dir: w.logDir, Now: clock.Now, Wall: time.Now, Log: log})
	keep(err)
	w.store, err = store.Open(store.Config{Path: filepath.Join(dir, "zones.db"), Now: time.Now})
	keep(err)
	file := filepath.Join(dir, "waymark.yaml")
	write(t, file, "listen: [udp://127.0.0.1:53]\n")
	w.history = history.New(history.Config{
		Path: file, Dir: filepath.Join(dir, "history"), Keep: 10, Wall: time.Now, Log: log,
		Check: func(text []byte) []plan.Problem {
			if strings.Contains(string(text), "wrong") {
				return []plan.Problem{{Pos: plan.Pos{File: file, Line: 2}, Text: "it is wrong", Mend: "make it right"}}
			}
			return nil
		},
		Reload: func(context.Context) (string, error) { return "zones", w.reload },
	})
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	keep(err)
	c := Config{Listen: "127.0.0.1:0", Log: log, Live: w, Metrics: prometheus.NewCounter(prometheus.CounterOpts{Name: "waymark_test_total"}), Clock: clock, Access: Access{Password: string(hash)}}
	for scope, text := range tokens {
		c.Access.Tokens = append(c.Access.Tokens, Token{Name: scope.String() + "er", Scope: scope, Hash: sha256.Sum256([]byte(text))})
	}
	c.Audit, err = OpenAudit(filepath.Join(dir, "audit.jsonl"), log)
	keep(err)
	if change != nil {
		change(&c, w)
	}
	s, err := Open(c)
	keep(err)
	s.Serve()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		keep(s.Close())
		keep(w.log.Close())
		keep(w.store.Close())
		keep(w.cache.Close())
		w.history.Close()
		w.group.Close()
	})
	return &rig{Server: s, t: t, world: w, url: "http://" + s.Addr(), as: Admin}
}

// answer is what came back.
type answer struct {
	code int
	head http.Header
	body string
}

// json reads the body.
func (a answer) json(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
}

// do asks for a path of version 1. A body that begins with a brace is JSON.
func (r *rig) do(method, path, body string) answer {
	r.t.Helper()
	return r.raw(method, prefix+path, strings.NewReader(body), strings.HasPrefix(body, "{"))
}

func (r *rig) raw(method, path string, body io.Reader, asJSON bool) answer {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.as != Nobody {
		req.Header.Set("Authorization", "Bearer "+tokens[r.as])
	}
	if asJSON {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range r.head {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// want asks and checks the code.
func (r *rig) want(code int, method, path, body string) answer {
	r.t.Helper()
	a := r.do(method, path, body)
	if a.code != code {
		r.t.Errorf("%s %s: %d, want %d: %s", method, path, a.code, code, a.body)
	}
	if code >= 400 && a.code == code {
		var p Problem
		a.json(r.t, &p)
		if p.Status != code || p.Title == "" || p.Detail == "" || a.head.Get("Content-Type") != "application/problem+json" {
			r.t.Errorf("%s %s: not a problem: %v %s", method, path, a.head, a.body)
		}
	}
	return a
}
