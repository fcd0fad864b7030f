// Package api is the HTTP API: version 1, which docs/openapi.yaml describes, and at
// level 2 of the configuration the routes of mosdns v5 beside it. It is no user
// interface, and it knows no configuration, and the running server but through Live.
// app owns the server.
//
// Who reaches the API may do much: so everything needs a token or a session, unless
// clients of this machine are let in by the configuration. A browser on this machine
// is a client too: what pages of others make it ask is refused.
//
// Files in the order a request meets them: server.go (connections), v1.go (which
// route), auth.go, session.go and guard.go (who may), then a file for each area.
package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/waymark-dns/waymark/internal/limit"
	"github.com/waymark-dns/waymark/internal/policy/act"
)

// Config is what a server is made with; all but TLS is needed.
type Config struct {
	Listen  string // host:port
	Access  Access
	TLS     CertFiles
	Audit   *Audit // closed with the server
	Log     *slog.Logger
	Live    Live
	Metrics prometheus.Collector // of the program itself
	Clock
	Level2 *Level2 // nil at level 1
}

// Clock is the time.
type Clock struct {
	Now      func() time.Duration // monotonic, as caches count
	Wall     func() time.Time
	Deadline func(time.Duration) time.Time // by the clock of connections
}

// Level2 is what the routes of mosdns need. The functions are called for each request,
// by many at once.
type Level2 struct {
	// Made is what the present configuration has made.
	Made func() (*act.Made, *act.Metrics)
	// Reload reads the set with that tag anew.
	Reload func(ctx context.Context, tag string) error
}

// Level2Access is who may ask where there is nothing but a token, and addr where that
// may be served: without a token on this machine alone.
func Level2Access(addr, token string, log *slog.Logger) (string, Access, error) {
	if token != "" {
		return addr, Access{Tokens: []Token{{Name: "token", Scope: Admin, Hash: sha256.Sum256([]byte(token))}}}, nil
	}
	own, err := ownAddress(addr)
	if err == nil && own != addr {
		log.Warn("the API is served on this machine alone: to open it to others write api: {token: …}, which they then have to show",
			"written", addr, "served", own)
	}
	return own, Access{Open: true}, err
}

// Limits of clients.
const (
	headerTime = 5 * time.Second
	readTime   = time.Minute
	writeTime  = 2 * time.Minute // a profile may take nearly as long
	idleTime   = time.Minute
	maxHeader  = 1 << 14
	maxDump    = 64 << 20 // octets of a dump that is handed in
	maxAtOnce  = 64       // requests
	maxSlow    = 16       // requests that may take long, besides
)

// Server is a listening server.
type Server struct {
	conf     Config
	listener net.Listener
	http     *http.Server
	mux      *http.ServeMux
	registry *prometheus.Registry
	audit    *Audit
	sessions sessions
	guesses  *limit.Rate
	wg       sync.WaitGroup // of the goroutine that serves
	places   chan struct{}  // one token for each request that is being answered
	slow     chan struct{}  // the same of those that may take long
	loading  sync.Mutex     // one dump at a time is held in memory
	ending   chan struct{}  // closed when it ends

	requests sync.RWMutex // each request reads; Close writes, and so waits for them
	closed   bool         // guarded by requests
}

// Open listens. Requests wait until Serve.
func Open(c Config) (*Server, error) {
	listener, err := listen(&c)
	if err != nil {
		return nil, fmt.Errorf("serving the API: %w", err)
	}
	s := &Server{
		conf: c, listener: listener, audit: c.Audit, registry: prometheus.NewRegistry(), guesses: guesses(),
		places: make(chan struct{}, maxAtOnce), slow: make(chan struct{}, maxSlow), ending: make(chan struct{}),
	}
	s.registry.MustRegister(c.Metrics, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.mux = http.NewServeMux()
	s.v1(s.mux)
	s.others(s.mux)
	s.http = &http.Server{
		Handler: s, ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader,
	}
	return s, nil
}

// listen opens the socket, with TLS where there is a certificate.
func listen(c *Config) (net.Listener, error) {
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, err
	}
	addr, err := netip.ParseAddrPort(l.Addr().String())
	if err == nil {
		err = c.Access.usable(addr)
	}
	if err == nil && c.TLS.Cert != "" {
		var secured net.Listener
		if secured, err = c.TLS.over(l, c.Wall); err == nil {
			return secured, nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if !addr.Addr().IsLoopback() {
		c.Log.Warn("the API is served without TLS: whoever is on the way can read tokens; write tls: {cert: …, key: …} under api:", "listen", c.Listen)
	}
	return l, nil
}

// ownAddress is addr where that is of this machine alone, else the same port there.
func ownAddress(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() || host == "localhost" {
		return addr, nil
	}
	return net.JoinHostPort("127.0.0.1", port), nil
}

// Addr is the address that it listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL is where it is served.
func (s *Server) URL() string {
	if s.conf.TLS.Cert != "" {
		return "https://" + s.Addr()
	}
	return "http://" + s.Addr()
}

// Serve starts to answer.
func (s *Server) Serve() {
	s.wg.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.conf.Log.Error("the API ended", "error", err)
		}
	})
}

// Close stops listening, cuts the connections and waits for the requests that run.
func (s *Server) Close() error {
	close(s.ending)
	_ = s.listener.Close() // Serve may not have been called, and tells nothing new
	err := s.http.Close()
	s.wg.Wait()
	s.requests.Lock()
	defer s.requests.Unlock()
	s.closed = true
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return errors.Join(err, s.audit.Close())
}

// ServeHTTP is part of http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.RLock()
	defer s.requests.RUnlock()
	if s.closed {
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

// place takes a place for a request; free gives it back. ok is false where there is
// none.
func place(places chan struct{}) (free func(), ok bool) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, true
	default:
		return nil, false
	}
}
