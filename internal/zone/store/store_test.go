package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

var smallContents = []string{
	"@ 300 IN SOA ns host 0 3600 600 86400 300",
	"@ 300 IN NS ns",
	"Mail 300 IN MX 10 www",
	"ns 300 IN A 192.0.2.53",
	"www 300 IN A 192.0.2.1",
	"www 300 IN A 192.0.2.2",
}

func TestImport(t *testing.T) {
	s := open(t)
	r := load(t, s, small)
	if r.Zone.Serial() != 10 || r.Version.Number != 1 || r.Version.What != "create" || r.Version.Records != 6 {
		t.Errorf("created: %+v", r.Version)
	}
	if got := contents(t, s); !slices.Equal(got, smallContents) {
		t.Errorf("got %q", got)
	}
	z, err := s.Load(apexName())
	if err != nil || z.Serial() != 10 || z.Records() != 6 {
		t.Errorf("loaded %v, %v", z, err)
	}
	list, err := s.Zones()
	if err != nil || len(list) != 1 || list[0].Serial != 10 || list[0].Records != 6 || list[0].Zone.String() != apexText {
		t.Errorf("listed %+v, %v", list, err)
	}
}

// An import replaces the zone whole; its serial grows unless it states a newer one
// (RFC 1982).
func TestImportAgain(t *testing.T) {
	present := uint32(10)
	other := uint32(9)
	for _, c := range []struct {
		name   string
		zone   string
		in     Import
		serial uint32
		want   error
		same   bool
	}{
		{name: "the same", zone: small, serial: 10, same: true},
		{name: "the same, stated older", zone: strings.Replace(small, " 10 ", " 3 ", 1), serial: 10, same: true},
		{name: "a newer serial alone", zone: strings.Replace(small, " 10 ", " 20 ", 1), serial: 20},
		{name: "other records under the same serial", zone: small + "x A 192.0.2.9\n", serial: 11},
		{name: "other records under an older serial", zone: strings.Replace(small, " 10 ", " 3 ", 1) + "x A 192.0.2.9\n", serial: 11},
		{name: "exact, and newer", zone: strings.Replace(small, " 10 ", " 12 ", 1), in: Import{Exact: true}, serial: 12},
		{name: "exact, and the same", zone: small, in: Import{Exact: true}, serial: 10, same: true},
		{name: "exact, and other records", zone: small + "x A 192.0.2.9\n", in: Import{Exact: true}, want: ErrSerial},
		{name: "exact, and older", zone: strings.Replace(small, " 10 ", " 3 ", 1), in: Import{Exact: true}, want: ErrSerial},
		{name: "create", zone: small, in: Import{Mode: Create}, want: ErrExists},
		{name: "replace", zone: small + "x A 192.0.2.9\n", in: Import{Mode: Replace}, serial: 11},
		{name: "matching", zone: small + "x A 192.0.2.9\n", in: Import{Match: &present}, serial: 11},
		{name: "not matching", zone: small + "x A 192.0.2.9\n", in: Import{Match: &other}, want: ErrMatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			load(t, s, small)
			c.in.Zone, c.in.Source = apexName(), text(s, c.zone)
			r, err := s.Import(t.Context(), c.in)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err != nil {
				if got := contents(t, s); !slices.Equal(got, smallContents) {
					t.Errorf("it changed all the same: %q", got)
				}
				return
			}
			if r.Unchanged != c.same || r.Version.Serial != c.serial || r.Unchanged != (r.Zone == nil) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestImportReplaceNone(t *testing.T) {
	s := open(t)
	if _, err := s.Import(t.Context(), Import{Zone: apexName(), Source: text(s, small), Mode: Replace}); !errors.Is(err, ErrNoZone) {
		t.Errorf("got %v", err)
	}
}

// Whatever is wrong with a zone, all of it is told and nothing changes.
func TestImportRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		add  string
		want []string // the line and a part of each problem
	}{
		{"two bad lines", "x A 1.2.3\ny A 192.0.2.1\nz AAAA 1.2.3.4\n", []string{"8: ", "10: "}},
		{"out of the zone", "x.example.net. A 192.0.2.1\n", []string{"8: out of the zone"}},
		{"CNAME and others, RFC 1034 3.6.2", "www CNAME ns\n", []string{"5: CNAME"}},
		{"two CNAME, RFC 2181 10.1", "a CNAME ns\na CNAME www\n", []string{"8: more than one CNAME"}},
		{"two SOA", "@ SOA ns host 11 1 1 1 1\n", []string{"8: more than one SOA"}},
		{"SOA below", "sub SOA ns host 11 1 1 1 1\n", []string{"8: not the apex"}},
		{"an include", "$INCLUDE /etc/passwd\n", []string{"8: "}},
		{"itself included", "$INCLUDE body\n", []string{"8: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			load(t, s, small)
			_, err := s.Import(t.Context(), Import{Zone: apexName(), Source: text(s, small+c.add)})
			var bad *zonefile.ProblemsError
			if !errors.As(err, &bad) || len(bad.Problems) != len(c.want) {
				t.Fatalf("got %v", err)
			}
			for i, p := range bad.Problems {
				at, part, _ := strings.Cut(c.want[i], ": ")
				if fmt.Sprint(p.Line) != at || !strings.Contains(p.Text, part) || p.File != "body" || strings.Contains(p.String(), "import-") {
					t.Errorf("problem %s, want %s", p, c.want[i])
				}
			}
			if got := contents(t, s); !slices.Equal(got, smallContents) {
				t.Errorf("it changed all the same: %q", got)
			}
			left, err := filepath.Glob(filepath.Join(filepath.Dir(s.cfg.Path), "import-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
	s := open(t)
	for _, c := range []struct {
		name, zone string
		want       error
	}{
		{"no SOA", "@ 300 NS ns\n", zone.ErrNoSOA},
		{"no NS at the apex", "@ 300 SOA ns host 1 2 3 4 5\n", new(zonefile.ProblemsError)},
	} {
		_, err := s.Import(t.Context(), Import{Zone: apexName(), Source: text(s, c.zone)})
		var bad *zonefile.ProblemsError
		if !errors.Is(err, c.want) && !errors.As(err, &bad) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	if list, err := s.Zones(); err != nil || len(list) != 0 {
		t.Errorf("there are zones: %v, %v", list, err)
	}
}

func TestTextTooLarge(t *testing.T) {
	s := open(t)
	src := s.Source(Text{Name: "body", Body: strings.NewReader(small), Most: int64(len(small)) - 1, Origin: apexName()})
	if _, err := s.Import(t.Context(), Import{Zone: apexName(), Source: src}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestDelete(t *testing.T) {
	s := open(t)
	load(t, s, small)
	old, present := uint32(9), uint32(10)
	for _, c := range []struct {
		name  string
		match *uint32
		want  error
	}{{"not matching", &old, ErrMatch}, {"matching", &present, nil}, {"gone", nil, ErrNoZone}} {
		if err := s.Delete(t.Context(), apexName(), c.match); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	load(t, s, small)
	if h, err := s.History(apexName()); err != nil || len(h) != 1 {
		t.Errorf("the history of the zone that was deleted is there: %v, %v", h, err)
	}
}

func TestRRsets(t *testing.T) {
	s := open(t)
	load(t, s, small)
	for _, c := range []struct {
		name string
		page Page
		want string
		more bool
	}{
		{"all", Page{}, "example.org. NS 1, example.org. SOA 1, Mail.example.org. MX 1, ns.example.org. A 1, www.example.org. A 2", false},
		{"an owner, letters folded", Page{Owner: testkit.Name(t, "WWW.example.org.")}, "www.example.org. A 2", false},
		{"an owner that is not there", Page{Owner: testkit.Name(t, "x.example.org.")}, "", false},
		{"a type", Page{Type: wire.TypeMX}, "Mail.example.org. MX 1", false},
		{"below", Page{Under: testkit.Name(t, "mail.example.org.")}, "Mail.example.org. MX 1", false},
		{"the first two", Page{Most: 2}, "example.org. NS 1, example.org. SOA 1", true},
		{"the rest", Page{Skip: 3, Most: 2}, "ns.example.org. A 1, www.example.org. A 2", false},
	} {
		sets, more, err := s.RRsets(apexName(), c.page)
		var got []string
		for _, set := range sets {
			got = append(got, fmt.Sprintf("%s %s %d", set.Owner, wire.TypeString(set.Type), len(set.RDATA)))
		}
		if err != nil || strings.Join(got, ", ") != c.want || more != c.more {
			t.Errorf("%s: got %q, %v, %v", c.name, got, more, err)
		}
	}
}

// The file of the first format opens, one of a later does not, and neither does one
// that is damaged.
func TestOpen(t *testing.T) {
	change := func(do func(tx *bbolt.Tx) error) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Update(do); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, path string)
		want   error
	}{
		{"sound", func(*testing.T, string) {}, nil},
		{"empty", func(t *testing.T, path string) { truncate(t, path, 0) }, nil},
		{"another format", change(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(formatKey, []byte("2")) }), ErrFormat},
		{"no index", change(func(tx *bbolt.Tx) error { return tx.DeleteBucket(zonesBucket) }), ErrDamaged},
		{"no store at all", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("no store\n", 5000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ErrDamaged},
		{"cut short", func(t *testing.T, path string) { truncate(t, path, 20_000) }, ErrDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "zones.db")
			s, err := Open(config(path))
			if err != nil {
				t.Fatal(err)
			}
			load(t, s, many(2000))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			c.damage(t, path)
			s, err = Open(config(path))
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if err == nil {
				_ = s.Close()
			}
		})
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// A record that rotted is found by its chunk's checksum; other zones go on.
func TestRot(t *testing.T) {
	s := open(t)
	load(t, s, small)
	err := s.update(func(tx *bbolt.Tx) error {
		b := zoneBucket(tx, apexName()).Bucket(chunksBucket)
		k, v := b.Cursor().First()
		v = slices.Clone(v)
		v[len(v)/2] ^= 1
		return b.Put(slices.Clone(k), v)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(apexName()); !errors.Is(err, ErrDamaged) {
		t.Errorf("loading: %v", err)
	}
	if err := s.Delete(t.Context(), apexName(), nil); err != nil {
		t.Errorf("deleting what is damaged: %v", err)
	}
}

func TestLocked(t *testing.T) {
	s := open(t)
	c := s.cfg
	c.Wait = 50 * time.Millisecond
	if _, err := Open(c); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v", err)
	}
}

func TestClosed(t *testing.T) {
	s := open(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Zones(); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}
