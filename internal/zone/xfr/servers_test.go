package xfr

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Zones of Knot DNS and NSD, with TSIG and without, come over whole.
func TestServers(t *testing.T) {
	records := manyRecords(t, 20_000)
	var want []string
	for _, rr := range records {
		owner, rdata := testkit.Wire(t, rr)
		want = append(want, fmt.Sprintf("%s %d %s %x", owner, rr.Header().Ttl, dns.TypeToString[rr.Header().Rrtype], rdata))
	}
	slices.Sort(want)
	for _, name := range []string{"knot", "nsd"} {
		t.Run(name, func(t *testing.T) {
			addr := startPrimary(t, name, testkit.Text(records))
			for _, c := range []struct {
				name string
				key  *wire.TSIGKey
				ok   bool
			}{
				{"signed", testKey(t, secret), true},
				{"another secret", testKey(t, []byte("wrong")), false},
				{"unsigned", nil, false},
			} {
				p := &Primary{Addr: addr, Key: c.key, Now: time.Now, Deadline: deadline}
				var got []string
				result, err := p.Fetch(t.Context(), testkit.Name(t, apexText), Have{}, collect(t, &got))
				if (err == nil) != c.ok {
					t.Errorf("%s: %v", c.name, err)
				}
				if err != nil {
					t.Logf("%s: %v", c.name, err)
					continue
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("%s: %d records came over, not the %d", c.name, len(got), len(want))
				}
				result, err = p.Fetch(t.Context(), testkit.Name(t, apexText), Have{Serial: result.Serial, Known: true}, nil)
				if err != nil || !result.Unchanged {
					t.Errorf("%s: again: %+v, %v", c.name, result, err)
				}
			}
		})
	}
}

// manyRecords is a zone that takes several messages.
func manyRecords(t *testing.T, count int) []dns.RR {
	var b strings.Builder
	b.WriteString(soaText + "\nexample.org. 3600 IN NS ns.example.org.\nns.example.org. 3600 IN A 192.0.2.53\n")
	b.WriteString("m.example.org. 300 IN MX 10 ns.example.org.\ns.example.org. 300 IN SRV 1 2 3 ns.example.org.\nt.example.org. 300 IN TXT \"a\" \"b\"\n")
	for i := range count {
		fmt.Fprintf(&b, "h%d.example.org. 300 IN A 10.%d.%d.%d\n", i, i>>16&255, i>>8&255, i&255)
	}
	return testkit.Records(t, apexText, b.String())
}

// startPrimary runs Knot DNS or NSD until the test ends and returns its address.
// It transfers to whoever has the key.
func startPrimary(t *testing.T, name, zone string) string {
	t.Helper()
	path, err := exec.LookPath(map[string]string{"knot": "knotd", "nsd": "nsd"}[name])
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	dir, addr := t.TempDir(), freePort(t)
	write(t, filepath.Join(dir, "zone"), zone)
	text, flags := knotText, []string{"-c"}
	if name == "nsd" {
		text, flags = nsdText, []string{"-d", "-c"}
	}
	conf := filepath.Join(dir, "server.conf")
	write(t, conf, strings.NewReplacer("DIR", dir, "ADDR", strings.Replace(addr, ":", "@", 1), "SECRET", base64.StdEncoding.EncodeToString(secret)).Replace(text))
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append(flags, conf)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = log.Close()
	})
	await(t, addr, log.Name())
	return addr
}

// await asks for the SOA record until the server has loaded the zone.
func await(t *testing.T, addr, log string) {
	t.Helper()
	client := dns.Client{Timeout: 200 * time.Millisecond}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		m := new(dns.Msg)
		m.SetQuestion(apexText, dns.TypeSOA)
		if r, _, err := client.Exchange(m, addr); err == nil && len(r.Answer) == 1 {
			return
		}
		<-time.After(20 * time.Millisecond) // nothing else tells when a process of others answers
	}
	text, _ := os.ReadFile(log)
	t.Fatalf("the server does not serve %s:\n%s", apexText, text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
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

const knotText = `server:
    rundir: "DIR"
    listen: ADDR
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
log:
  - target: stderr
    any: warning
database:
    storage: "DIR"
    journal-db-max-size: 1M
    kasp-db-max-size: 5M
    timer-db-max-size: 1M
key:
  - id: key.example.
    algorithm: hmac-sha256
    secret: SECRET
acl:
  - id: out
    key: key.example.
    action: transfer
template:
  - id: default
    semantic-checks: off
    zonefile-load: whole
    journal-content: none
    zonefile-sync: -1
zone:
  - domain: example.org.
    file: "DIR/zone"
    acl: out
`

const nsdText = `server:
    ip-address: ADDR
    server-count: 1
    username: ""
    chroot: ""
    zonesdir: "DIR"
    pidfile: "DIR/nsd.pid"
    xfrdfile: "DIR/xfrd.state"
    zonelistfile: "DIR/zone.list"
    xfrdir: "DIR"
    database: ""
remote-control:
    control-enable: no
key:
    name: key.example.
    algorithm: hmac-sha256
    secret: "SECRET"
zone:
    name: example.org.
    zonefile: "DIR/zone"
    provide-xfr: 127.0.0.1 key.example.
`
