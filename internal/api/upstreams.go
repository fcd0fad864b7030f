package api

import (
	"net/http"
	"time"
)

var upstreamRoutes = []route{
	{method: http.MethodGet, path: "upstreams", scope: Read, do: (*Server).upstreams},
	{method: http.MethodPost, path: "upstreams/drain", scope: Operate, body: smallBody, do: (*Server).drain},
}

// upstreamView is an upstream as clients see it. Times are milliseconds.
type upstreamView struct {
	Group      string  `json:"group"`
	Name       string  `json:"name"`
	Addr       string  `json:"addr"`
	Healthy    bool    `json:"healthy"`
	Drained    bool    `json:"drained"`
	RTT        float64 `json:"rtt"`
	P95        float64 `json:"p95"`
	Penalty    float64 `json:"penalty"`
	Queries    uint64  `json:"queries"`
	Answers    uint64  `json:"answers"`
	Timeouts   uint64  `json:"timeouts"`
	Failures   uint64  `json:"failures"`
	Errors     uint64  `json:"errors"`
	Truncated  uint64  `json:"truncated"`
	TCPQueries uint64  `json:"tcp_queries"`
	Sockets    int     `json:"sockets"`
	Conns      int     `json:"connections"`
	Spoofs     uint64  `json:"spoofs"` // messages in place of an answer: perhaps forged
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (s *Server) upstreams(w http.ResponseWriter, _ *http.Request) error {
	list := []upstreamView{}
	for _, g := range s.conf.Live.Groups() {
		for _, u := range g.Group.Status(s.conf.Now()) {
			list = append(list, upstreamView{
				Group: g.Name, Name: u.Name, Addr: u.Addr.String(), Healthy: u.Healthy, Drained: u.Drained,
				RTT: milliseconds(u.RTT), P95: milliseconds(u.P95), Penalty: milliseconds(u.Penalty),
				Queries: u.Queries, Answers: u.Answers, Timeouts: u.Timeouts, Failures: u.Failures, Errors: u.Errors,
				Truncated: u.Truncated, TCPQueries: u.TCPQueries, Sockets: u.Sockets, Conns: u.Conns, Spoofs: u.Spoofs.WrongID + u.Spoofs.WrongQuestion + u.Spoofs.Unexpected,
			})
		}
	}
	return reply(w, http.StatusOK, map[string]any{"upstreams": list})
}

// drained is an upstream to ask no more, or to ask again.
type drained struct {
	Group    string `json:"group"`
	Upstream string `json:"upstream"`
	Drain    bool   `json:"drain"`
}

// drain takes an upstream out of the choice while another is there, or puts it back.
// A reload puts all back.
func (s *Server) drain(w http.ResponseWriter, r *http.Request) error {
	var d drained
	if err := read(r, &d); err != nil {
		return err
	}
	for _, g := range s.conf.Live.Groups() {
		if g.Name == d.Group && g.Group.Drain(d.Upstream, d.Drain) {
			note(r, "upstream %s of %s: drained %v", d.Upstream, d.Group, d.Drain)
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	return problem(http.StatusNotFound, "there is no upstream %q in a group %q", d.Upstream, d.Group)
}
