package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/control"
	"github.com/waymark-dns/waymark/internal/plan"
)

func TestReloadTakesNewZone(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	r := s.run(nil)
	s.write("example.org", zoneText(2, "www IN A 192.0.2.80"))
	if text, err := r.reload(t.Context()); err != nil || !strings.Contains(text, "example.org. 2") {
		t.Fatalf("reload: %q, %v", text, err)
	}
	if got := r.ask("www.example.org", dns.TypeA); len(got.Answer) != 1 {
		t.Errorf("after the reload:\n%v", got)
	}
}

func TestReloadBrokenZoneKeepsLast(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	s.zone("example.net", zoneText(1))
	r := s.run(nil)
	s.write("example.org", zoneText(2, "www IN A 192.0.2.300"))
	s.write("example.net", zoneText(2))
	_, err := r.reload(t.Context())
	if err == nil || !strings.Contains(err.Error(), "example.org:5:") || !strings.Contains(err.Error(), "serial 1 stays in use") {
		t.Errorf("the error does not tell file, line and what is served: %v", err)
	}
	if got := r.serial("example.org"); got != 1 {
		t.Errorf("broken zone: serial %d, want the last good one", got)
	}
	if got := r.serial("example.net"); got != 2 {
		t.Errorf("sound zone: serial %d, want the new one", got)
	}
	if got := r.world.Load().summary(); !strings.HasPrefix(got, "2 zones, 1 failed: ") {
		t.Errorf("status: %s", got)
	}
}

func TestReloadBadConfigurationChangesNothing(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	r := s.run(func() (*plan.Plan, error) { return nil, errors.New("waymark.yaml:3:1: unknown key") })
	s.write("example.org", zoneText(2))
	if _, err := r.reload(t.Context()); err == nil {
		t.Error("no error")
	}
	if !strings.Contains(r.log.String(), "unknown key") {
		t.Error("the log does not tell it")
	}
	if got := r.serial("example.org"); got != 1 {
		t.Errorf("serial %d, want 1: nothing changes", got)
	}
}

