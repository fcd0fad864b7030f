package durable

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var steps = []string{"create", "own", "write", "sync", "rename", "folder"}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWriteFile(t *testing.T) {
	for _, mode := range []os.FileMode{0o600, 0o640, 0o664, 0o400} {
		path := filepath.Join(t.TempDir(), "file")
		put(t, path, "old", mode)
		if err := WriteFile(path, []byte("new"), 0o777); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || text(t, path) != "new" || runtime.GOOS != "windows" && info.Mode().Perm() != mode {
			t.Errorf("mode %v: %v, %v, %q", mode, info.Mode(), err, text(t, path))
		}
	}
	path := filepath.Join(t.TempDir(), "none")
	if err := WriteFile(path, []byte("first"), 0o640); err != nil || text(t, path) != "first" {
		t.Errorf("a new file: %v", err)
	}
	t.Chdir(filepath.Dir(path))
	if err := WriteFile("none", []byte("second"), 0o640); err != nil || text(t, path) != "second" {
		t.Errorf("a relative path: %v", err)
	}
}

// An error before the folder is synced leaves the old file and nothing else. A stop
// leaves the old or the new one, whole, and what Clean takes away.
func TestWriteFileStops(t *testing.T) {
	broken := errors.New("broken")
	for i, step := range steps {
		want := "old"
		if step == "folder" {
			want = "new"
		}
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		put(t, path, "old", 0o600)
		put(t, filepath.Join(dir, ".file.bak.tmp"), "of a person", 0o600)
		var seen []string
		fail := writer{at: func(s string) error {
			if seen = append(seen, s); s == step {
				return broken
			}
			return nil
		}}
		if err := fail.write(path, []byte("new"), 0); !errors.Is(err, broken) || text(t, path) != want {
			t.Errorf("%s fails: %v, %q", step, err, text(t, path))
		}
		if !slices.Equal(seen, steps[:i+1]) {
			t.Errorf("%s fails: steps are %v", step, seen)
		}
		if got := names(t, dir); !slices.Equal(got, []string{".file.bak.tmp", "file"}) {
			t.Errorf("%s fails: left are %v", step, got)
		}
		put(t, path, "old", 0o600)
		stop := writer{at: func(s string) error {
			if s == step {
				panic(broken)
			}
			return nil
		}}
		func() {
			defer func() { _ = recover() }()
			_ = stop.write(path, []byte("new"), 0)
		}()
		if text(t, path) != want {
			t.Errorf("stopped before %s: %q", step, text(t, path))
		}
		if left := len(names(t, dir)) - 2; left != 0 && (i == 0 || step == "folder") || left != 1 && i > 0 && step != "folder" {
			t.Errorf("stopped before %s: left are %v", step, names(t, dir))
		}
		if err := Clean(path); err != nil || len(names(t, dir)) != 2 {
			t.Errorf("stopped before %s, cleaned: %v, %v", step, names(t, dir), err)
		}
	}
}

func TestWriteFileLinks(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	real := filepath.Join(elsewhere, "real")
	put(t, real, "old", 0o600)
	link := filepath.Join(dir, "link")
	dangling := filepath.Join(dir, "dangling")
	folder := filepath.Join(dir, "folder")
	if err := errors.Join(os.Symlink(real, link), os.Symlink("nowhere", dangling), os.Mkdir(folder, 0o700)); err != nil {
		t.Skip(err)
	}
	if err := WriteFile(link, []byte("new"), 0o600); err != nil || text(t, real) != "new" {
		t.Errorf("through a link: %v, %q", err, text(t, real))
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	for path, want := range map[string]error{dangling: errDangling, folder: errNotRegular} {
		if err := WriteFile(path, []byte("new"), 0o600); !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := names(t, dir); len(got) != 3 {
		t.Errorf("left are %v", got)
	}
}

func TestRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	put(t, path, "", 0o600)
	for range 2 {
		if err := Remove(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := Remove(filepath.Join(path, "none", "none")); err == nil {
		t.Error("no folder, and no error")
	}
}
