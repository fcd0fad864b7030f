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

// TestCheckDir: -d comes first, and --explain prints what can be loaded again.
func TestCheckDir(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("conf", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"conf/a.yaml": "include: b.yaml\nplugins: [{type: udp_server, args: {entry: main, listen: \"127.0.0.1:53\"}}]\n",
		"conf/b.yaml": "plugins: [{tag: main, type: sequence, args: {exec: reject}}]\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&CheckCmd{Config: "conf/a.yaml"}).Run(&strings.Builder{}); !errors.Is(err, ErrSilent) {
		t.Errorf("the include was found from above: %v", err)
	}
	if err := (&CheckCmd{Config: "a.yaml", Dir: "none"}).Run(&strings.Builder{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	var out, again strings.Builder
	if err := (&CheckCmd{Config: "a.yaml", Dir: "conf", Explain: true}).Run(&out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("c.yaml", []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (&CheckCmd{Config: "c.yaml", Explain: true}).Run(&again); err != nil || out.String() != again.String() {
		t.Errorf("%v: %s then %s", err, out.String(), again.String())
	}
}
