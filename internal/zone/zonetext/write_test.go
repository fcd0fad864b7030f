package zonetext_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
	"github.com/waymark-dns/waymark/internal/zone/zonetext"
)

// sets hands out RRsets.
func sets(all []zonetext.RRset) iter.Seq2[zonetext.RRset, error] {
	return func(yield func(zonetext.RRset, error) bool) {
		for _, s := range all {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// parse reads records as RRsets of one record each, in the order of Write.
func parse(t testing.TB, read func(each func([]zonefile.Record) error) error) []zonetext.RRset {
	t.Helper()
	var all []zonetext.RRset
	err := read(func(batch []zonefile.Record) error {
		for _, r := range batch {
			all = append(all, zonetext.RRset{Owner: bytes.Clone(r.Owner), Type: r.Type, TTL: r.TTL, RDATA: [][]byte{bytes.Clone(r.RDATA)}})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b zonetext.RRset) int {
		if c := wire.Compare(a.Owner, b.Owner); c != 0 {
			return c
		}
		return cmp.Compare(a.Type, b.Type)
	})
	soa := slices.IndexFunc(all, func(s zonetext.RRset) bool { return s.Type == wire.TypeSOA })
	if soa >= 0 {
		first := all[soa]
		all = slices.Insert(slices.Delete(all, soa, soa+1), 0, first)
	}
	return all
}

func parseText(t testing.TB, text string, o zonefile.Options) []zonetext.RRset {
	t.Helper()
	return parse(t, func(each func([]zonefile.Record) error) error { return zonefile.ReadText("text", text, o, each) })
}

func write(t testing.TB, apex wire.Name, all []zonetext.RRset) string {
	t.Helper()
	var b bytes.Buffer
	if err := zonetext.Write(&b, apex, sets(all)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	const in = `$TTL 300
@ SOA ns host 10 3600 600 86400 300
@ NS ns
@ NS ns.example.net.
ns A 192.0.2.53
www 60 A 192.0.2.1
www 60 A 192.0.2.2
www AAAA 2001:db8::1
WWW TXT "x"
a-name-that-is-longer-than-its-column A 192.0.2.1
a-name-that-is-longer-than-its-column 60 TXT "x"
`
	const want = `$ORIGIN example.org.
$TTL 300
@                               IN SOA     ns host (
                                           10           ; serial
                                           3600         ; refresh
                                           600          ; retry
                                           86400        ; expire
                                           300 )        ; minimum
                                IN NS      ns
                                IN NS      ns.example.net.
a-name-that-is-longer-than-its-column IN A 192.0.2.1
                        60      IN TXT     "x"
ns                              IN A       192.0.2.53
www                     60      IN A       192.0.2.1
                        60      IN A       192.0.2.2
WWW                             IN TXT     "x"
www                             IN AAAA    2001:db8::1
`
	got := write(t, origin, parseText(t, in, zonefile.Options{Origin: origin}))
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again := write(t, origin, parseText(t, got, zonefile.Options{})); again != want { // $ORIGIN tells the apex
		t.Errorf("again\n%s", again)
	}
}

func TestWriteRefuses(t *testing.T) {
	soa := zonetext.RRset{Owner: origin, Type: wire.TypeSOA, RDATA: [][]byte{make([]byte, 22)}}
	a := func(owner string, typ uint16) zonetext.RRset {
		return zonetext.RRset{Owner: testkit.Name(t, owner), Type: typ, RDATA: [][]byte{{1, 2, 3, 4}}}
	}
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		sets iter.Seq2[zonetext.RRset, error]
		want error
	}{
		{"nothing", sets(nil), zonetext.ErrNoSOA},
		{"no SOA first", sets([]zonetext.RRset{a("example.org.", 1), soa}), zonetext.ErrNoSOA},
		{"SOA of another apex", sets([]zonetext.RRset{{Owner: wire.Root, Type: wire.TypeSOA, RDATA: soa.RDATA}}), zonetext.ErrNoSOA},
		{"owners out of order, RFC 4034 6.1", sets([]zonetext.RRset{soa, a("b.example.org.", 1), a("a.example.org.", 1)}), zonetext.ErrOrder},
		{"types out of order", sets([]zonetext.RRset{soa, a("b.example.org.", 16), a("b.example.org.", 1)}), zonetext.ErrOrder},
		{"an error of the source", func(yield func(zonetext.RRset, error) bool) { _ = yield(soa, nil) && yield(zonetext.RRset{}, broken) }, broken},
	} {
		if err := zonetext.Write(new(bytes.Buffer), origin, c.sets); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	full := errors.New("disk is full")
	if err := zonetext.Write(failing{full}, origin, sets([]zonetext.RRset{soa})); !errors.Is(err, full) {
		t.Errorf("an error of the writer: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Each zone in the tree is the same when it was written and read again.
func TestZonesOfTheTree(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"../../../examples/zones/*.zone", "../testdata/*/*.zone", "../zonecheck/testdata/*.zone"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			read := func(o zonefile.Options) []zonetext.RRset {
				return parse(t, func(each func([]zonefile.Record) error) error { return zonefile.Read(path, o, each) })
			}
			o := zonefile.Options{Origin: origin}
			if name, ok := strings.CutSuffix(filepath.Base(path), ".arpa.zone"); ok {
				o.Origin = testkit.Name(t, name+".arpa.")
			}
			if strings.Contains(path, "oracle") {
				o.Origin = nil
			}
			want := read(o)
			text := write(t, want[0].Owner, want)
			got := parseText(t, text, zonefile.Options{})
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got\n%s", text)
			}
			for line := range strings.Lines(text) {
				if strings.Contains(line, ` \# `) && !strings.Contains(line, " TYPE") {
					t.Errorf("RDATA that is left to RFC 3597: %s", line)
				}
			}
		})
	}
}

// BenchmarkWrite writes 1,000,000 records.
func BenchmarkWrite(b *testing.B) {
	const records = 1_000_000
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		var count counter
		err := zonetext.Write(&count, origin, func(yield func(zonetext.RRset, error) bool) {
			s := zonetext.RRset{Owner: origin, Type: wire.TypeSOA, TTL: 60, RDATA: [][]byte{make([]byte, 22)}}
			if !yield(s, nil) {
				return
			}
			for i := range records {
				s = zonetext.RRset{Owner: fmt.Appendf(s.Owner[:0], "\x08h%07d%s", i, []byte(origin)), TTL: 60, RDATA: s.RDATA[:1]}
				switch i % 3 {
				case 0:
					s.Type, s.RDATA[0] = wire.TypeA, append(s.RDATA[0][:0], 10, byte(i>>16), byte(i>>8), byte(i))
				case 1:
					s.Type, s.RDATA[0] = wire.TypeMX, append(append(s.RDATA[0][:0], 0, 10), s.Owner...)
				default:
					s.Type, s.RDATA[0] = wire.TypeRRSIG, append(append(s.RDATA[0][:0], signature...), signature...)
				}
				n++
				if !yield(s, nil) {
					return
				}
			}
		})
		if err != nil || n != records {
			b.Fatal(n, err)
		}
		b.SetBytes(int64(count))
	}
}

const signature = "\x00\x01\x0d\x03\x00\x00\x0e\x10\x3e\xef\xb0\xf5\x3e\xd9\xff\x70\x0a\x52\x07example\x03org\x000123456789012345678901234567890123456789"

type counter int

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }
