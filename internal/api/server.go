// Package api is the HTTP API of level 2 with the routes of mosdns v5: metrics,
// profiles, and what can be done to caches and sets by their tags. It is no user
// interface, and it knows no configuration and no engine but through Config. app
// owns the server.
//
// Who reaches the API may empty caches and look into the process. So it is served
// on this machine alone, unless there is a token that each client has to show. A
// browser on this machine is a client too: what pages of others make it ask is
// refused.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymark-dns/waymark/internal/policy/act"
)

// Config is what a server is made with; all but Token is needed.
type Config struct {
	HTTP  string // host:port; without a token only the port counts where the host is not this machine's own
	Token string // that clients have to show as a bearer token (RFC 6750 §2.1); empty is none
	Log   *slog.Logger

	// Made is what the present configuration has made. It is called for each request,
	// by many at once.
	Made func() (*act.Made, *act.Metrics)
	// Reload reads the set with that tag anew.
	Reload func(ctx context.Context, tag string) error
	// Metrics is the metrics of the program itself.
	Metrics prometheus.Collector

	Now  func() time.Duration // as caches count
	Wall func() time.Time
}

// Limits of clients.
const (
	headerTime = 5 * time.Second
	readTime   = time.Minute
	writeTime  = 2 * time.Minute // a profile may take nearly as long
	idleTime   = time.Minute
	maxHeader  = 1 << 14
	maxDump    = 64 << 20 // octets of a dump that is handed in
	maxAtOnce  = 16       // requests
)

// Server is a listening server.
type Server struct {
	conf     Config
	listener net.Listener
	http     *http.Server
	mux      *http.ServeMux
	wg       sync.WaitGroup // of the goroutine that serves
	places   chan struct{}  // one token for each request that is being answered
	loading  sync.Mutex     // one dump at a time is held in memory

	requests sync.RWMutex // each request reads; Close writes, and so waits for them
	closed   bool         // guarded by requests
}

// Open listens. Requests wait until Serve.
func Open(c Config) (*Server, error) {
	addr := c.HTTP
	if c.Token == "" {
		var err error
		if addr, err = ownAddress(addr); err != nil {
			return nil, fmt.Errorf("serving the API: %w", err)
		}
		if addr != c.HTTP {
			c.Log.Warn("the API is served on this machine alone: to open it to others write api: {token: …}, which they then have to show",
				"written", c.HTTP, "served", addr)
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serving the API: %w", err)
	}
	s := &Server{conf: c, listener: l, places: make(chan struct{}, maxAtOnce)}
	s.mux = s.routes()
	s.http = &http.Server{
		Handler: s, ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader,
	}
	return s, nil
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

// Serve starts to answer.
func (s *Server) Serve() {
	s.wg.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.conf.Log.Error("the API ended", "error", err)
		}
	})
}

// Close stops listening, cuts the connections and waits for the requests that run.
func (s *Server) Close() error {
	_ = s.listener.Close() // Serve may not have been called, and tells nothing new
	err := s.http.Close()
	s.wg.Wait()
	s.requests.Lock()
	defer s.requests.Unlock()
	s.closed = true
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

// ServeHTTP is part of http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.RLock()
	defer s.requests.RUnlock()
	if s.closed {
		return
	}
	if code, why := s.refusal(r); code != 0 {
		if code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		http.Error(w, why, code)
		return
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.mux.ServeHTTP(w, r)
}
