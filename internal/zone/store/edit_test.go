package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

func TestEdit(t *testing.T) {
	with := func(drop []string, add ...string) []string {
		all := slices.DeleteFunc(slices.Clone(smallContents), func(l string) bool { return slices.Contains(drop, l) })
		all = append(all, add...)
		slices.Sort(all)
		return all
	}
	mail := []string{"Mail 300 IN MX 10 www"}
	www := []string{"www 300 IN A 192.0.2.1", "www 300 IN A 192.0.2.2"}
	for _, c := range []struct {
		name string
		ops  []string
		want []string
		same bool
	}{
		{name: "a new name", ops: []string{"add x.example.org. 60 IN A 192.0.2.9"}, want: with(nil, "x 60 IN A 192.0.2.9")},
		{name: "another record, TTL for all, RFC 2181 5.2", ops: []string{"add WWW.example.org. 60 IN A 192.0.2.3"},
			want: with(www, "www 60 IN A 192.0.2.1", "www 60 IN A 192.0.2.2", "www 60 IN A 192.0.2.3")},
		{name: "a record that is there", ops: []string{"add www.example.org. 300 IN A 192.0.2.2"}, want: with(nil), same: true},
		{name: "set", ops: []string{"set www.example.org. 60 IN A 192.0.2.3"}, want: with(www, "www 60 IN A 192.0.2.3")},
		{name: "one record deleted", ops: []string{"delete www.example.org. 0 IN A 192.0.2.2"}, want: with(www[1:])},
		{name: "one deleted, letters of its name folded", ops: []string{"delete mail.example.org. 0 IN MX 10 WWW.example.org."}, want: with(mail)},
		{name: "the last record of a set deleted", ops: []string{"delete www.example.org. 0 IN A 192.0.2.1", "delete www.example.org. 0 IN A 192.0.2.2"}, want: with(www)},
		{name: "an RRset deleted", ops: []string{"delete www.example.org. A"}, want: with(www)},
		{name: "what is not there deleted", ops: []string{"delete x.example.org. A", "delete www.example.org. TXT"}, want: with(nil), same: true},
		{name: "all of an owner deleted", ops: []string{"add www.example.org. 1 IN TXT x", "delete www.example.org."}, want: with(www), same: false},
		{name: "all of the apex deleted but what makes it", ops: []string{"add example.org. 1 IN TXT x", "delete example.org."}, want: with(nil), same: true},
		{name: "CNAME in place of A in one edit", ops: []string{"delete www.example.org.", "add www.example.org. 60 IN CNAME ns.example.org."},
			want: with(www, "www 60 IN CNAME ns")},
		{name: "several", ops: []string{"add a.example.org. 60 IN A 192.0.2.9", "add zz.example.org. 60 IN A 192.0.2.9", "delete mail.example.org."},
			want: with(mail, "a 60 IN A 192.0.2.9", "zz 60 IN A 192.0.2.9")},
		{name: "undone in the same edit", ops: []string{"add a.example.org. 60 IN A 192.0.2.9", "delete a.example.org. A"}, want: with(nil), same: true},
		{name: "another SOA", ops: []string{"set example.org. 60 IN SOA a.example.org. b.example.org. 1 2 3 4 5"},
			want: with(smallContents[:1], "@ 60 IN SOA a b 0 2 3 4 5")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			load(t, s, small)
			r := edit(t, s, c.ops...)
			got := contents(t, s)
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if r.Unchanged != c.same || !c.same && (r.Zone.Serial() != 11 || r.Zone.Records() != len(c.want)) {
				t.Errorf("result %+v", r)
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []Op
		want error
	}{
		{"out of the zone", ops(t, "add x.example.net. 60 IN A 192.0.2.1"), ErrOutOfZone},
		{"the parent's name", ops(t, "add org. 60 IN A 192.0.2.1"), ErrOutOfZone},
		{"owner cut short", []Op{{Do: Add, Owner: wire.Name{3, 'a'}, Type: 1, RDATA: [][]byte{make([]byte, 4)}}}, ErrOutOfZone},
		{"RDATA of another type", []Op{{Do: Add, Owner: apexName(), Type: wire.TypeA, RDATA: [][]byte{make([]byte, 5)}}}, ErrRDATA},
		{"no RDATA", []Op{{Do: Set, Owner: apexName(), Type: wire.TypeA}}, ErrNoRDATA},
		{"a type of queries", []Op{{Do: Add, Owner: apexName(), Type: wire.TypeANY, RDATA: [][]byte{{}}}}, ErrType},
		{"a TTL with the top bit, RFC 2181 8", []Op{{Do: Add, Owner: apexName(), Type: wire.TypeA, TTL: 1 << 31, RDATA: [][]byte{make([]byte, 4)}}}, ErrTTL},
		{"another verb", []Op{{Do: 9, Owner: apexName(), Type: wire.TypeA}}, ErrVerb},
		{"CNAME beside others", ops(t, "add x.example.org. 60 IN A 192.0.2.1", "add www.example.org. 60 IN CNAME ns.example.org."), new(zonefile.ProblemsError)},
		{"no NS left", ops(t, "delete example.org. NS"), new(zonefile.ProblemsError)},
		{"no SOA left", ops(t, "delete example.org. SOA"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			load(t, s, small)
			_, err := s.Edit(t.Context(), Edit{Zone: apexName(), Ops: c.ops})
			var bad, wantBad *zonefile.ProblemsError
			if err == nil || c.want != nil && !errors.Is(err, c.want) && !(errors.As(c.want, &wantBad) && errors.As(err, &bad)) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if got := contents(t, s); !slices.Equal(got, smallContents) {
				t.Errorf("it changed all the same: %q", got)
			}
		})
	}
}

// All operations that are wrong are told.
func TestEditTellsAll(t *testing.T) {
	s := open(t)
	load(t, s, small)
	all := ops(t, "add x.example.net. 60 IN A 192.0.2.1", "add x.example.org. 60 IN A 192.0.2.1", "add y.example.net. 60 IN A 192.0.2.1")
	_, err := s.Edit(t.Context(), Edit{Zone: apexName(), Ops: all})
	for _, want := range []string{"operation 0", "operation 2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell %s", err, want)
		}
	}
}

