package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// childPath is the variable that makes of the test's program a child that edits
// the store there for ever.
const childPath = "WAYMARK_STORE_CHILD"

// childDone does the child's work where this process is one. Each edit that was
// confirmed is told by a line.
func childDone() bool {
	path := os.Getenv(childPath)
	if path == "" {
		return false
	}
	s, err := Open(Config{Path: path, Now: time.Now})
	if err != nil {
		fmt.Println("error", err)
		return true
	}
	for i := 0; ; i++ {
		owner, err := wire.ParseName(fmt.Sprintf("n%d.%s", i, apexText))
		if err != nil {
			fmt.Println("error", err)
			return true
		}
		r, err := s.Edit(context.Background(), Edit{Zone: apexName(), Ops: []Op{{Do: Add, Owner: owner, Type: wire.TypeA, TTL: 60, RDATA: [][]byte{{192, 0, 2, 1}}}}})
		if err != nil {
			fmt.Println("error", err)
			return true
		}
		fmt.Println(r.Version.Serial)
	}
}

// A change that was confirmed is there after the process was killed, whenever that
// was.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zones.db")
	s, err := Open(config(path))
	if err != nil {
		t.Fatal(err)
	}
	load(t, s, small)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	last := uint32(10)
	for round := range 5 {
		last = killAfter(t, path, 1+7*round, last)
		s, err := Open(config(path))
		if err != nil {
			t.Fatal(err)
		}
		z, err := s.Load(apexName())
		if err != nil {
			t.Fatal(err)
		}
		if z.Serial() < last {
			t.Errorf("serial %d is there, %d was confirmed", z.Serial(), last)
		}
		last = z.Serial()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// killAfter lets a child edit, kills it behind that many confirmed edits, and
// returns the last serial that it confirmed.
func killAfter(t *testing.T, path string, edits int, last uint32) uint32 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childPath+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range edits {
		if !lines.Scan() {
			break
		}
		if strings.HasPrefix(lines.Text(), "error") {
			t.Error(lines.Text())
			break
		}
		if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
			t.Error(err)
		}
	}
	_ = cmd.Process.Kill()
	for lines.Scan() { // confirmed before the kill, read behind it
		_, _ = fmt.Sscan(lines.Text(), &last)
	}
	_ = cmd.Wait() // it was killed
	return last
}
