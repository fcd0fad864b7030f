package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/waymark-dns/waymark/internal/config/sections"
	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/wire"
)

// patience is how long anything in these tests may take; it is only ever used up
// by a failure.
const patience = 20 * time.Second

// zoneText is a zone with that serial and some further lines.
func zoneText(serial int, lines ...string) string {
	return fmt.Sprintf("$TTL 3600\n@ IN SOA ns hostmaster %d 7200 3600 1209600 300\n@ IN NS ns\nns IN A 192.0.2.1\n", serial) +
		strings.Join(lines, "\n") + "\n"
}

// site is a folder of zone files and the plan that serves them on loopback.
type site struct {
	t    *testing.T
	dir  string
	plan *plan.Plan
	edit func(*Server) // before the start
}

func newSite(t *testing.T) *site {
	s := &site{t: t, dir: t.TempDir(), plan: plan.Default()}
	s.plan.Programs = sections.Programs(s.plan)
	s.plan.Server.Workers = 2
	s.listen("udp", "127.0.0.1:0")
	s.listen("tcp", "127.0.0.1:0")
	return s
}

func (s *site) listen(scheme, addr string) {
	s.plan.Listen = append(s.plan.Listen, plan.Listen{Scheme: scheme, Addr: netip.MustParseAddrPort(addr)})
}

// write makes or replaces a zone file.
func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// zone adds a zone to the plan and writes its file.
func (s *site) zone(name, text string) {
	s.t.Helper()
	n, err := wire.ParseName(name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(name, text)
	s.plan.Zones = append(s.plan.Zones, plan.Zone{Name: n, File: filepath.Join(s.dir, name)})
}

// running is a server under test.
type running struct {
	*Server
	t        *testing.T
	udp, tcp string
	hup      chan os.Signal
	log      *syncBuffer
	stop     func() error // drains and returns what Run returned; once
}

// syncBuffer is a log that a test may read while the server writes.
type syncBuffer struct {
	mu   sync.Mutex // guards b
	b    bytes.Buffer
	hook func(line string) // sees each line as the server writes it
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	if s.hook != nil {
		s.hook(string(p))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// run starts the site's server and stops it when the test ends, which checks
// that nothing of it is left.
func (s *site) run(load func() (*plan.Plan, error)) *running {
	s.t.Helper()
	leaks := goleak.IgnoreCurrent()
	r := &running{t: s.t, hup: make(chan os.Signal), log: &syncBuffer{}}
	srv := newServer(Options{Plan: s.plan, Load: load, Log: slog.New(slog.NewTextHandler(r.log, nil)), Stdout: r.log, Name: "waymark"})
	r.Server = srv
	if s.edit != nil {
		s.edit(srv)
	}
	if err := srv.start(s.t.Context(), s.plan); err != nil {
		srv.close()
		s.t.Fatalf("starting: %v\n%s", err, r.log)
	}
	for _, l := range srv.listeners {
		switch {
		case strings.HasPrefix(l.key, "udp") && r.udp == "":
			r.udp = l.Addr().String()
		case strings.HasPrefix(l.key, "tcp") && r.tcp == "":
			r.tcp = l.Addr().String()
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	limit := s.plan.Server.Drain
	go func() {
		srv.serve(ctx, r.hup, limit)
		close(done)
	}()
	r.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case <-done:
			return nil
		case <-time.After(patience):
			return errors.New("the server does not stop")
		}
	})
	s.t.Cleanup(func() {
		if err := r.stop(); err != nil {
			s.t.Error(err)
		}
		goleak.VerifyNone(s.t, leaks)
	})
	return r
}

// ask sends one question over UDP.
func (r *running) ask(name string, typ uint16) *dns.Msg {
	r.t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), typ)
	return r.exchange("udp", m)
}

func (r *running) exchange(network string, m *dns.Msg) *dns.Msg {
	r.t.Helper()
	addr := r.udp
	if network == "tcp" {
		addr = r.tcp
	}
	c := &dns.Client{Net: network, Timeout: patience}
	resp, _, err := c.Exchange(m, addr)
	if err != nil {
		r.t.Fatalf("asking %s for %v: %v", network, m.Question, err)
	}
	return resp
}

// raw sends octets over UDP and returns the response, or nil where the server
// answers a question that is sent behind them instead.
func (r *running) raw(msg []byte) []byte {
	r.t.Helper()
	conn, err := net.Dial("udp", r.udp)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	m := new(dns.Msg)
	m.SetQuestion("example.org.", dns.TypeSOA)
	m.Id = 0xbeef
	probe, err := m.Pack()
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := conn.Write(msg); err != nil {
		r.t.Fatal(err)
	}
	if _, err := conn.Write(probe); err != nil {
		r.t.Fatal(err)
	}
	// One socket and one reader, so the answers come in the order of the queries.
	buf := make([]byte, 65535)
	n, err := conn.Read(buf)
	if err != nil {
		r.t.Fatalf("no answer, neither to % x nor to the question behind it: %v", msg, err)
	}
	if n >= 2 && buf[0] == 0xbe && buf[1] == 0xef {
		return nil
	}
	return buf[:n]
}

// serial is the serial number that is served for a zone, or 0.
func (r *running) serial(zone string) uint32 {
	r.t.Helper()
	for _, rr := range r.ask(zone, dns.TypeSOA).Answer {
		if soa, ok := rr.(*dns.SOA); ok {
			return soa.Serial
		}
	}
	return 0
}

var addressLine = regexp.MustCompile(`listening on udp://127\.0\.0\.1:\d+\nlistening on tcp://127\.0\.0\.1:\d+\nserving 1 zones with 3 records\ntry: waymark query @127\.0\.0\.1:\d+ example\.org\. SOA\n`)

func TestStartTellsWhatListens(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	r := s.run(nil)
	if !addressLine.MatchString(r.log.String()) {
		t.Errorf("told:\n%s", r.log)
	}
}

func TestStartBroken(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	s.zone("example.net", "@ IN A not-an-address\n")
	r := s.run(nil)
	if got := r.ask("example.org", dns.TypeNS).Rcode; got != dns.RcodeSuccess {
		t.Errorf("the sound zone: rcode %d", got)
	}
	if got := r.ask("www.example.net", dns.TypeA).Rcode; got != dns.RcodeServerFailure {
		t.Errorf("the broken zone: rcode %d, want SERVFAIL", got)
	}
	if !strings.Contains(r.log.String(), "example.net:1:") {
		t.Errorf("the log does not tell file and line:\n%s", r.log)
	}
}

func TestStartErrors(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		name string
		edit func(s *site)
		want string
	}{
		{"no zone loads", func(s *site) { s.write("example.org", "rubbish") }, "none of the zones"},
		{"port taken", func(s *site) {
			s.plan.Listen = nil
			s.listen("udp", taken.LocalAddr().String())
		}, "address already in use"},
		{"no such user", func(s *site) { s.plan.Server.User = "nobody-of-that-name" }, "looking up user"},
		{"control socket in a missing folder", func(s *site) { s.plan.Control.Path = filepath.Join(s.dir, "none", "sock") }, "opening control socket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			s := newSite(t)
			s.zone("example.org", zoneText(1))
			c.edit(s)
			err := Run(context.Background(), Options{Plan: s.plan, Log: slog.New(slog.DiscardHandler), Stdout: &bytes.Buffer{}}, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
