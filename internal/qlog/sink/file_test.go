package sink

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRotate(t *testing.T) {
	for _, kind := range []string{"json", "dnstap"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "log")
				c := config(kind, path)
				c.Files = Files{Rotate: 8 << 10, Keep: 2}
				s := open(t, c, Env{Wall: time.Now})
				for i := range 40 {
					s.Put(rows(10*i, 10))
					synctest.Wait()
				}
				closeSink(t, s)
				read := func(path string) []string {
					if kind == "dnstap" {
						return tapNames(t, path)
					}
					return lineNames(t, read(t, path))
				}
				var got []string
				for _, p := range []string{path + ".2", path + ".1", path} {
					if info, err := os.Stat(p); err != nil || info.Size() > c.Files.Rotate {
						t.Errorf("%s: %v %v", p, info, err)
					}
					got = append(got, read(p)...)
				}
				if _, err := os.Stat(path + ".3"); err == nil {
					t.Error("one file too many is kept")
				}
				if all := names(0, 400); len(got) < 20 || !slices.Equal(got, all[400-len(got):]) {
					t.Errorf("got %d rows, not the last ones", len(got))
				}
				if st := s.Stats(); st.Sent != 400 || st.Dropped != 0 {
					t.Errorf("got %+v", st)
				}
			})
		})
	}
}

func TestContinue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for i := range 2 {
		s := open(t, config("json", path), Env{Wall: time.Now})
		s.Put(rows(10*i, 10))
		closeSink(t, s)
	}
	same(t, lineNames(t, read(t, path)), names(0, 20))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
}

// A line that a crash has cut off spoils no other.
func TestContinueTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("{\"name\":\"a\"}\n{\"na"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, config("json", path), Env{Wall: time.Now})
	s.Put(rows(0, 2))
	closeSink(t, s)
	text, ok := strings.CutPrefix(string(read(t, path)), "{\"name\":\"a\"}\n{\"na\n")
	if !ok {
		t.Fatalf("got %s", text)
	}
	same(t, lineNames(t, []byte(text)), names(0, 2))
}

// A folder that is not there is a peer that is away.
func TestMissingFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "later")
		s := open(t, config("json", filepath.Join(dir, "log")), Env{Wall: time.Now})
		s.Put(rows(0, 2))
		time.Sleep(time.Minute)
		if got := s.Stats(); got.Errors == 0 || got.Connected || got.Dropped > 0 {
			t.Errorf("got %+v", got)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		closeSink(t, s)
		same(t, lineNames(t, read(t, filepath.Join(dir, "log"))), names(0, 2))
	})
}
