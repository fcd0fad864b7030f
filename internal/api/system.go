package api

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/waymark-dns/waymark/docs"
	"github.com/waymark-dns/waymark/internal/explain"
)

var systemRoutes = []route{
	{method: http.MethodGet, path: "health", scope: Read, do: (*Server).health},
	{method: http.MethodGet, path: "ready", scope: Read, do: (*Server).ready},
	{method: http.MethodGet, path: "status", scope: Read, do: (*Server).status},
	{method: http.MethodGet, path: "metrics", scope: Read, do: (*Server).metrics},
	{method: http.MethodGet, path: "openapi.yaml", scope: Read, do: (*Server).openapi},
	{method: http.MethodPost, path: "reload", scope: Operate, do: (*Server).reloadAll},
	{method: http.MethodGet, path: "explain", scope: Read, do: (*Server).explain},
	{method: http.MethodGet, path: "sets", scope: Read, do: (*Server).sets},
	{method: http.MethodPost, path: "sets/{tag}/reload", scope: Operate, do: (*Server).reloadSet},
}

// health says that the process lives.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready says whether everything is served.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) error {
	if err := s.conf.Live.Ready(); err != nil {
		return problem(http.StatusServiceUnavailable, "%v", err)
	}
	return reply(w, http.StatusOK, map[string]string{"status": "ready"})
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) error {
	st := s.conf.Live.Status()
	return reply(w, http.StatusOK, struct {
		Status
		Uptime float64 `json:"uptime"` // seconds
	}{st, st.Uptime.Seconds()})
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}).ServeHTTP(w, r)
	return nil
}

func (s *Server) openapi(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(docs.OpenAPI) // the client may have gone
	return nil
}

func (s *Server) reloadAll(w http.ResponseWriter, r *http.Request) error {
	served, err := s.conf.Live.Reload(r.Context())
	if err != nil {
		return problem(http.StatusUnprocessableEntity, "%v", err)
	}
	note(r, "reloaded: %s", served)
	return reply(w, http.StatusOK, map[string]string{"served": served})
}

// explain asks a question and tells every step. It is really asked: caches learn from
// it.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "name", "type", "client", "listener", "dnssec", "cd"); err != nil {
		return err
	}
	a := explain.Asked{Name: param(r, "name"), Type: param(r, "type"), Client: param(r, "client"), Listener: param(r, "listener")}
	var errs [2]error
	a.DO, errs[0] = flag(r, "dnssec")
	a.CD, errs[1] = flag(r, "cd")
	if err := errors.Join(errs[:]...); err != nil {
		return problem(http.StatusBadRequest, "%v", err)
	}
	answered, err := s.conf.Live.Explain(r.Context(), a)
	if errors.Is(err, explain.ErrGone) {
		return problem(http.StatusGatewayTimeout, "%v", err)
	}
	if err != nil {
		return problem(http.StatusBadRequest, "%v", err)
	}
	return reply(w, http.StatusOK, answered)
}

// flag is a parameter that is true or false.
func flag(r *http.Request, key string) (bool, error) {
	text := param(r, key)
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, errors.New(key + ": write true or false")
	}
	return on, nil
}

func (s *Server) sets(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, map[string]any{"sets": append([]SetView{}, s.conf.Live.Sets()...)})
}

func (s *Server) reloadSet(w http.ResponseWriter, r *http.Request) error {
	tag := r.PathValue("tag")
	for _, set := range s.conf.Live.Sets() {
		if set.Tag != tag {
			continue
		}
		if err := s.conf.Live.ReloadSet(tag); err != nil {
			return problem(http.StatusUnprocessableEntity, "%v", err)
		}
		note(r, "set %s read anew", tag)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return problem(http.StatusNotFound, "there is no set %q", tag)
}
