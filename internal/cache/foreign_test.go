package cache

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// foreignEntry is an entry as mosdns writes it.
type foreignEntry struct {
	msg            []byte
	end, stored    int64
	cacheEnd       int64
	unknown, wrong bool
}

func (e foreignEntry) append(b []byte) []byte {
	octets := func(number int, data []byte) {
		b = binary.AppendUvarint(b, uint64(number)<<3|2)
		b = append(binary.AppendUvarint(b, uint64(len(data))), data...)
	}
	varint := func(number int, v int64) {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(number)<<3), uint64(v))
	}
	octets(1, []byte("\x00\x00\x01\x03www"))
	octets(2, e.msg)
	varint(3, e.cacheEnd)
	varint(4, e.end)
	if e.stored != 0 {
		varint(5, e.stored)
	}
	if e.unknown {
		varint(77, 5)
		b = append(binary.AppendUvarint(b, 78<<3|5), 1, 2, 3, 4)
		b = append(binary.AppendUvarint(b, 79<<3|1), 1, 2, 3, 4, 5, 6, 7, 8)
	}
	if e.wrong {
		b = append(b, 0x0b) // a group
	}
	return b
}

// foreignBlockOf is a block of entries, unpacked.
func foreignBlockOf(entries ...foreignEntry) []byte {
	var b []byte
	for _, e := range entries {
		one := e.append(nil)
		b = binary.AppendUvarint(append(b, 1<<3|2), uint64(len(one)))
		b = append(b, one...)
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(len(b))), b...)
}

// packed is a dump of blocks under that name.
func packed(t testing.TB, name string, blocks ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Name = name
	for _, b := range blocks {
		if _, err := z.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// foreignMessage is a response of one A record, as miekg/dns packs it.
func foreignMessage(t testing.TB, name string, ttl uint32, edit func(*dns.Msg)) []byte {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, dns.TypeA)
	m.Response, m.Compress = true, true
	m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}, A: []byte{192, 0, 2, 1}}}
	if edit != nil {
		edit(m)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestLoadForeign(t *testing.T) {
	const hour = 3600
	wall := time.Unix(1_700_000_000, 0)
	at := func(seconds int64) int64 { return wall.Unix() + seconds }
	whole := foreignMessage(t, "www.Example.", hour, nil)
	for _, c := range []struct {
		name  string
		entry foreignEntry
		kept  int
		left  time.Duration
	}{
		{"by its end", foreignEntry{msg: whole, end: at(600)}, 1, 600 * time.Second},
		{"by when it was stored", foreignEntry{msg: whole, end: at(600), stored: at(-100)}, 1, (hour - 100) * time.Second},
		{"without either", foreignEntry{msg: whole}, 1, hour * time.Second},
		{"stored in the future", foreignEntry{msg: whole, stored: at(1000)}, 1, hour * time.Second},
		{"an end that cannot be", foreignEntry{msg: whole, end: math.MaxInt64}, 1, hour * time.Second},
		{"past its time, but lazy", foreignEntry{msg: whole, end: at(-60)}, 1, -60 * time.Second},
		{"beyond lazy", foreignEntry{msg: whole, end: at(-hour)}, 0, 0},
		{"before all time", foreignEntry{msg: whole, stored: math.MinInt64 + 1, end: math.MinInt64}, 1, hour * time.Second},
		{"unknown fields", foreignEntry{msg: whole, end: at(600), unknown: true}, 1, 600 * time.Second},
		{"NXDOMAIN without SOA", foreignEntry{end: at(10), msg: foreignMessage(t, "www.example.", 1, func(m *dns.Msg) { m.Answer, m.Rcode = nil, dns.RcodeNameError })}, 1, 10 * time.Second},
		{"SERVFAIL", foreignEntry{end: at(10), msg: foreignMessage(t, "www.example.", 1, func(m *dns.Msg) { m.Answer, m.Rcode = nil, dns.RcodeServerFailure })}, 0, 0},
		{"cut message", foreignEntry{end: at(10), msg: whole[:len(whole)-3]}, 0, 0},
		{"no message", foreignEntry{end: at(10)}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := open(t, Config{Size: MinSize, Loose: true, MaxStale: 30 * time.Minute})
			dump := packed(t, foreignName, foreignBlockOf(c.entry))
			n, err := cache.LoadAny(bytes.NewReader(dump), time.Minute, wall)
			if err != nil || n != c.kept {
				t.Fatalf("%d entries: %v", n, err)
			}
			found := 0
			cache.Each(time.Minute, func(e Entry) bool {
				found++
				if e.Left != c.left {
					t.Errorf("%s has %v left, want %v", e.Name, e.Left, c.left)
				}
				return true
			})
			if found != c.kept {
				t.Errorf("%d in the cache", found)
			}
		})
	}
}

