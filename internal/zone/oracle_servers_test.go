package zone_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/testkit"
)

// server is a name server of others that runs on a loopback port.
type server struct {
	name, addr string
}

// start runs Knot DNS or NSD over zones until the test ends.
func start(t *testing.T, name string, zones [][]dns.RR) *server {
	t.Helper()
	path, err := exec.LookPath(map[string]string{"knot": "knotd", "nsd": "nsd"}[name])
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	dir := t.TempDir()
	s := &server{name: name, addr: freePort(t)}
	var cmd *exec.Cmd
	conf := filepath.Join(dir, "server.conf")
	if name == "knot" {
		write(t, conf, knotConf(t, dir, s.addr, zones))
		cmd = exec.Command(path, "-c", conf)
	} else {
		write(t, conf, nsdConf(t, dir, s.addr, zones))
		cmd = exec.Command(path, "-d", "-c", conf)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = log.Close()
	})
	for _, z := range zones {
		s.await(t, testkit.Apex(t, z), log.Name())
	}
	return s
}

// await asks for the SOA record until the server has loaded the zone.
func (s *server) await(t *testing.T, apex, log string) {
	t.Helper()
	q := testkit.Question{Name: apex, Type: dns.TypeSOA}
	client := dns.Client{Timeout: 200 * time.Millisecond}
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		m := new(dns.Msg)
		m.SetQuestion(q.Name, q.Type)
		if r, _, err := client.Exchange(m, s.addr); err == nil && len(r.Answer) == 1 {
			return
		}
		pause(20 * time.Millisecond)
	}
	text, _ := os.ReadFile(log)
	t.Fatalf("%s does not serve %s:\n%s", s.name, apex, text)
}

// pause lets a process of others come up: nothing else tells when it answers.
func pause(d time.Duration) { <-time.After(d) }

// ask puts q to the server, over TCP where the response may be long.
func (s *server) ask(t *testing.T, q testkit.Question) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(q.Message(t)); err != nil {
		t.Fatal(err)
	}
	client := dns.Client{Timeout: 5 * time.Second}
	if q.TCP {
		client.Net = "tcp"
	}
	r, _, err := client.Exchange(m, s.addr)
	if err == nil && r.Truncated && !q.TCP {
		client.Net = "tcp"
		r, _, err = client.Exchange(m, s.addr)
	}
	if err != nil {
		t.Fatalf("%s: %s %s: %v", s.name, q.Name, dns.TypeToString[q.Type], err)
	}
	return r
}

// freePort finds a loopback port that is free for UDP and TCP.
func freePort(t *testing.T) string {
	t.Helper()
	for range 20 {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := pc.LocalAddr().String()
		l, err := net.Listen("tcp", addr)
		_ = pc.Close()
		if err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no port is free for both UDP and TCP")
	return ""
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// zoneFiles writes each zone into dir and calls do with its name and path.
func zoneFiles(t *testing.T, dir string, zones [][]dns.RR, do func(apex, path string)) {
	t.Helper()
	for i, z := range zones {
		path := filepath.Join(dir, fmt.Sprintf("%d.zone", i))
		write(t, path, testkit.Text(z))
		do(testkit.Apex(t, z), path)
	}
}

func knotConf(t *testing.T, dir, addr string, zones [][]dns.RR) string {
	var b strings.Builder
	fmt.Fprintf(&b, `server:
    rundir: "%[1]s"
    listen: %[2]s
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
log:
  - target: stderr
    any: warning
database:
    storage: "%[1]s"
    journal-db-max-size: 1M
    kasp-db-max-size: 5M
    timer-db-max-size: 1M
template:
  - id: default
    semantic-checks: off
    zonefile-load: whole
    journal-content: none
    zonefile-sync: -1
zone:
`, dir, strings.Replace(addr, ":", "@", 1))
	zoneFiles(t, dir, zones, func(apex, path string) {
		fmt.Fprintf(&b, "  - domain: %q\n    file: %q\n", apex, path)
	})
	return b.String()
}

func nsdConf(t *testing.T, dir, addr string, zones [][]dns.RR) string {
	var b strings.Builder
	fmt.Fprintf(&b, `server:
    ip-address: %[2]s
    server-count: 1
    username: ""
    chroot: ""
    zonesdir: "%[1]s"
    pidfile: "%[1]s/nsd.pid"
    xfrdfile: "%[1]s/xfrd.state"
    zonelistfile: "%[1]s/zone.list"
    xfrdir: "%[1]s"
    database: ""
    minimal-responses: yes
    rrl-ratelimit: 0
remote-control:
    control-enable: no
`, dir, strings.Replace(addr, ":", "@", 1))
	zoneFiles(t, dir, zones, func(apex, path string) {
		fmt.Fprintf(&b, "zone:\n    name: %q\n    zonefile: %q\n", apex, path)
	})
	return b.String()
}