func TestReloadTellsWhatWaits(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	next := *s.plan
	next.Server.UDPSize = 1400
	r := s.run(func() (*plan.Plan, error) { return &next, nil })
	if text, err := r.reload(t.Context()); err != nil || !strings.Contains(text, "at the next start") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestReloadListeners(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	next := *s.plan
	r := s.run(func() (*plan.Plan, error) { return &next, nil })
	old := r.udp
	next.Listen = append([]plan.Listen(nil), s.plan.Listen[1:]...)
	s.plan = &next
	s.listen("udp", "127.0.0.2:0")
	if _, err := r.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, l := range r.listeners {
		if strings.HasPrefix(l.key, "udp") {
			r.udp = l.Addr().String()
		}
	}
	if r.udp == old || r.serial("example.org") != 1 {
		t.Errorf("new listener %s does not answer", r.udp)
	}
	c := &dns.Client{Timeout: 200 * time.Millisecond}
	m := new(dns.Msg)
	m.SetQuestion("example.org.", dns.TypeSOA)
	if _, _, err := c.Exchange(m, old); err == nil {
		t.Error("the old listener still answers")
	}
	next.Listen = append(next.Listen, plan.Listen{Scheme: "sctp", Addr: next.Listen[0].Addr})
	if _, err := r.reload(t.Context()); err == nil || r.serial("example.org") != 1 {
		t.Errorf("a listener that cannot be opened: error %v", err)
	}
}

// TestReloadLosesNothing asks all the time while zones are reloaded. Each query
// is sent once: a lost one fails by its time-out.
func TestReloadLosesNothing(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	r := s.run(nil)
	var done atomic.Bool
	answered := make(chan struct{})
	var wg sync.WaitGroup
	for _, network := range []string{"udp", "udp", "tcp"} {
		wg.Go(func() {
			for last := uint32(0); !done.Load(); {
				m := new(dns.Msg)
				m.SetQuestion("example.org.", dns.TypeSOA)
				soa, ok := r.exchange(network, m).Answer[0].(*dns.SOA)
				if !ok || soa.Serial < last {
					t.Errorf("after serial %d came %v", last, soa)
					return
				}
				last = soa.Serial
				select {
				case answered <- struct{}{}:
				default: // nobody waits between two reloads
				}
			}
		})
	}
	for serial := 2; serial <= 30; serial++ {
		s.write("example.org", zoneText(serial))
		if _, err := r.reload(t.Context()); err != nil {
			t.Error(err)
		}
		<-answered
	}
	done.Store(true)
	wg.Wait()
}

func TestReloadBySignal(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	r := s.run(nil)
	s.write("example.org", zoneText(2))
	r.hup <- nil
	r.hup <- nil // is taken only when the first reload has ended
	if got := r.serial("example.org"); got != 2 {
		t.Errorf("serial %d, want 2", got)
	}
}

func TestReloadBySocket(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	s.plan.Control.Path = filepath.Join(s.dir, "sock")
	r := s.run(nil)
	s.write("example.org", zoneText(2))
	text, err := control.Call(s.plan.Control.Path, control.Request{Command: "reload"})
	if err != nil || !strings.Contains(text, "example.org. 2") || r.serial("example.org") != 2 {
		t.Errorf("reload: %q, %v", text, err)
	}
	if text, err = control.Call(s.plan.Control.Path, control.Request{Command: "status"}); err != nil || !strings.Contains(text, "1 zones") {
		t.Errorf("status: %q, %v", text, err)
	}
	if _, err = control.Call(s.plan.Control.Path, control.Request{Command: "dance"}); err == nil {
		t.Error("an unknown command is no error")
	}
}

// touch gives a file another time, always the same for the same n.
func touch(t *testing.T, file string, n int) {
	t.Helper()
	at := time.Unix(1_000_000_000+int64(n), 0)
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1)+"$INCLUDE more\n")
	s.zone("example.net", zoneText(1))
	s.write("more", "www A 192.0.2.1\n")
	s.plan.Server.Watch = true
	r := s.run(nil)
	org := s.plan.Zones[0].File
	var f watcher
	look := func(about string, want uint32) {
		t.Helper()
		f.look(t.Context(), r.Server)
		if got := r.serial("example.org"); got != want {
			t.Errorf("%s: serial %d, want %d", about, got, want)
		}
	}
	look("nothing has changed", 1)
	s.write("example.org", zoneText(2)+"$INCLUDE more\n")
	touch(t, org, 1)
	look("it changed, and may be written still", 1)
	touch(t, org, 2)
	look("it is written still", 1)
	before := strings.Count(r.log.String(), "zone loaded")
	look("it was left alone", 2)
	if got := strings.Count(r.log.String(), "zone loaded") - before; got != 1 {
		t.Errorf("%d zones were loaded, want the one that changed", got)
	}
	s.write("more", "www A 192.0.2.2\n")
	touch(t, filepath.Join(s.dir, "more"), 3)
	look("an included file changed", 2)
	look("an included file was left alone", 2)
	if m := r.ask("www.example.org", dns.TypeA); len(m.Answer) != 1 || !strings.HasSuffix(m.Answer[0].String(), "192.0.2.2") {
		t.Errorf("after the included file changed: %v", m.Answer)
	}
	s.write("example.org", "rubbish")
	touch(t, org, 4)
	look("broken, first look", 2)
	look("broken, second look", 2)
	told := strings.Count(r.log.String(), "reload failed")
	look("broken, third look", 2)
	if again := strings.Count(r.log.String(), "reload failed"); told != 1 || again != 1 {
		t.Errorf("a broken file is told %d, then %d times, want once", told, again)
	}
}

// A reload that adds a listener which overlaps another loses nothing: the new
// socket is opened when the zones are there.
func TestReloadOverlappingListener(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	port := freePort(t).Port()
	wide := plan.Listen{Scheme: "udp", Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}
	s.plan.Listen = []plan.Listen{wide}
	next := *s.plan
	narrow := plan.Listen{Scheme: "udp", Addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)}
	next.Listen = []plan.Listen{narrow}
	r := s.run(func() (*plan.Plan, error) { return &next, nil })
	r.udp = narrow.Addr.String()
	answered := false
	r.log.hook = func(line string) {
		if strings.Contains(line, "zone loaded") {
			answered = r.serial("example.org") == 1
		}
	}
	if _, err := r.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !answered || r.serial("example.org") != 1 {
		t.Errorf("answered while it loaded: %v", answered)
	}
}

// Commands and the end of the server do not wait for each other.
func TestStopDuringReloads(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	s.plan.Control.Path = filepath.Join(s.dir, "sock")
	r := s.run(nil)
	var wg sync.WaitGroup
	started := make(chan struct{}, 100)
	for range 4 {
		wg.Go(func() {
			for {
				_, err := control.Call(s.plan.Control.Path, control.Request{Command: "reload"})
				if err != nil { // the server has gone, or gave up
					return
				}
				select {
				case started <- struct{}{}:
				default:
				}
			}
		})
	}
	<-started
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// A server that is told to stop while it loads does so, without an error.
func TestStopDuringStart(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, Options{Plan: s.plan, Log: slog.New(slog.DiscardHandler), Stdout: io.Discard}, nil); err != nil {
		t.Error(err)
	}
}

func TestSerialBackwards(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(5))
	r := s.run(nil)
	s.write("example.org", zoneText(4))
	if _, err := r.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.log.String(), "serial went backwards") {
		t.Errorf("no warning:\n%s", r.log)
	}
}
