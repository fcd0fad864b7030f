package qlog

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childDir is set in a process that keeps a log until it is killed.
const childDir = "WAYMARK_TEST_QLOG_DIR"

// child keeps a log and tells how many queries were on disk for certain: each line is
// the number that had been asked before the last turn of the clock began.
func child(dir string) {
	begin := time.Now()
	now := func() time.Duration { return time.Since(begin) }
	l, err := Open(Config{Dir: dir, Now: now, Wall: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	g := NewRing(now)
	l.Add(g)
	f := newTraffic(&testing.T{}, 1000, 1000)
	r := f.request()
	asked := 0
	ask := func(n int) {
		for range n {
			f.next(r)
			r.At = now()
			g.Observe(r)
			g.Flush()
			asked++
		}
	}
	for { // ended by a signal
		ask(200)
		if err := l.Sync(context.Background()); err != nil {
			os.Exit(1)
		}
		fmt.Println(asked)
		ask(100) // not flushed when the signal comes
	}
}

// TestKilled kills a process that keeps a log, twenty times: every file can be read,
// and has what was flushed.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	dir := t.TempDir()
	total := 0
	for round := range 20 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		told := 0
		lines := bufio.NewScanner(out)
		for n := 0; n < 3+round%5 && lines.Scan(); n++ {
			if told, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatalf("round %d: %s", round, lines.Text())
			}
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			if n, err := strconv.Atoi(lines.Text()); err == nil {
				told = n
			}
		}
		_ = cmd.Wait() // it was killed
		rows, _ := read(t, dir)
		if len(rows) < total+told {
			t.Fatalf("round %d: %d rows are there, %d were flushed", round, len(rows)-total, told)
		}
		total = len(rows)
	}
	if rows, files := read(t, dir); len(rows) != total || len(files) < 20 {
		t.Errorf("%d rows in %d files, want %d", len(rows), len(files), total)
	}
}

// TestForeign has a reader of somebody else read a segment while the log is kept.
func TestForeign(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: apt-get install nodejs")
	}
	if _, err := os.Stat(filepath.Join("testdata", "foreign", "node_modules", "hyparquet")); err != nil {
		t.Skip("hyparquet is not installed: make needs, or npm ci in internal/qlog/testdata/foreign")
	}
	tab := filled(t, pageRows+1000, 3000, 1000, true, true)
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := os.WriteFile(path, encoded(t, tab), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(node, filepath.Join("testdata", "foreign", "read.mjs"), path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		r := tab.row(n)
		want := fmt.Sprintf("%d %s %d %s %s %s %s %s %s %s %d %d %d\n", r.Time, r.Client, r.ClientPort, r.Name, r.Type, r.Rcode, r.Flags, r.Source, r.Rule, r.Answers, r.Latency, r.QuerySize, r.Size)
		if line != want {
			t.Fatalf("row %d is\n%s, want\n%s", n, line, want)
		}
		n++
	}
	if n != len(tab.rows) {
		t.Errorf("%d rows of %d", n, len(tab.rows))
	}
}
