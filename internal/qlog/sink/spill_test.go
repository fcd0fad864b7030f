package sink

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// spilling is a configuration with batches of n rows and a spill folder.
func spilling(t *testing.T, n int) Config {
	t.Helper()
	c := table(n)
	c.ClickHouse.Spill, c.ClickHouse.SpillSize = filepath.Join(t.TempDir(), "spill"), 1<<20
	return c
}

func spillFiles(t *testing.T, c Config) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(c.ClickHouse.Spill, "*"+spillSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSpill: what a peer that is away misses it gets when it is back, also when
// another process sends it.
func TestSpill(t *testing.T) {
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var in inserts
			p := &peer{serve: serveInserts(in.judge)}
			p.set(true, false)
			c := spilling(t, 10)
			s := open(t, c, p.env())
			for i := range 30 {
				s.Put(rows(10*i, 10))
				time.Sleep(time.Second)
			}
			if got := s.Stats(); got.Spilled != 300 || got.Dropped > 0 || got.Queued > 0 || got.Disk == 0 || got.Connected || len(spillFiles(t, c)) != 30 {
				t.Errorf("while the peer is away: %+v", got)
			}
			if restart {
				s.Put(rows(300, 5))
				closeSink(t, s)
				if got := s.Stats(); got.Spilled != 305 || got.Dropped > 0 {
					t.Errorf("after Close: %+v", got)
				}
				s = open(t, c, p.env())
				synctest.Wait()
				s.Put(rows(305, 5))
			} else {
				s.Put(rows(300, 10))
			}
			p.set(false, false)
			time.Sleep(2 * time.Minute)
			have := p.have()
			slices.Sort(have) // old and new batches take turns
			same(t, have, names(0, 310))
			if got := s.Stats(); got.Disk != 0 || !got.Connected || got.Dropped > 0 || len(spillFiles(t, c)) > 0 {
				t.Errorf("when the peer is back: %+v", got)
			}
			closeSink(t, s)
			p.end()
		})
	}
}

// A batch that is spilled after nobody knows what became of it keeps its token.
func TestSpillToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := inserts{next: []answer{{close: true}}}
		p := &peer{serve: serveInserts(in.judge)}
		c := spilling(t, 10)
		s := open(t, c, p.env())
		s.Put(rows(0, 10))
		synctest.Wait()
		p.set(true, false)
		closeSink(t, s)
		p.set(false, false)
		s = open(t, c, p.env())
		synctest.Wait()
		closeSink(t, s)
		p.end()
		same(t, p.have(), names(0, 10))
		if len(in.tokens) != 2 || in.tokens[0] != in.tokens[1] {
			t.Errorf("got %q", in.tokens)
		}
	})
}

// A full folder loses its oldest batches, which are counted.
func TestSpillBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{serve: serveInserts(nil)}
		p.set(true, false)
		c := spilling(t, 10)
		c.ClickHouse.SpillSize = 10_000
		s := open(t, c, p.env())
		for i := range 30 {
			s.Put(rows(10*i, 10))
			synctest.Wait()
		}
		got := s.Stats()
		if got.Spilled != 300 || got.Dropped == 0 || got.Disk > 10_000 || got.Disk < 5000 {
			t.Errorf("got %+v", got)
		}
		p.set(false, false)
		time.Sleep(time.Minute)
		closeSink(t, s)
		p.end()
		same(t, p.have(), names(int(got.Dropped), 300-int(got.Dropped)))
	})
}

// While spilled batches are sent, new rows still make batches of a size.
func TestSpillAndLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var in inserts
		p := &peer{serve: serveInserts(in.judge)}
		p.set(true, false)
		c := spilling(t, 10)
		s := open(t, c, p.env())
		s.Put(rows(0, 50))
		time.Sleep(10 * time.Minute)
		s.Put(rows(50, 3))
		p.set(false, false)
		time.Sleep(2 * time.Minute)
		closeSink(t, s)
		p.end()
		if got := in.seen(); len(got) != 6 {
			t.Errorf("got inserts of %v rows", got)
		}
	})
}

// A damaged file is lost, and counted; the others are not.
func TestSpillDamage(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"a bit":     func(b []byte) []byte { b[len(b)-20] ^= 1; return b },
		"its end":   func(b []byte) []byte { return b[:len(b)-1] },
		"its head":  func(b []byte) []byte { return b[:spillHead-1] },
		"all of it": func([]byte) []byte { return nil },
		"version":   func(b []byte) []byte { b[len(spillMark)-1]++; return b },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peer{serve: serveInserts(nil)}
				p.set(true, false)
				c := spilling(t, 10)
				s := open(t, c, p.env())
				s.Put(rows(0, 30))
				synctest.Wait()
				closeSink(t, s)
				file := spillFiles(t, c)[1]
				if err := os.WriteFile(file, damage(read(t, file)), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(c.ClickHouse.Spill, "notes.txt"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				p.set(false, false)
				s = open(t, c, p.env())
				time.Sleep(time.Minute)
				if got := s.Stats(); got.Errors != 1 || got.Sent != 20 || got.Disk != 0 {
					t.Errorf("got %+v", got)
				}
				closeSink(t, s)
				p.end()
				same(t, p.have(), append(names(0, 10), names(20, 10)...))
			})
		})
	}
}

