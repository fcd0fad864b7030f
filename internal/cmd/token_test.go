package cmd

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// A token and its sum belong together, and no two are the same.
func TestToken(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		var b strings.Builder
		if err := (&TokenCmd{Name: "grafana", Scope: "read"}).Run(&b); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		sum := sha256.Sum256([]byte(lines[1]))
		if len(lines[1]) < 26 || seen[lines[1]] || lines[4] != "- {name: grafana, scope: read, sha256: "+hex.EncodeToString(sum[:])+"}" {
			t.Errorf("printed\n%s", b.String())
		}
		seen[lines[1]] = true
	}
}

func TestPassword(t *testing.T) {
	var b strings.Builder
	if err := printPassword(strings.NewReader("correct horse\n"), &b); err != nil {
		t.Fatal(err)
	}
	_, hash, _ := strings.Cut(strings.TrimSpace(b.String()), "password: ")
	if err := bcrypt.CompareHashAndPassword([]byte(hash), []byte("correct horse")); err != nil {
		t.Errorf("%s: %v", hash, err)
	}
	for _, bad := range []string{"", "short\n", strings.Repeat("x", 73)} {
		if err := printPassword(strings.NewReader(bad), &b); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