// RFC 1982: a serial only grows.
func TestSerial(t *testing.T) {
	n := func(v uint32) *uint32 { return &v }
	for _, c := range []struct {
		name    string
		have    uint32
		policy  SerialPolicy
		op      string
		serial  *uint32
		match   *uint32
		becomes uint32
		want    error
	}{
		{name: "by one", have: 10, becomes: 11},
		{name: "across the wrap", have: 0xffff_ffff, becomes: 0},
		{name: "by date", have: 10, policy: Date, becomes: 2026030100},
		{name: "by date, again", have: 2026030100, policy: Date, becomes: 2026030101},
		{name: "by date, beyond the day's last", have: 2026030199, policy: Date, becomes: 2026030200},
		{name: "by date, from the future", have: 2027010100, policy: Date, becomes: 2027010101},
		{name: "stated", have: 10, serial: n(99), becomes: 99},
		{name: "stated the same", have: 10, serial: n(10), want: ErrSerial},
		{name: "stated older", have: 10, serial: n(9), want: ErrSerial},
		{name: "stated in the SOA record", have: 10, op: "set example.org. 60 IN SOA a.example.org. b.example.org. 50 2 3 4 5", becomes: 50},
		{name: "stated older in the SOA record", have: 10, op: "set example.org. 60 IN SOA a.example.org. b.example.org. 5 2 3 4 5", becomes: 11},
		{name: "matching", have: 10, match: n(10), becomes: 11},
		{name: "not matching", have: 10, match: n(9), want: ErrMatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, func(cfg *Config) { cfg.Serial = c.policy })
			load(t, s, strings.Replace(small, " 10 ", fmt.Sprintf(" %d ", c.have), 1))
			if c.op == "" {
				c.op = "add x.example.org. 60 IN A 192.0.2.9"
			}
			r, err := s.Edit(t.Context(), Edit{Zone: apexName(), Ops: ops(t, c.op), Serial: c.serial, Match: c.match})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil && (r.Zone.Serial() != c.becomes || r.Version.Serial != c.becomes) {
				t.Errorf("serial %d, want %d", r.Zone.Serial(), c.becomes)
			}
		})
	}
}

