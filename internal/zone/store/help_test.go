package store

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

func TestMain(m *testing.M) {
	if childDone() {
		return
	}
	goleak.VerifyTestMain(m)
}

const apexText = "example.org."

// small is a zone of six records.
const small = `$TTL 300
@ IN SOA ns host 10 3600 600 86400 300
@ NS ns
ns A 192.0.2.53
www A 192.0.2.1
www A 192.0.2.2
Mail MX 10 www
`

var testTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func config(path string) Config {
	return Config{Path: path, Now: func() time.Time { return testTime }}
}

// open opens a new store until the test ends.
func open(t testing.TB, change ...func(*Config)) *Store {
	t.Helper()
	c := config(filepath.Join(t.TempDir(), "zones.db"))
	for _, f := range change {
		f(&c)
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func text(s *Store, zone string) Source {
	return s.Source(Text{Name: "body", Body: strings.NewReader(zone), Origin: apexName()})
}

func apexName() wire.Name {
	n, err := wire.ParseName(apexText)
	if err != nil {
		panic(err)
	}
	return n
}

// load imports a zone that is sound.
func load(t testing.TB, s *Store, zone string) Result {
	t.Helper()
	r, err := s.Import(t.Context(), Import{Zone: apexName(), Source: text(s, zone), By: Author{Who: "tester"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// op makes an operation of "add|set|delete RECORD", or of "delete OWNER TYPE" and
// "delete OWNER".
func op(t testing.TB, line string) Op {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	do, ok := map[string]Verb{"add": Add, "set": Set, "delete": Delete}[verb]
	if !ok {
		t.Fatalf("no verb in %q", line)
	}
	fields := strings.Fields(rest)
	o := Op{Do: do, Owner: testkit.Name(t, fields[0])}
	if len(fields) == 1 {
		return o
	}
	if len(fields) == 2 {
		o.Type = dns.StringToType[fields[1]]
		return o
	}
	rr, err := dns.NewRR(rest)
	if err != nil {
		t.Fatal(err)
	}
	_, rdata := testkit.Wire(t, rr)
	o.Type, o.TTL, o.RDATA = rr.Header().Rrtype, rr.Header().Ttl, [][]byte{rdata}
	return o
}

func ops(t testing.TB, lines ...string) []Op {
	t.Helper()
	var all []Op
	for _, line := range lines {
		all = append(all, op(t, line))
	}
	return all
}

// edit does operations that are sound.
func edit(t testing.TB, s *Store, lines ...string) Result {
	t.Helper()
	r, err := s.Edit(t.Context(), Edit{Zone: apexName(), Ops: ops(t, lines...), By: Author{Who: "tester"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// contents is the zone as the store has it, a record a line, without the serial.
func contents(t testing.TB, s *Store) []string {
	t.Helper()
	var all []string
	err := s.Records(context.Background(), apexName(), func(batch []zonefile.Record) error {
		for _, r := range batch {
			rdata := slices.Clone(r.RDATA)
			if r.Type == wire.TypeSOA {
				setSerial(rdata, 0)
			}
			all = append(all, line(t, r.Owner, r.Type, r.TTL, rdata))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// line is a record in presentation format, without the apex.
func line(t testing.TB, owner wire.Name, typ uint16, ttl uint32, rdata []byte) string {
	t.Helper()
	b := append(wire.Name{}, owner...)
	b = append(b, byte(typ>>8), byte(typ), 0, 1, byte(ttl>>24), byte(ttl>>16), byte(ttl>>8), byte(ttl), byte(len(rdata)>>8), byte(len(rdata)))
	rr, _, err := dns.UnpackRR(append(b, rdata...), 0)
	if err != nil {
		t.Fatalf("%s: %v", owner, err)
	}
	return strings.ReplaceAll(strings.ReplaceAll(strings.Join(strings.Fields(rr.String()), " "), "."+apexText, ""), apexText, "@")
}

// many is a zone with that many A records.
func many(count int) string {
	var b strings.Builder
	b.Grow(32 * count)
	b.WriteString("$TTL 300\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.53\n")
	for i := range count {
		fmt.Fprintf(&b, "h%d A 10.%d.%d.%d\n", i, i>>16&255, i>>8&255, i&255)
	}
	return b.String()
}
