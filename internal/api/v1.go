package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// prefix is where version 1 begins.
const prefix = "/api/v1/"

// Most octets of bodies.
const (
	smallBody  = 64 << 10
	configBody = 4 << 20
	zoneBody   = 2 << 30
)

// route is one thing that the API does. docs/openapi.yaml describes each.
type route struct {
	method string
	path   string // behind the prefix; {name} is a part of its own
	scope  Scope
	body   int64 // most octets of the body; 0 is none
	slow   bool  // a stream, or as long as what is sent: only standing still is limited
	do     func(*Server, http.ResponseWriter, *http.Request) error
}

// tables is all routes, an area each.
func tables() []route {
	return slices.Concat(sessionRoutes, systemRoutes, cacheRoutes, upstreamRoutes, zoneRoutes, configRoutes, logRoutes, statsRoutes, auditRoutes)
}

// unsafe tells whether a route may change something.
func (t *route) unsafe() bool { return t.method != http.MethodGet }

// v1 adds version 1 to mux.
func (s *Server) v1(mux *http.ServeMux) {
	all := tables()
	for i := range all {
		mux.HandleFunc(all[i].method+" "+prefix+all[i].path, func(w http.ResponseWriter, r *http.Request) { s.route(&all[i], w, r) })
	}
	mux.HandleFunc(prefix, func(w http.ResponseWriter, r *http.Request) { s.nowhere(all, w, r) })
}

// asked is what a request carries along.
type asked struct {
	who  identity
	note string // what has changed, for the audit trail
}

type askedKey struct{}

// asks is who asks.
func asks(r *http.Request) identity { return r.Context().Value(askedKey{}).(*asked).who }

// note says what a request has changed.
func note(r *http.Request, format string, args ...any) {
	r.Context().Value(askedKey{}).(*asked).note = fmt.Sprintf(format, args...)
}

// route does what one route does, for who may have it.
func (s *Server) route(t *route, w http.ResponseWriter, r *http.Request) {
	sent := &asked{who: identity{name: "nobody"}}
	status := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	if err := s.perform(t, status, r, sent); err != nil {
		p, ours := asProblem(err)
		if ours {
			s.conf.Log.Error("a request to the API failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		if p.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		if !status.begun {
			p.send(status)
		}
		sent.note = p.Detail
	}
	// Who shows nothing, or guesses too often, does not fill the trail.
	if t.unsafe() && sent.who.name != "" && status.status != http.StatusTooManyRequests {
		s.audit.add(s.conf.Wall(), Entry{
			Who: sent.who.name, From: remote(r).Addr().String(), Method: r.Method, Path: r.URL.Path, Status: status.status, What: sent.note,
		})
	}
}

// perform does what a route does, where who asks may have it and there is a place.
func (s *Server) perform(t *route, w *statusWriter, r *http.Request, sent *asked) error {
	if t.scope != Nobody {
		who, p := s.authorize(r, t.scope, t.unsafe())
		if sent.who = who; p != nil {
			return p
		}
	}
	places := s.places
	if t.slow {
		places = s.slow
	}
	free, ok := place(places)
	if !ok {
		return problem(http.StatusServiceUnavailable, "too many requests at once")
	}
	defer free()
	r = r.WithContext(context.WithValue(r.Context(), askedKey{}, sent))
	s.limit(t, w, r)
	return t.do(s, w, r)
}

// limit bounds the body and the time of a request.
func (s *Server) limit(t *route, w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, t.body)
	if t.slow {
		r.Body = &patient{ReadCloser: r.Body, control: http.NewResponseController(w), deadline: s.conf.Deadline}
	}
}

// stall is how long a slow request may stand still.
const stall = 30 * time.Second

// patient is a body that may take long, but not without getting on.
type patient struct {
	io.ReadCloser
	control  *http.ResponseController
	deadline func(time.Duration) time.Time
}

// Read is part of io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	// Not all that serve can do it: then the limits of the server hold.
	_ = p.control.SetReadDeadline(p.deadline(stall))
	_ = p.control.SetWriteDeadline(p.deadline(10 * stall))
	return p.ReadCloser.Read(b)
}

// patiently writes to who may be slow, but not stand still.
func (s *Server) patiently(w http.ResponseWriter) io.Writer {
	return &patientWriter{w, http.NewResponseController(w), s.conf.Deadline}
}

type patientWriter struct {
	io.Writer
	control  *http.ResponseController
	deadline func(time.Duration) time.Time
}

// Write is part of io.Writer.
func (p *patientWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(p.deadline(stall)) // as above
	return p.Writer.Write(b)
}

// statusWriter remembers what was answered.
type statusWriter struct {
	http.ResponseWriter
	status int
	begun  bool
}

// WriteHeader is part of http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if !w.begun {
		w.status, w.begun = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write is part of http.ResponseWriter.
func (w *statusWriter) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// nowhere answers what no route is for. Who may not ask learns nothing of what there
// is.
func (s *Server) nowhere(all []route, w http.ResponseWriter, r *http.Request) {
	if _, p := s.authorize(r, Read, r.Method != http.MethodGet && r.Method != http.MethodHead); p != nil {
		p.send(w)
		return
	}
	var methods []string
	for i := range all {
		if fits(all[i].path, strings.TrimPrefix(r.URL.Path, prefix)) {
			methods = append(methods, all[i].method)
		}
	}
	if len(methods) == 0 {
		problem(http.StatusNotFound, "there is no %s; openapi.yaml says what there is", r.URL.Path).send(w)
		return
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	problem(http.StatusMethodNotAllowed, "%s takes %s", r.URL.Path, strings.Join(methods, " and ")).send(w)
}

// fits tells whether a path is one of a pattern's.
func fits(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if want[i] != have[i] && (!strings.HasPrefix(want[i], "{") || have[i] == "") {
			return false
		}
	}
	return true
}
