package zonefile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchZone is a zone of n records of mixed types, in the short form and in
// that which servers write.
func benchZone(n int) string {
	var b strings.Builder
	b.WriteString("$ORIGIN example.org.\n$TTL 3600\n@ SOA ns1 hm 1 2 3 4 5\n@ NS ns1\nns1 A 192.0.2.1\n")
	signature := strings.Repeat("AbCd", 21) + "Ab=="
	for i := 3; i < n; {
		switch h := fmt.Sprintf("host%d", i); i % 5 {
		case 0:
			fmt.Fprintf(&b, "%s IN A 10.%d.%d.%d\n", h, i>>16&255, i>>8&255, i&255)
			i++
		case 1:
			fmt.Fprintf(&b, "%s.example.org. 3600 IN AAAA 2001:db8::%x:%x\n%s MX 10 mail%d\n", h, i>>16, i&0xffff, h, i)
			i += 2
		case 2:
			fmt.Fprintf(&b, "sub%d\tIN\tNS\tns1.sub%d\n\tIN NS ns.example.net.\n", i, i)
			i += 2
		case 3:
			fmt.Fprintf(&b, "%s TXT \"v=spf1 ip4:192.0.2.1 -all\"\nwww%d CNAME %s\n", h, i, h)
			i += 2
		default:
			fmt.Fprintf(&b, "%s.example.org. 3600 IN RRSIG A 13 3 3600 20261230000000 20261130000000 12345 example.org. %s\n", h, signature)
			fmt.Fprintf(&b, "%s.example.org. 3600 IN NSEC host%d.example.org. A AAAA RRSIG NSEC\n", h, i+1)
			i += 2
		}
	}
	return b.String()
}

func BenchmarkRead(b *testing.B) {
	const records = 100_000
	path := filepath.Join(b.TempDir(), "zone")
	text := benchZone(records)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := Read(path, Options{Workers: workers}, func([]Record) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestReadKeepsGarbageSmall reads a zone with far fewer allocations than it has
// records.
func TestReadKeepsGarbageSmall(t *testing.T) {
	const records = 20_000
	path := filepath.Join(writeFiles(t, map[string]string{"zone": benchZone(records)}), "zone")
	allocs := testing.AllocsPerRun(3, func() {
		if err := Read(path, Options{Workers: 1}, func([]Record) error { return nil }); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > records/100 {
		t.Errorf("%v allocations for %d records", allocs, records)
	}
}
