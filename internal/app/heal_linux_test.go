package app

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/waymark-dns/waymark/internal/plan"
)

// inNamespace is set in the environment of a test that has a network namespace to
// itself.
const inNamespace = "WAYMARK_TEST_NAMESPACE"

// TestHeal lets a link flap, an address change and a gateway reboot, between two
// network namespaces: the next question is answered each time.
func TestHeal(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		heal(t)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("no command ip: apt-get install iproute2")
	}
	c := exec.Command(os.Args[0], "-test.run=^TestHeal$", "-test.v", "-test.timeout=120s")
	c.Env = append(os.Environ(), inNamespace+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := c.CombinedOutput()
	switch {
	case err != nil && strings.Contains(err.Error(), "operation not permitted"):
		t.Skip("no network namespaces here")
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	}
}

// run calls commands, each a line of words.
func run(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		words := strings.Fields(line)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
}

// elsewhere does something on a thread that has a namespace of its own, joined to
// this one by a pair of links, and keeps the thread there until the test ends.
// What is handed to the channel that it returns is done there.
func elsewhere(t *testing.T) chan<- func() {
	t.Helper()
	tid, work, done := make(chan int), make(chan func()), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			tid <- 0
			return
		}
		tid <- unix.Gettid()
		for f := range work {
			f()
		}
	}()
	id := <-tid
	if id == 0 {
		t.Skip("no second network namespace here")
	}
	t.Cleanup(func() {
		close(work)
		<-done
	})
	run(t, "ip link set lo up", "ip link add wa type veth peer name wb", fmt.Sprintf("ip link set wb netns %d", id))
	return work
}

func heal(t *testing.T) {
	work := elsewhere(t)
	do := func(f func()) {
		t.Helper()
		done := make(chan struct{})
		work <- func() { f(); close(done) }
		<-done
	}
	do(func() { run(t, "ip link set lo up", "ip addr add 10.7.0.53/24 dev wb", "ip link set wb up") })
	run(t, "ip addr add 10.7.0.2/24 dev wa", "ip link set wa up")

	answer := gives(t, "1 A 192.0.2.1")
	var server *dns.Server
	served := make(chan error, 1)
	boot := func() {
		t.Helper()
		do(func() {
			pc, err := net.ListenPacket("udp", "10.7.0.53:53")
			if err != nil {
				t.Error(err)
				return
			}
			server = &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
				_ = w.WriteMsg(answer(q, false)[0])
			})}
		})
		s := server
		go func() { served <- s.ActivateAndServe() }()
	}
	halt := func() {
		t.Helper()
		_ = server.PacketConn.Close()
		<-served
	}
	boot()
	defer halt()

	s := newSite(t)
	f := plan.DefaultForward()
	f.To = []plan.Upstream{{Scheme: "udp", Addr: addrOf("10.7.0.53:53")}}
	s.plan.Forward = []plan.Forward{f}
	s.cached(nil)
	ahead := s.settable()
	r := s.run(nil)
	n := 0
	good := func(when string) {
		t.Helper()
		n++
		if m := r.ask(fmt.Sprintf("n%d.example", n), dns.TypeA); m.Rcode != dns.RcodeSuccess {
			t.Errorf("%s: %v", when, m)
		}
	}
	stale := func(when string) {
		t.Helper()
		if m := r.ask("n1.example", dns.TypeA); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 1 {
			t.Errorf("%s: %v", when, m)
		}
	}
	for range 200 { // sockets in every place of the pool
		good("at first")
	}
	ahead.Add(int64(5e9))

	run(t, "ip link set wa down")
	stale("with the link down")
	run(t, "ip link set wa up")
	good("with the link up again")

	run(t, "ip addr flush dev wa", "ip addr add 10.7.0.99/24 dev wa")
	good("with another address")
	for range 50 {
		good("with another address, later")
	}

	halt()
	stale("with the gateway down")
	boot()
	good("with the gateway up again")
	for range 50 {
		good("with the gateway up again, later")
	}
}
