package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/waymark-dns/waymark/internal/api/mosdns"
	"github.com/waymark-dns/waymark/internal/policy/act"
)

// others adds what is not of version 1: metrics and profiles, and at level 2 the
// routes of mosdns. Plugins are looked up when they are asked for.
func (s *Server) others(mux *http.ServeMux) {
	add := func(pattern string, need Scope, do http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.plain(need, do, w, r) })
	}
	add("GET /metrics", Read, promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}).ServeHTTP)
	add("GET /debug/pprof/", Admin, pprof.Index)
	add("GET /debug/pprof/cmdline", Admin, pprof.Cmdline)
	add("GET /debug/pprof/profile", Admin, pprof.Profile)
	add("GET /debug/pprof/symbol", Admin, pprof.Symbol)
	add("GET /debug/pprof/trace", Admin, pprof.Trace)
	if s.conf.Level2 == nil {
		return
	}
	s.registry.MustRegister(mosdns.Collector{Made: s.conf.Level2.Made, Now: s.conf.Now})
	add("/plugins/{tag}/{what}", Operate, s.plugin)
	add("/", Read, s.help)
}

// plain does what a route outside version 1 does, for who may have it. What is done to
// plugins may be asked for by GET: a cookie is not enough for it.
func (s *Server) plain(need Scope, do http.HandlerFunc, w http.ResponseWriter, r *http.Request) {
	if _, p := s.authorize(r, need, need == Operate); p != nil {
		if p.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		http.Error(w, p.Detail, p.Status)
		return
	}
	free, ok := place(s.places)
	if !ok {
		http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		return
	}
	defer free()
	do(w, r)
}

// deed is one thing that can be done to a plugin.
type deed struct {
	methods, what string
	do            func(w http.ResponseWriter, r *http.Request)
}

// of is what can be done to the plugin with that tag.
func (s *Server) of(tag string) []deed {
	made, _ := s.conf.Level2.Made()
	for _, c := range made.Caches {
		if c.Tag == tag {
			return []deed{
				{"GET POST", "flush", func(http.ResponseWriter, *http.Request) { c.Cache().FlushAll() }},
				{"GET", "dump", func(w http.ResponseWriter, _ *http.Request) { s.dump(w, c) }},
				{"POST", "load_dump", func(w http.ResponseWriter, r *http.Request) { s.load(w, r, c) }},
			}
		}
	}
	for _, set := range made.Sets {
		if set.Tag == tag {
			return []deed{{"GET POST", "reload", func(w http.ResponseWriter, r *http.Request) { s.reloadPlugin(w, r, tag) }}}
		}
	}
	return nil
}

func (s *Server) plugin(w http.ResponseWriter, r *http.Request) {
	for _, p := range s.of(r.PathValue("tag")) {
		if p.what == r.PathValue("what") && strings.Contains(p.methods, r.Method) {
			p.do(w, r)
			return
		}
	}
	s.help(w, r)
}

// help lists what there is; its code is 200, as that of mosdns.
func (s *Server) help(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Invalid request %s %q\n\nAvailable api urls:\n", r.Method, r.URL.Path)
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/profile", "/debug/pprof/symbol", "/debug/pprof/trace"} {
		fmt.Fprintf(&b, "GET %s\n", path)
	}
	made, _ := s.conf.Level2.Made()
	var tags []string
	for _, c := range made.Caches {
		tags = append(tags, c.Tag)
	}
	for _, set := range made.Sets {
		tags = append(tags, set.Tag)
	}
	for _, tag := range tags {
		for _, p := range s.of(tag) {
			for method := range strings.FieldsSeq(p.methods) {
				fmt.Fprintf(&b, "%s /plugins/%s/%s\n", method, tag, p.what)
			}
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // the client may have gone
}

// dump sends the cache in the format of this program.
func (s *Server) dump(w http.ResponseWriter, c *act.LazyCache) {
	w.Header().Set("Content-Type", "application/octet-stream")
	if _, err := c.Cache().Dump(w, s.conf.Now(), s.conf.Wall()); err != nil {
		s.conf.Log.Debug("sending a dump failed", "cache", c.Tag, "error", err)
		panic(http.ErrAbortHandler) // so that the client sees that it is cut
	}
}

// load fills the cache from a dump of this program or of mosdns.
func (s *Server) load(w http.ResponseWriter, r *http.Request, c *act.LazyCache) {
	if !s.loading.TryLock() {
		http.Error(w, "another dump is being loaded", http.StatusServiceUnavailable)
		return
	}
	defer s.loading.Unlock()
	all, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDump))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, fmt.Sprintf("more than %d octets", maxDump), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n, err := c.Cache().LoadAny(bytes.NewReader(all), s.conf.Now(), s.conf.Wall())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = fmt.Fprintf(w, "%d entries loaded\n", n)
}

// reload reads a set anew.
func (s *Server) reloadPlugin(w http.ResponseWriter, r *http.Request, tag string) {
	if err := s.conf.Level2.Reload(r.Context(), tag); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintln(w, "reloaded")
}
