package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/waymark-dns/waymark/internal/policy/act"
)

// routes is what there is, whatever the configuration. Plugins are looked up when
// they are asked for.
func (s *Server) routes() *http.ServeMux {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{s.conf}, s.conf.Metrics,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/plugins/{tag}/{what}", s.plugin)
	mux.HandleFunc("/", s.help)
	return mux
}

// route is one thing that can be done to a plugin.
type route struct {
	methods, what string
	do            func(w http.ResponseWriter, r *http.Request)
}

// of is what can be done to the plugin with that tag.
func (s *Server) of(tag string) []route {
	made, _ := s.conf.Made()
	for _, c := range made.Caches {
		if c.Tag == tag {
			return []route{
				{"GET POST", "flush", func(http.ResponseWriter, *http.Request) { c.Cache().FlushAll() }},
				{"GET", "dump", func(w http.ResponseWriter, _ *http.Request) { s.dump(w, c) }},
				{"POST", "load_dump", func(w http.ResponseWriter, r *http.Request) { s.load(w, r, c) }},
			}
		}
	}
	for _, set := range made.Sets {
		if set.Tag == tag {
			return []route{{"GET POST", "reload", func(w http.ResponseWriter, r *http.Request) { s.reload(w, r, tag) }}}
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
	made, _ := s.conf.Made()
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
func (s *Server) reload(w http.ResponseWriter, r *http.Request, tag string) {
	if err := s.conf.Reload(r.Context(), tag); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintln(w, "reloaded")
}