// The folder is one sink's at a time: after a reload the new one waits for the old.
func TestSpillClaim(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders are not locked here")
	}
	synctest.Test(t, func(t *testing.T) {
		p := &peer{serve: serveInserts(nil)}
		p.set(true, false)
		c := spilling(t, 10)
		before := open(t, c, p.env())
		before.Put(rows(0, 10))
		synctest.Wait()
		after := open(t, c, p.env())
		after.Put(rows(10, 10))
		synctest.Wait()
		if got := after.Stats(); got.Spilled > 0 || got.Queued == 0 {
			t.Errorf("in the other's folder: %+v", got)
		}
		closeSink(t, before)
		time.Sleep(time.Minute)
		if got := after.Stats(); got.Spilled != 10 {
			t.Errorf("when the other is closed: %+v", got)
		}
		p.set(false, false)
		time.Sleep(time.Minute)
		closeSink(t, after)
		p.end()
		same(t, p.have(), names(0, 20))
	})
}

// A disk that takes nothing is no reason to lose what is in the queue.
func TestSpillFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{serve: serveInserts(nil)}
		p.set(true, false)
		c := spilling(t, 10)
		c.ClickHouse.SpillSize = 100 // less than one batch
		s := open(t, c, p.env())
		s.Put(rows(0, 10))
		time.Sleep(time.Minute)
		if got := s.Stats(); got.Dropped > 0 || got.Spilled > 0 || got.Queued == 0 {
			t.Errorf("got %+v", got)
		}
		p.set(false, false)
		time.Sleep(time.Minute)
		closeSink(t, s)
		p.end()
		same(t, p.have(), names(0, 10))
	})
}

// TestSpillFormat: what this version writes, later ones have to read.
func TestSpillFormat(t *testing.T) {
	const file = "testdata/spill-1" + spillSuffix
	b, err := parseSpill(read(t, file))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b.rest()); b.left() != 2 || got != "{\"name\":\"a.example.\"}\n{\"name\":\"b.example.\"}\n" {
		t.Errorf("got %d rows %q", b.left(), got)
	}
}

func FuzzSpill(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(appendSpill(nil, 2, []byte("{}\n{}\n")))
	f.Add(appendSpill(nil, 1, []byte("{}\n{}\n")))
	f.Add(appendSpill(nil, 1, []byte("{}")))
	f.Add(appendSpill(nil, 0, nil))
	f.Fuzz(func(t *testing.T, octets []byte) {
		b, err := parseSpill(octets)
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Errorf("got %v", err)
			}
			// With a good sum lines are taken as they are.
			octets = appendSpill(nil, bytes.Count(octets, []byte("\n")), octets)
			if b, err = parseSpill(octets); err != nil {
				return
			}
		}
		if again := appendSpill(nil, b.left(), b.rest()); !bytes.Equal(again, octets) {
			t.Errorf("got  %q\nwant %q", again, octets)
		}
		for i := range b.left() {
			if item := b.item(i); !strings.HasSuffix(string(item), "\n") || bytes.Count(item, []byte("\n")) != 1 {
				t.Errorf("item %d is %q", i, item)
			}
		}
	})
}

// An outlet that fails half way is asked for the rest.
func TestBatch(t *testing.T) {
	b := &batch{octets: []byte("aabbbc"), ends: []int{2, 5, 6}}
	for _, c := range []struct{ octets, want int }{{0, 0}, {1, 0}, {2, 1}, {4, 1}, {5, 2}, {6, 3}} {
		if got := b.within(c.octets); got != c.want {
			t.Errorf("within(%d) = %d, want %d", c.octets, got, c.want)
		}
	}
	b.skip(1)
	if string(b.rest()) != "bbbc" || b.left() != 2 || b.within(3) != 1 || string(b.item(0)) != "bbb" || string(b.item(1)) != "c" {
		t.Errorf("got %q, %d left", b.rest(), b.left())
	}
	out := writer{shortWriter{}}
	if n, err := out.send(context.Background(), b); n != 1 || err == nil {
		t.Errorf("got %d, %v", n, err)
	}
}

// shortWriter takes four octets but one.
type shortWriter struct{}

func (shortWriter) Write(b []byte) (int, error) { return len(b) - 1, errors.New("full") }
