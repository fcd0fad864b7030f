package api

import (
	"net/http"
	"strconv"
)

var statsRoutes = []route{
	{method: http.MethodGet, path: "stats/series", scope: Read, do: (*Server).series},
}

// seriesView is points of time series. The values are in the order of the names.
type seriesView struct {
	Names  []string    `json:"names"`
	Step   int         `json:"step"` // seconds
	Points []pointView `json:"points"`
}

type pointView struct {
	Time   int64    `json:"time"` // seconds since 1970 UTC
	Values []uint64 `json:"values"`
}

// series tells what counters grew by, by second or by minute.
func (s *Server) series(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, "from", "until", "step"); err != nil {
		return err
	}
	names, series := s.conf.Live.Series()
	now := s.conf.Wall().Unix()
	step := param(r, "step")
	if step != "" && step != "1" && step != "60" {
		return problem(http.StatusBadRequest, "step: write 1 or 60, in seconds")
	}
	from, err := instant(r, "from", now-300)
	if err != nil {
		return err
	}
	until, err := instant(r, "until", now+1)
	if err != nil {
		return err
	}
	view := seriesView{Names: names, Step: 1, Points: []pointView{}}
	if step == "60" {
		view.Step = 60
	}
	for _, p := range series.Points(from, until, view.Step == 60) {
		view.Points = append(view.Points, pointView{p.Time, p.Values})
	}
	return reply(w, http.StatusOK, view)
}

// instant is a parameter in seconds since 1970.
func instant(r *http.Request, key string, preset int64) (int64, error) {
	text := param(r, key)
	if text == "" {
		return preset, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, problem(http.StatusBadRequest, "%s: write seconds since 1970", key)
	}
	return n, nil
}
