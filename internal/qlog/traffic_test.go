package qlog

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// traffic makes queries as a resolver of some office sees them: names by Zipf's law,
// some hundred clients, answers from a cache and from an upstream.
type traffic struct {
	rng   *rand.Rand
	zipf  *rand.Zipf
	users *rand.Zipf
	names []wire.Name
	hash  []uint64
	now   time.Duration
	gap   time.Duration
}

func newTraffic(t testing.TB, names int, perSecond int) *traffic {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	f := &traffic{rng: rng, zipf: rand.NewZipf(rng, 1.001, 1, uint64(names-1)), users: rand.NewZipf(rng, 1.2, 3, 199), gap: time.Second / time.Duration(perSecond)}
	for i := range names {
		n, err := wire.ParseName(fmt.Sprintf("%s%d.%s.example.", []string{"www", "cdn", "api", "img"}[i%4], i*7919%names, []string{"shop", "news", "video", "mail", "cloud"}[i*31%5]))
		if err != nil {
			t.Fatal(err)
		}
		f.names = append(f.names, n)
		f.hash = append(f.hash, wire.HashName(n))
	}
	return f
}

var onUDP = &serve.Peer{Listener: "udp://127.0.0.1:53"}

// next makes r the next query, answered; out is memory for the response.
func (f *traffic) next(r *serve.Request) {
	n := f.zipf.Uint64()
	f.now += time.Duration(f.rng.ExpFloat64() * float64(f.gap))
	r.Name, r.Hash, r.Type, r.Class = f.names[n], f.hash[n], wire.TypeA, wire.ClassIN
	r.Peer = onUDP
	r.Client = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(f.users.Uint64())}), uint16(1024+f.rng.IntN(64000)))
	r.At = f.now
	r.Note = serve.Note{Source: serve.SourceCache, Rule: 3, Flags: wire.FlagQR | wire.FlagRD | wire.FlagRA}
	out := append(r.Out[:0], make([]byte, wire.HeaderSize)...)
	binary.BigEndian.PutUint16(out[4:], 1)
	out = append(append(out, r.Name...), 0, 1, 0, 1)
	typ, rdata := byte(wire.TypeA), []byte{198, 51, byte(n >> 8), byte(n)}
	if n%5 == 0 {
		r.Type, typ = wire.TypeAAAA, byte(wire.TypeAAAA)
		rdata = append([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0}, byte(n>>16), byte(n>>8), byte(n))
	}
	switch count := 1 + n%3; {
	case n%11 == 0:
		r.Note.Rcode, r.Note.Source, r.Note.Upstream = wire.NXDomain, serve.SourceForward, 1
	default:
		binary.BigEndian.PutUint16(out[6:], uint16(count))
		for i := range count {
			out = append(out, 0xc0, 12, 0, typ, 0, 1, 0, 0, 1, 0, 0, byte(len(rdata)))
			out = append(out, rdata[:len(rdata)-1]...)
			out = append(out, byte(n+i))
		}
	}
	r.Out, r.Note.Size = out, uint16(len(out)+11)
	r.Msg = r.Msg[:min(cap(r.Msg), wire.HeaderSize+len(r.Name)+4+11)]
}

// request is one to be filled by next.
func (f *traffic) request() *serve.Request {
	return &serve.Request{Query: wire.Query{Msg: make([]byte, 512)}}
}
