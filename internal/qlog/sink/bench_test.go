package sink

import (
	"testing"
)

// BenchmarkEncode is what a row costs whoever calls Put.
func BenchmarkEncode(b *testing.B) {
	row := rows(0, 1)[0]
	for name, encode := range map[string]encoder{
		"json":   appendLine,
		"syslog": (&syslog{tail: []byte(" ns1 waymark 7 query - "), count: true}).encode,
		"dnstap": (&tap{identity: []byte("ns1"), version: []byte("waymark")}).encode,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = encode(dst[:0], &row)
			}
			b.SetBytes(int64(len(dst)))
		})
	}
}