// Many random edits over many chunks come to what a plain map comes to; going back
// to any version gives what was there.
func TestEditsAgainstModel(t *testing.T) {
	s := open(t, func(c *Config) { c.Versions = 10_000 })
	load(t, s, many(8_000))
	model := map[string]bool{}
	for _, l := range contents(t, s) {
		model[l] = true
	}
	r := rand.New(rand.NewPCG(1, 2))
	versions := map[uint32]map[string]bool{}
	for range 30 {
		var lines []string
		for range 1 + r.IntN(8) {
			name := fmt.Sprintf("h%d", r.IntN(12_000))
			for l := range model {
				if strings.HasPrefix(l, name+" ") {
					delete(model, l)
				}
			}
			if r.IntN(3) == 0 {
				lines = append(lines, "delete "+name+".example.org.")
				continue
			}
			addr := fmt.Sprintf("172.16.%d.%d", r.IntN(256), r.IntN(256))
			lines = append(lines, fmt.Sprintf("set %s.example.org. 60 IN A %s", name, addr))
			model[fmt.Sprintf("%s 60 IN A %s", name, addr)] = true
		}
		result := edit(t, s, lines...)
		same(t, s, model)
		versions[result.Version.Serial] = copyOf(model)
	}
	for serial, want := range versions {
		if _, err := s.Restore(t.Context(), Restore{Zone: apexName(), Serial: serial}); err != nil {
			t.Fatal(err)
		}
		same(t, s, want)
		if len(versions) > 10 && serial%7 == 0 {
			break
		}
	}
	z, err := s.Load(apexName())
	if err != nil || z.Records() != len(contents(t, s)) {
		t.Errorf("loading: %v", err)
	}
}

func copyOf(m map[string]bool) map[string]bool {
	out := make(map[string]bool, len(m))
	for k := range m {
		out[k] = true
	}
	return out
}

func same(t *testing.T, s *Store, want map[string]bool) {
	t.Helper()
	got := contents(t, s)
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for _, l := range got {
		if !want[l] {
			t.Fatalf("%q should not be there", l)
		}
	}
}

// Edits at once are done one after another: none is lost.
func TestEditsAtOnce(t *testing.T) {
	s := open(t)
	load(t, s, small)
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		o := ops(t, fmt.Sprintf("add n%d.example.org. 60 IN A 192.0.2.9", i))
		wg.Go(func() { _, errs[i] = s.Edit(context.Background(), Edit{Zone: apexName(), Ops: o}) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(testkit.Name(t, apexText))
	if err != nil || info.Serial != 30 || info.Records != 26 || len(s.turns) != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// FuzzChanges looks for differences that break their reader.
func FuzzChanges(f *testing.F) {
	c := change{wire.Name{1, 'a', 0}, 1, nil, appendRecord(nil, 60, []byte{1, 2, 3, 4})}
	f.Add(appendChange(appendChange(nil, &c), &c))
	f.Add([]byte{2, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		changes, err := readChanges(b)
		if err != nil {
			return
		}
		var again []byte
		for i := range changes {
			again = appendChange(again, &changes[i])
		}
		if string(again) != string(b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}

// FuzzChunk looks for chunks that break their reader.
func FuzzChunk(f *testing.F) {
	f.Add(appendSet(nil, &set{wire.Name{1, 'a', 0}, 1, appendRecord(nil, 60, []byte{1, 2, 3, 4})}))
	f.Add([]byte{1, 0, 0, 1, 0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		w := walkChunks([]chunk{{data: seal(slices.Clone(b))}})
		var again []byte
		for w.next() {
			again = appendSet(again, &w.set)
			_, _ = records(w.set.body)
			_ = countRecords(w.set.body)
		}
		if w.err == nil && string(again) != string(b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}
