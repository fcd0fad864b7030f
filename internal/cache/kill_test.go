package cache

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// dumpFile is set in the environment of a test that is to be killed: the file that
// it dumps to.
const dumpFile = "WAYMARK_TEST_DUMP"

// killedEntries is how many entries a dump has that is killed.
const killedEntries = 5000

// TestDumpKilled kills a process in the middle of dumping, again and again: what
// was there before is whole.
func TestDumpKilled(t *testing.T) {
	if path := os.Getenv(dumpFile); path != "" {
		dumpForever(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "cache.dump")
	for round := range 8 {
		c := exec.Command(os.Args[0], "-test.run=^TestDumpKilled$")
		c.Env = append(os.Environ(), dumpFile+"="+path)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n <= round && lines.Scan(); n++ { // each says that one is done and the next begins
		}
		if err := c.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = c.Wait() // killed
		cache := open(t, Config{Size: 4 << 20})
		n, err := cache.LoadFile(path, 0, time.Unix(1, 0))
		if err != nil || n != killedEntries {
			t.Fatalf("round %d: loaded %d entries, %v", round, n, err)
		}
	}
}

// dumpForever dumps until it is killed.
func dumpForever(t *testing.T, path string) {
	cache := open(t, Config{Size: 4 << 20})
	a := newAsker(t, cache)
	for i := range killedEntries {
		name := fmt.Sprintf("n%d.example.", i)
		a.ask(name + " A")
		if got := cache.Put(&a.key, response(t, name+" A", dns.RcodeSuccess, name+" 3600 A 192.0.2.1"), 0, 0); got != Kept {
			t.Fatalf("%s: %d", name, got)
		}
	}
	for {
		if _, err := cache.SaveFile(path, 0, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		fmt.Println("dumped")
	}
}
