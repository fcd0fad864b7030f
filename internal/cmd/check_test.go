package cmd

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

func TestCheckCmd(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ name, text, want string }{
		{"sound", "listen: [udp://127.0.0.1:53]\n", "waymark.yaml: no problems\n"},
		{"problems", "lisen: []\nlog:\n  level: loud\n",
			"waymark.yaml:1:1: unknown section \"lisen\" (write listen)\n" +
				"waymark.yaml:1:1: no address to listen on (name at least one, such as udp://127.0.0.1:53)\n" +
				"waymark.yaml:3:10: log.level: unknown level \"loud\" (write debug, info, warn, error)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile("waymark.yaml", []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err := (&CheckCmd{Config: "waymark.yaml"}).Run(&out)
			if sound := strings.HasSuffix(c.want, "no problems\n"); sound != (err == nil) || !sound && !errors.Is(err, ErrSilent) {
				t.Errorf("error %v", err)
			}
			if out.String() != c.want {
				t.Errorf("got %q, want %q", out.String(), c.want)
			}
		})
	}
	if err := (&CheckCmd{Config: "missing.yaml"}).Run(&strings.Builder{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}