// Where anything is wrong with the dump as such, nothing is loaded.
func TestLoadForeignWrong(t *testing.T) {
	wall := time.Unix(1_700_000_000, 0)
	good := foreignBlockOf(foreignEntry{msg: foreignMessage(t, "www.example.", 60, nil)})
	whole := packed(t, foreignName, good)
	for _, c := range []struct {
		name string
		dump []byte
		want error
	}{
		{"another name", packed(t, "mosdns_cache_v1", good), ErrNoDump},
		{"cut block", packed(t, foreignName, good, good[:len(good)-2]), ErrShort},
		{"cut head", packed(t, foreignName, good, good[:5]), ErrShort},
		{"huge block", packed(t, foreignName, good, binary.BigEndian.AppendUint64(nil, foreignBlock+1)), ErrEntry},
		{"a group", packed(t, foreignName, good, foreignBlockOf(foreignEntry{wrong: true})), ErrEntry},
		{"octets too many", packed(t, foreignName, good, append(binary.BigEndian.AppendUint64(nil, 3), 1<<3|2, 200, 1)), ErrEntry},
		{"a number as entry", packed(t, foreignName, good, append(binary.BigEndian.AppendUint64(nil, 2), 1<<3, 1)), ErrEntry},
		{"cut gzip", whole[:len(whole)-9], io.ErrUnexpectedEOF},
		{"wrong checksum", append(bytes.Clone(whole[:len(whole)-8]), make([]byte, 8)...), gzip.ErrChecksum},
		{"no dump", []byte("something else"), ErrShort},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := open(t, Config{Size: MinSize, Loose: true})
			n, err := cache.LoadAny(bytes.NewReader(c.dump), 0, wall)
			if err == nil || n != 0 || cache.Stats().Entries != 0 {
				t.Fatalf("%d entries: %v", n, err)
			}
			if !errors.Is(err, c.want) && c.want != io.ErrUnexpectedEOF {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	cache := open(t, Config{Size: MinSize})
	if n, err := cache.LoadAny(bytes.NewReader(packed(t, foreignName)), 0, wall); n != 0 || err != nil {
		t.Errorf("an empty dump: %d, %v", n, err)
	}
}

// FuzzLoadForeign: any text is loaded or told, and what is loaded can be looked at.
func FuzzLoadForeign(f *testing.F) {
	f.Add(foreignBlockOf(foreignEntry{msg: foreignMessage(f, "www.example.", 60, nil), end: 1_700_000_600, unknown: true}))
	f.Add(foreignBlockOf(foreignEntry{msg: foreignMessage(f, "www.example.", 60, nil), stored: -1}, foreignEntry{}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, blocks []byte) {
		cache := open(t, Config{Size: MinSize, Loose: true, MaxStale: time.Hour})
		n, err := cache.LoadAny(bytes.NewReader(packed(t, foreignName, blocks)), 0, time.Unix(1_700_000_000, 0))
		if err != nil && n != 0 {
			t.Fatalf("%d entries and %v", n, err)
		}
		found := 0
		cache.Each(0, func(Entry) bool { found++; return true })
		if found > n {
			t.Fatalf("%d entries of %d", found, n)
		}
	})
}
