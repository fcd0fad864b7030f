package app

import (
	"errors"
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
	if text, err := r.reload(); err != nil || !strings.Contains(text, "example.org. 2") {
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
	_, err := r.reload()
	if err == nil || !strings.Contains(err.Error(), "example.org:5:") || !strings.Contains(err.Error(), "serial 1 stays in use") {
		t.Errorf("the error does not tell file, line and what is served: %v", err)
	}
	if got := r.serial("example.org"); got != 1 {
		t.Errorf("broken zone: serial %d, want the last good one", got)
	}
	if got := r.serial("example.net"); got != 2 {
		t.Errorf("sound zone: serial %d, want the new one", got)
	}
}

func TestReloadBadConfigurationChangesNothing(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	r := s.run(func() (*plan.Plan, error) { return nil, errors.New("waymark.yaml:3:1: unknown key") })
	s.write("example.org", zoneText(2))
	if _, err := r.reload(); err == nil {
		t.Error("no error")
	}
	if got := r.serial("example.org"); got != 1 {
		t.Errorf("serial %d, want 1: nothing changes", got)
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
	if _, err := r.reload(); err != nil {
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
	if _, err := r.reload(); err == nil || r.serial("example.org") != 1 {
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
		if _, err := r.reload(); err != nil {
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

func TestWatch(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	s.plan.Server.Watch = true
	r := s.run(nil)
	file := s.plan.Zones[0].File
	s.write("example.org", zoneText(2))
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	r.watch()
	if got := r.serial("example.org"); got != 2 {
		t.Errorf("serial %d, want 2: the file changed a minute ago", got)
	}
	s.write("example.org", zoneText(3))
	soon := time.Now().Add(time.Hour)
	if err := os.Chtimes(file, soon, soon); err != nil {
		t.Fatal(err)
	}
	r.watch()
	if got := r.serial("example.org"); got != 2 {
		t.Errorf("serial %d, want 2: the file is being written", got)
	}
}

func TestSerialBackwards(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(5))
	r := s.run(nil)
	s.write("example.org", zoneText(4))
	if _, err := r.reload(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.log.String(), "serial went backwards") {
		t.Errorf("no warning:\n%s", r.log)
	}
}
