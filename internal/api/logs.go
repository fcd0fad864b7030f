package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/qlog/search"
)

var logRoutes = []route{
	{method: http.MethodGet, path: "log", scope: Read, do: (*Server).logSearch},
	{method: http.MethodGet, path: "log/top", scope: Read, do: (*Server).logTop},
	{method: http.MethodGet, path: "log/count", scope: Read, do: (*Server).logCount},
	{method: http.MethodGet, path: "log/stream", scope: Read, slow: true, do: (*Server).logStream},
	{method: http.MethodGet, path: "log/export", scope: Read, slow: true, do: (*Server).logExport},
	{method: http.MethodDelete, path: "log", scope: Admin, slow: true, do: (*Server).logDelete},
}

// Limits of answers about the log.
const (
	usualRows = 100
	mostRows  = 10_000
	feedRows  = 4096 // that a stream may lag behind
	beat      = 15 * time.Second
)

// errNoLog is the problem of a server without a log.
func errNoLog() error {
	return problem(http.StatusNotFound, "no queries are logged: add querylog: to the configuration")
}

// filter reads the filter of a request; own are parameters of the route itself.
func (s *Server) filter(r *http.Request, own ...string) (dir string, f search.Filter, err error) {
	log, dir := s.conf.Live.QueryLog()
	if log == nil {
		return "", f, errNoLog()
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", f, problem(http.StatusBadRequest, "reading parameters: %v", err)
	}
	for _, key := range own {
		values.Del(key)
	}
	if f, err = search.ParseFilter(values, s.conf.Wall()); err != nil {
		return dir, f, filterProblem(err)
	}
	// What was asked a moment ago is among the answers.
	return dir, f, log.Sync(r.Context())
}

// filterProblem tells each key that is wrong.
func filterProblem(err error) error {
	if err == nil {
		return nil
	}
	p := problem(http.StatusBadRequest, "the filter is not one")
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, e := range all {
		fault := Fault{Text: e.Error()}
		if fe := (*search.FilterError)(nil); errors.As(e, &fe) && fe.Near != "" {
			fault.Mend = "write " + fe.Near
		}
		p.Errors = append(p.Errors, fault)
	}
	return p
}

// searched is the problem of a search that failed.
func searched(err error) error {
	var wrong *search.FilterError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return problem(http.StatusNotFound, "the folder of the log is gone")
	case errors.As(err, &wrong):
		return filterProblem(err)
	}
	return err
}

func (s *Server) logSearch(w http.ResponseWriter, r *http.Request) error {
	dir, f, err := s.filter(r)
	if err != nil {
		return err
	}
	if f.Limit == 0 {
		f.Limit = usualRows
	}
	f.Limit = min(f.Limit, mostRows)
	rows := []qlog.Row{}
	report, err := search.Search(r.Context(), dir, f, func(row *qlog.Row) bool { rows = append(rows, *row); return true })
	if err != nil {
		return searched(err)
	}
	return reply(w, http.StatusOK, map[string]any{"rows": rows, "next": report.Next.String(), "skipped": texts(report.Skipped)})
}

// texts is errors in words.
func texts(errs []error) []string {
	all := []string{}
	for _, e := range errs {
		all = append(all, e.Error())
	}
	return all
}

func (s *Server) logTop(w http.ResponseWriter, r *http.Request) error {
	dir, f, err := s.filter(r, "column", "n")
	if err != nil {
		return err
	}
	n, err := number(r, "n", 20, mostRows)
	if err != nil {
		return err
	}
	table, report, err := search.Top(r.Context(), dir, f, param(r, "column"), n)
	if err != nil {
		return searched(err)
	}
	return reply(w, http.StatusOK, map[string]any{"values": append([]search.Value{}, table.Values...), "rows": table.Rows, "distinct": table.Distinct, "skipped": texts(report.Skipped)})
}

func (s *Server) logCount(w http.ResponseWriter, r *http.Request) error {
	dir, f, err := s.filter(r, "step")
	if err != nil {
		return err
	}
	step, err := number(r, "step", 60, 7*24*3600)
	if err != nil {
		return err
	}
	buckets, report, err := search.Count(r.Context(), dir, f, time.Duration(step)*time.Second)
	if err != nil {
		return searched(err)
	}
	return reply(w, http.StatusOK, map[string]any{"buckets": append([]search.Bucket{}, buckets...), "skipped": texts(report.Skipped)})
}

// logExport writes the rows as a file.
func (s *Server) logExport(w http.ResponseWriter, r *http.Request) error {
	dir, f, err := s.filter(r, "format")
	if err != nil {
		return err
	}
	kinds := map[string]string{"json": "application/x-ndjson", "csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
	format := param(r, "format")
	if format == "" {
		format = "json"
	}
	kind, ok := kinds[format]
	if !ok {
		return problem(http.StatusBadRequest, "format: write one of json, csv and parquet")
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="queries.`+format+`"`)
	_, _, err = search.Export(r.Context(), dir, f, format, s.patiently(w))
	return searched(err)
}

// logDelete deletes the rows of a client or a name from every file.
func (s *Server) logDelete(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "client", "name"); err != nil {
		return err
	}
	if (param(r, "client") == "") == (param(r, "name") == "") {
		return problem(http.StatusBadRequest, "say whose rows go: client or name")
	}
	log, _ := s.conf.Live.QueryLog()
	_, f, err := s.filter(r)
	if err != nil {
		return err
	}
	gone, err := log.Delete(r.Context(), f.Matches)
	if err != nil {
		return err
	}
	note(r, "%d rows deleted from the log: %s", gone, r.URL.RawQuery)
	return reply(w, http.StatusOK, map[string]int{"deleted": gone})
}

// logStream sends rows as they come, as server-sent events.
func (s *Server) logStream(w http.ResponseWriter, r *http.Request) error {
	_, f, err := s.filter(r)
	if err != nil {
		return err
	}
	log, _ := s.conf.Live.QueryLog()
	feed := log.Follow(feedRows)
	defer log.Leave(feed)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out, control := s.patiently(w), http.NewResponseController(w)
	alive := time.NewTicker(beat)
	defer alive.Stop()
	err = control.Flush()
	for err == nil {
		select {
		case <-r.Context().Done():
			return nil
		case <-s.ending:
			return nil
		case <-alive.C:
			_, err = fmt.Fprint(out, ": still here\n\n")
		case row, ok := <-feed.C:
			if !ok {
				return nil
			}
			if !f.Matches(&row) {
				continue
			}
			text, _ := json.Marshal(row) // nothing is in it that JSON does not have
			_, err = fmt.Fprintf(out, "data: %s\n\n", text)
		}
		if err == nil && len(feed.C) == 0 {
			err = control.Flush()
		}
	}
	return nil // the client has gone
}
