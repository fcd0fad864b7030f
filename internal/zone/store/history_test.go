package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/wire"
)

func TestHistory(t *testing.T) {
	s := open(t)
	load(t, s, small)
	edit(t, s, "add a.example.org. 60 IN A 192.0.2.9")
	edit(t, s, "set www.example.org. 60 IN A 192.0.2.1", "delete mail.example.org.")
	load(t, s, strings.Replace(small, " 10 ", " 50 ", 1))
	all, err := s.History(apexName())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range all {
		if !v.Time.Equal(testTime) {
			t.Errorf("version %d is of %v", v.Number, v.Time)
		}
		got = append(got, fmt.Sprintf("%d %d %s %s %d +%d -%d", v.Number, v.Serial, v.What, v.Who, v.Records, v.Added, v.Removed))
	}
	want := []string{
		"4 50 import tester 6 +4 -3", // SOA, MX and two A; SOA, A of www, A of a
		"3 12 edit tester 5 +2 -4",
		"2 11 edit tester 7 +2 -1",
		"1 10 create tester 6 +6 -0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// summary is a difference as text, the SOA record left out.
func summary(t *testing.T, changes []Change) string {
	t.Helper()
	var all []string
	for _, c := range changes {
		if c.Type == wire.TypeSOA {
			continue
		}
		for _, rdata := range c.Old.RDATA {
			all = append(all, "-"+line(t, c.Owner, c.Type, c.Old.TTL, rdata))
		}
		for _, rdata := range c.New.RDATA {
			all = append(all, "+"+line(t, c.Owner, c.Type, c.New.TTL, rdata))
		}
	}
	return strings.Join(all, ", ")
}

func TestDiff(t *testing.T) {
	s := open(t)
	load(t, s, small)
	edit(t, s, "add a.example.org. 60 IN A 192.0.2.9")  // 11
	edit(t, s, "set a.example.org. 60 IN A 192.0.2.10") // 12
	edit(t, s, "delete a.example.org. A")               // 13
	for _, c := range []struct {
		from, to uint32
		want     string
		err      error
	}{
		{10, 11, "+a 60 IN A 192.0.2.9", nil},
		{11, 10, "-a 60 IN A 192.0.2.9", nil},
		{11, 12, "-a 60 IN A 192.0.2.9, +a 60 IN A 192.0.2.10", nil},
		{10, 12, "+a 60 IN A 192.0.2.10", nil},
		{10, 13, "", nil},
		{13, 11, "+a 60 IN A 192.0.2.9", nil},
		{11, 11, "", nil},
		{9, 11, "", ErrNoVersion},
		{11, 99, "", ErrNoVersion},
	} {
		changes, err := s.Diff(apexName(), c.from, c.to)
		if got := summary(t, changes); !errors.Is(err, c.err) || got != c.want {
			t.Errorf("%d to %d: %q, %v", c.from, c.to, got, err)
		}
	}
}

func TestRestore(t *testing.T) {
	s := open(t)
	load(t, s, small)
	edit(t, s, "add a.example.org. 60 IN A 192.0.2.9")
	r, err := s.Restore(t.Context(), Restore{Zone: apexName(), Serial: 10, By: Author{Who: "tester"}})
	if err != nil || r.Zone.Serial() != 12 || r.Version.What != "restore 10" {
		t.Errorf("%+v, %v", r, err)
	}
	if got := contents(t, s); !slices.Equal(got, smallContents) {
		t.Errorf("got %q", got)
	}
	if r, err = s.Restore(t.Context(), Restore{Zone: apexName(), Serial: 12}); err != nil || !r.Unchanged {
		t.Errorf("restoring the present version: %+v, %v", r, err)
	}
	old := uint32(11)
	if _, err = s.Restore(t.Context(), Restore{Zone: apexName(), Serial: 10, Match: &old}); !errors.Is(err, ErrMatch) {
		t.Errorf("got %v", err)
	}
	if _, err = s.Restore(t.Context(), Restore{Zone: apexName(), Serial: 77}); !errors.Is(err, ErrNoVersion) {
		t.Errorf("got %v", err)
	}
}

// The history is bounded by number and by octets; what it tells can be restored.
func TestHistoryBounded(t *testing.T) {
	for _, c := range []struct {
		name     string
		versions int
		octets   int64
		big      bool // the last change is larger than all that is kept
		want     int
	}{
		{"by number", 3, 0, false, 3},
		{"by octets", 0, 600, false, 4},
		{"one change too large", 0, 2000, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, func(cfg *Config) { cfg.Versions, cfg.Octets = c.versions, c.octets })
			load(t, s, small)
			for i := range 8 {
				edit(t, s, fmt.Sprintf("set a.example.org. 60 IN A 192.0.2.%d", i))
			}
			if c.big {
				load(t, s, many(300))
			}
			all, err := s.History(apexName())
			if err != nil || len(all) != c.want {
				t.Fatalf("%d versions, %v", len(all), err)
			}
			present := contents(t, s)
			oldest := all[len(all)-1]
			if _, err := s.Restore(t.Context(), Restore{Zone: apexName(), Serial: oldest.Serial}); err != nil {
				t.Errorf("restoring the oldest: %v", err)
			}
			if _, err := s.Restore(t.Context(), Restore{Zone: apexName(), Serial: all[0].Serial}); err != nil && len(all) > 1 && c.versions == 0 {
				t.Errorf("going back: %v", err)
			} else if err == nil && !slices.Equal(contents(t, s), present) {
				t.Error("going back gives another zone")
			}
		})
	}
}
