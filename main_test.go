package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long a script waits for a server; only a failure uses it up.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"waymark": main})
}

// TestScripts runs the command line as a user does: each file in testdata/script
// is a session. $PORT and $PORT2 are free ports of 127.0.0.1, `ready PORT` waits
// until a server answers there, `gone PORT` until none does, `signal NAME` sends
// that signal to what runs in the background.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"PORT", "PORT2"} {
				port, err := freePort()
				if err != nil {
					return err
				}
				e.Setenv(name, port)
			}
			root, err := os.Getwd()
			e.Setenv("ROOT", root)
			return err
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "cgo":
				return usesCgo(), nil
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"ready": ready, "gone": gone, "signal": signal},
	})
}

// freePort is a port that was free for UDP and TCP a moment ago.
func freePort() (string, error) {
	for range 50 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		addr := l.Addr().String()
		p, err := net.ListenPacket("udp", addr)
		l.Close()
		if err == nil {
			p.Close()
			_, port, err := net.SplitHostPort(addr)
			return port, err
		}
	}
	return "", fmt.Errorf("no port is free for both UDP and TCP")
}

func ready(ts *testscript.TestScript, _ bool, args []string) { waitFor(ts, args[0], true) }

func gone(ts *testscript.TestScript, _ bool, args []string) { waitFor(ts, args[0], false) }

// waitFor waits until a port answers queries over TCP, or does not any more.
func waitFor(ts *testscript.TestScript, port string, up bool) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for {
		if answers(port) == up {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			ts.Fatalf("port %s: answering is not %v", port, up)
		}
	}
}

// answers asks one question; a server that is bound but does not serve yet makes
// it wait.
func answers(port string) bool {
	q := new(dns.Msg)
	q.SetQuestion(".", dns.TypeSOA)
	c := &dns.Client{Net: "tcp", Timeout: patience}
	_, _, err := c.Exchange(q, "127.0.0.1:"+port)
	return err == nil
}

func signal(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}
	s, ok := signals[args[0]]
	if !ok {
		ts.Fatalf("no signal %s", args[0])
	}
	for i, c := range ts.BackgroundCmds() {
		if len(args) > 1 && args[1] != strconv.Itoa(i+1) { // one of them, in the order of their starts
			continue
		}
		if err := c.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
			ts.Check(err)
		}
	}
}
