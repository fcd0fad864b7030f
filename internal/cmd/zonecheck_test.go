package cmd

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func zoneCheckFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestZoneCheck(t *testing.T) {
	const sound = "$TTL 60\n@ SOA ns.example.net. hm 1 2 3 4 5\n@ NS ns.example.net.\n"
	tests := []struct {
		name, file, text, origin string
		want                     []string
		err                      error
	}{
		{"name of the file", "example.org.zone", sound, "", []string{"zone example.org. is ok: 0 errors, 0 warnings"}, nil},
		{"origin in the file", "x", "$ORIGIN example.org.\n" + sound, "", []string{"zone example.org. is ok"}, nil},
		{"origin as a flag", "x", sound, "example.net", []string{"zone example.net. is not usable: 1 error, 0 warnings", ":3: error: name server ns.example.net. has no address record (add"}, ErrSilent},
		{"warning", "x.zone", sound + "@ NS ns.example.net.\n", "", []string{":4: warning: NS record is the same", "zone x. is ok: 0 errors, 1 warning\n"}, nil},
		{"syntax", "x.zone", sound + "a A x\n", "", []string{"x.zone:4:5: error: RDATA of A record"}, ErrSilent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &ZoneCheckCmd{File: zoneCheckFile(t, tt.file, tt.text), Origin: tt.origin, At: time.Unix(1767225600, 0)}
			var out strings.Builder
			if err := c.Run(&out); !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
		})
	}
}

func TestZoneCheckJSON(t *testing.T) {
	c := &ZoneCheckCmd{File: zoneCheckFile(t, "x.zone", "a 60 A x\n"), JSON: true, At: time.Unix(1767225600, 0)}
	var out strings.Builder
	if err := c.Run(&out); !errors.Is(err, ErrSilent) {
		t.Errorf("error %v", err)
	}
	var got struct {
		Origin   string
		Errors   int
		Problems []struct {
			Line, Column int
			Level        string
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Origin != "x." || got.Errors != 3 || len(got.Problems) != 3 || got.Problems[2].Level != "error" || got.Problems[2].Column != 8 {
		t.Errorf("got %+v", got)
	}
}

func TestZoneCheckMissingFile(t *testing.T) {
	c := &ZoneCheckCmd{File: filepath.Join(t.TempDir(), "none")}
	if err := c.Run(&strings.Builder{}); err == nil || errors.Is(err, ErrSilent) {
		t.Errorf("error %v", err)
	}
}
