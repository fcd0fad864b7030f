package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// exported is the zone as text.
func exported(t testing.TB, s *Store) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Export(t.Context(), apexName(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestExport(t *testing.T) {
	s := open(t)
	load(t, s, small)
	const want = `$ORIGIN example.org.
$TTL 300
@                               IN SOA     ns host (
                                           10           ; serial
                                           3600         ; refresh
                                           600          ; retry
                                           86400        ; expire
                                           300 )        ; minimum
                                IN NS      ns
Mail                            IN MX      10 www
ns                              IN A       192.0.2.53
www                             IN A       192.0.2.1
                                IN A       192.0.2.2
`
	if got := exported(t, s); got != want {
		t.Errorf("got\n%s", got)
	}
}

// What is exported can be imported, and is the same zone then: signatures with TTLs
// of their own, and RDATA that no RFC takes for that of its type, as transfers bring
// it.
func TestExportImport(t *testing.T) {
	odd := many(20_000) + `sig 60 RRSIG A 13 3 60 20380119031408 20260101000000 7 example.org. AQID
sig 300 RRSIG AAAA 13 3 300 20380119031408 20260101000000 7 example.org. AQID
sig 60 RRSIG MX 13 3 60 20380119031408 20260101000000 7 example.org. AQID
odd NSEC \# 4 00000100
odd TYPE65280 \# 3 010203
odd TXT "\000\"" "" "\\"
`
	from, to := open(t), open(t)
	load(t, from, odd)
	text1 := exported(t, from)
	load(t, to, text1)
	var records [2][]zonefile.Record
	for i, s := range []*Store{from, to} {
		err := s.Records(t.Context(), apexName(), func(batch []zonefile.Record) error {
			for _, r := range batch {
				r.RDATA = bytes.Clone(r.RDATA)
				records[i] = append(records[i], r)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(records[0]) != 20_009 || !reflect.DeepEqual(records[0], records[1]) {
		t.Errorf("%d records became %d, or differ", len(records[0]), len(records[1]))
	}
	if text2 := exported(t, to); text2 != text1 {
		t.Error("the text differs")
	}
}

func TestExportRefuses(t *testing.T) {
	s := open(t)
	if err := s.Export(t.Context(), apexName(), new(bytes.Buffer)); !errors.Is(err, ErrNoZone) {
		t.Errorf("no zone: %v", err)
	}
	load(t, s, small)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Export(ctx, apexName(), new(bytes.Buffer)); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
}

// A body that breaks off leaves the zone as it is, and so does a caller that left.
func TestBodyBreaks(t *testing.T) {
	s := open(t)
	load(t, s, small)
	broken := errors.New("connection reset")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		src  Source
		want error
	}{
		{"broken off", t.Context(), s.Source(Text{Name: "body", Body: iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(small))), Origin: apexName()}), iotest.ErrTimeout},
		{"broken at once", t.Context(), s.Source(Text{Name: "body", Body: iotest.ErrReader(broken), Origin: apexName()}), broken},
		{"the caller left", ctx, s.Source(Text{Name: "body", Body: strings.NewReader(many(10)), Origin: apexName()}), context.Canceled},
	} {
		if _, err := s.Import(c.ctx, Import{Zone: apexName(), Source: c.src}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if got := contents(t, s); !slices.Equal(got, smallContents) {
		t.Errorf("it changed all the same: %q", got)
	}
}

// Data is RDATA in presentation format.
func TestEditData(t *testing.T) {
	s := open(t)
	load(t, s, small)
	www := testkit.Name(t, "www.example.org.")
	edit := Edit{Zone: apexName(), Ops: []Op{
		{Do: Set, Owner: www, Type: wire.TypeA, TTL: 60, RDATA: [][]byte{{192, 0, 2, 9}}, Data: []string{"192.0.2.7", "192.0.2.8"}},
		{Do: Add, Owner: www, Type: wire.TypeMX, TTL: 60, Data: []string{"10 mail", "20 mail.example.net."}},
		{Do: Delete, Owner: apexName(), Type: wire.TypeNS, Data: []string{"ns9"}},
		{Do: Add, Owner: apexName(), Type: wire.TypeNS, TTL: 60, Data: []string{"@"}},
		{Do: Delete, Owner: apexName(), Type: wire.TypeNS, Data: []string{"NS"}},
	}}
	before := len(edit.Ops[0].RDATA)
	if _, err := s.Edit(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
	if len(edit.Ops[0].RDATA) != before || len(edit.Ops[0].Data) != 2 {
		t.Errorf("the caller's operation has changed: %+v", edit.Ops[0])
	}
	sets, _, err := s.RRsets(apexName(), Page{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range sets {
		got = append(got, fmt.Sprintf("%s %s %d %s", sets[i].Owner, wire.TypeString(sets[i].Type), sets[i].TTL, strings.Join(sets[i].Data, ", ")))
	}
	want := []string{
		"example.org. NS 60 example.org.",
		"example.org. SOA 300 ns.example.org. host.example.org. 11 3600 600 86400 300",
		"Mail.example.org. MX 300 10 www.example.org.",
		"ns.example.org. A 300 192.0.2.53",
		"www.example.org. A 60 192.0.2.7, 192.0.2.8, 192.0.2.9",
		"www.example.org. MX 60 10 mail.example.org., 20 mail.example.net.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// What is wrong with data is told of each operation.
func TestEditDataRefuses(t *testing.T) {
	s := open(t)
	load(t, s, small)
	add := func(typ uint16, data ...string) Op {
		return Op{Do: Add, Owner: apexName(), Type: typ, TTL: 60, Data: data}
	}
	_, err := s.Edit(t.Context(), Edit{Zone: apexName(), Ops: []Op{
		add(wire.TypeTXT, `"fine"`),
		add(wire.TypeA, "192.0.2.1", "192.0.2"),
		add(wire.TypeTXT, "v=DMARC1; p=none"),
		{Do: Delete, Owner: apexName(), Data: []string{"x"}},
		add(wire.TypeANY, "x"),
	}})
	if !errors.Is(err, ErrRDATA) || !errors.Is(err, ErrNoRDATA) || !errors.Is(err, ErrType) {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{
		"operation 1: reading data 1: RDATA does not have the layout of its type: RDATA of A record: \"192.0.2\" is not understood (write an IPv4 address, as 192.0.2.1)",
		"operation 2: reading data 0: ", "operation 3: ", "operation 4: ",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell %s", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "operation 0") {
		t.Errorf("%v tells of an operation that is fine", err)
	}
}
