package history

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The files of format 1, as they lie on disks.
func TestFormat1(t *testing.T) {
	for file, text := range map[string]string{"format1.version": "listen: [udp://127.0.0.1:53]\n", "format1.unconfirmed": "listen: [udp://127.0.0.1:53]\n"} {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		if file == "format1.version" {
			var v Version
			got, err = unseal(versionKind, data, &v)
			if v.Who != "ann" || v.Comment != "the first" || v.ETag != sum(got) || !v.Time.Equal(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)) {
				t.Errorf("%+v", v)
			}
		} else {
			var mk *marker
			if mk, err = parseMarker(data); err == nil {
				got = mk.former
				if mk.ID != 2 || mk.Former != 1 || mk.Dir != "versions" || mk.Keep != 100 || mk.New == "" {
					t.Errorf("%+v", mk)
				}
			}
		}
		if err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
}

func TestDamaged(t *testing.T) {
	s := newSite(t)
	m := s.open()
	for _, text := range []string{newText, "third\n"} {
		if _, err := m.Apply(Change{Text: text, IfMatch: "*"}); err != nil {
			t.Fatal(err)
		}
	}
	file := m.store.path(2)
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty":          {nil, errDamaged},
		"cut":            {sound[:len(sound)-1], errDamaged},
		"a bit":          {append(bytes.Clone(sound[:len(sound)-2]), sound[len(sound)-2]^1, '\n'), errDamaged},
		"another kind":   {bytes.Replace(sound, []byte("version of"), []byte("something of"), 1), errDamaged},
		"a later format": {bytes.Replace(sound, []byte("format 1"), []byte("format 2"), 1), errFormat},
		"no JSON":        {bytes.Replace(sound, []byte("{"), []byte("["), 1), errDamaged},
	} {
		if err := os.WriteFile(file, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.Version(2, false); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		l, err := m.List(false)
		if err != nil || len(l.Versions) != 3 || l.Versions[1].Trouble == "" || l.Versions[1].ID != 2 || l.Versions[0].Trouble != "" {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
		if id, err := m.before(sum([]byte("third\n"))); id != 1 || err != nil {
			t.Errorf("%s: before is %d, %v", name, id, err)
		}
	}
	// Others in the folder are none of ours.
	for _, other := range []string{"1.version", "x.version", "00000000.version", "00000007.version.bak"} {
		if err := os.WriteFile(filepath.Join(s.dir, other), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := m.store.ids(); err != nil || len(ids) != 3 {
		t.Errorf("%v, %v", ids, err)
	}
}

func TestMarkerDamaged(t *testing.T) {
	s := newSite(t)
	m := s.open()
	if _, err := m.Apply(toNew(time.Hour)); err != nil {
		t.Fatal(err)
	}
	m.Close()
	sound, err := os.ReadFile(markerPath(s.path))
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{[]byte("# nothing\n"), nil, sound[:len(sound)-1], bytes.Replace(sound, []byte(`"id":2`), []byte(`"id":0`), 1)} {
		if err := os.WriteFile(markerPath(s.path), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if done, err := Recover(s.path, time.Now); done != "" || !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "unconfirmed") || s.text() != newText {
			t.Errorf("%q: %q, %v, %q", data, done, err, s.text())
		}
	}
}

func TestModes(t *testing.T) {
	s := newSite(t)
	if err := os.Chmod(s.path, 0o604); err != nil {
		t.Fatal(err)
	}
	if _, err := s.open().Apply(toNew(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		s.path: 0o604, markerPath(s.path): 0o600, s.dir: 0o700, filepath.Join(s.dir, "00000001.version"): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func FuzzUnseal(f *testing.F) {
	f.Add(seal(versionKind, Version{ID: 1}, []byte("text\n")))
	f.Add((&marker{Pending: Pending{ID: 1}, Old: sum(nil)}).seal())
	f.Add([]byte("# waymark " + versionKind + ", format 1\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v Version
		if text, err := unseal(versionKind, data, &v); err == nil {
			var again Version
			got, err := unseal(versionKind, seal(versionKind, v, text), &again)
			if err != nil || !bytes.Equal(got, text) || again.ID != v.ID || again.Who != v.Who {
				t.Fatalf("%q is read as %+v, and that as %+v, %v", data, v, again, err)
			}
		}
		if mk, err := parseMarker(data); err == nil {
			if again, err := parseMarker(mk.seal()); err != nil || !bytes.Equal(again.former, mk.former) {
				t.Fatalf("%q is read as %+v, and that as %+v, %v", data, mk, again, err)
			}
		}
	})
}
