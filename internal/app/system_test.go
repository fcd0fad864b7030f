package app

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/plan"
)

// freePort is a TCP port of loopback that was free a moment ago.
func freePort(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func TestMetrics(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(7))
	s.plan.Metrics = plan.Metrics{Listen: freePort(t)}
	r := s.run(nil)
	for range 5 {
		r.ask("ns.example.org", dns.TypeA)
	}
	r.ask("missing.example.org", dns.TypeA)
	q := new(dns.Msg)
	q.SetQuestion("example.com.", dns.TypeA)
	r.exchange("tcp", q)
	if got := r.raw([]byte{1, 2, 3}); got != nil {
		t.Errorf("three octets were answered: % x", got)
	}
	resp, err := http.Get("http://" + s.plan.Metrics.Listen.String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`waymark_queries_total{listener="udp://127.0.0.1:0"} 8`,
		`waymark_responses_total{listener="udp://127.0.0.1:0",rcode="NOERROR"} 6`,
		`waymark_responses_total{listener="udp://127.0.0.1:0",rcode="NXDOMAIN"} 1`,
		`waymark_responses_total{listener="tcp://127.0.0.1:0",rcode="REFUSED"} 1`,
		`waymark_answers_total{listener="udp://127.0.0.1:0",source="zone"} 7`,
		`waymark_dropped_short_total{listener="udp://127.0.0.1:0"} 1`,
		`waymark_zone_serial{zone="example.org."} 7`,
		`waymark_zone_records{zone="example.org."} 3`,
	} {
		if !strings.Contains(string(body), want+"\n") {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		t.Log(string(regexp.MustCompile(`(?m)^(#|go_|process_).*\n`).ReplaceAll(body, nil)))
	}
}

// Metric names follow Prometheus' rules and say what they belong to.
func TestMetricNames(t *testing.T) {
	valid := regexp.MustCompile(`^waymark_[a-z_]+_total$`)
	seen := map[string]bool{}
	for _, m := range counterMetrics() {
		if !valid.MatchString(m.name) || seen[m.name] || m.help == "" {
			t.Errorf("%q: a counter is waymark_…_total, named once, with a help text", m.name)
		}
		seen[m.name] = true
	}
}

func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	sock, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	r := s.run(nil)
	told := func() string {
		buf := make([]byte, 512)
		_ = sock.SetReadDeadline(time.Now().Add(patience))
		n, err := sock.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	if got := told(); got != "READY=1" {
		t.Errorf("after the start: %q", got)
	}
	r.hup <- nil
	if got := told(); !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("before a reload: %q", got)
	}
	if got := told(); got != "READY=1" {
		t.Errorf("after a reload: %q", got)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if got := told(); got != "STOPPING=1" {
		t.Errorf("before the end: %q", got)
	}
}

// TestDrain sends queries and stops at once: what was received is answered.
func TestDrain(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(1))
	r := s.run(nil)
	const queries = 200
	udp, err := net.Dial("udp", r.udp)
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp, err := net.Dial("tcp", r.tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	r.exchangeOn(tcp) // the connection is accepted, not only queued
	for i := range queries {
		q := new(dns.Msg)
		q.SetQuestion(fmt.Sprintf("n%d.example.org.", i), dns.TypeA)
		msg, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := udp.Write(msg); err != nil {
			t.Fatal(err)
		}
		if _, err := tcp.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	_, _ = udp.SetReadDeadline(deadline), tcp.SetReadDeadline(deadline)
	buf := make([]byte, 512)
	for i := range queries {
		if _, err := udp.Read(buf); err != nil {
			t.Fatalf("UDP: after %d answers of %d: %v", i, queries, err)
		}
	}
	all, err := io.ReadAll(tcp)
	if err != nil {
		t.Fatal(err)
	}
	answers := 0
	for len(all) >= 2 {
		all = all[2+int(binary.BigEndian.Uint16(all)):]
		answers++
	}
	if answers != queries {
		t.Errorf("TCP: %d answers of %d", answers, queries)
	}
}

// exchangeOn asks one question on a connection that is open.
func (r *running) exchangeOn(conn net.Conn) {
	r.t.Helper()
	q := new(dns.Msg)
	q.SetQuestion("example.org.", dns.TypeSOA)
	c := &dns.Conn{Conn: conn}
	if err := c.WriteMsg(q); err != nil {
		r.t.Fatal(err)
	}
	if _, err := c.ReadMsg(); err != nil {
		r.t.Fatal(err)
	}
}
