//go:build unix

package durable

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The owner stays, also where another writes.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	const nobody = 65534
	dir := t.TempDir()
	path, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	put(t, path, "old", 0o640)
	if err := os.Chown(path, nobody, nobody); err != nil {
		t.Skip(err)
	}
	if err := WriteFile(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, other, "", 0o600)
	if err := OwnAs(other, path); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, other} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != nobody || s.Gid != nobody {
			t.Errorf("%s belongs to %d:%d", p, s.Uid, s.Gid)
		}
	}
}
