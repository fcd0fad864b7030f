package zone_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
)

// maker makes records out of octets: few labels and types, so that they meet.
type maker struct{ in []byte }

func (m *maker) octet() byte {
	if len(m.in) == 0 {
		return 0
	}
	b := m.in[0]
	m.in = m.in[1:]
	return b
}

// name is up to three labels below z., sometimes none, or a name elsewhere.
func (m *maker) name() wire.Name {
	labels := []string{"\x01a", "\x01B", "\x01*", "\x02ns", "\x200p9mhaveqvm6t7vbl5lop2u3t2rp3tom", "\x200000000000000000000000000000000v"}
	c := m.octet()
	if c == 255 {
		return wire.Name("\x05other\x00")
	}
	n := ""
	for range c & 3 {
		n += labels[int(m.octet())%len(labels)]
	}
	return wire.Name(n + "\x01z\x00")
}

// record is one record, mostly with RDATA that is right.
func (m *maker) record() (owner wire.Name, typ uint16, rdata []byte) {
	types := []uint16{wire.TypeA, wire.TypeNS, wire.TypeCNAME, wire.TypeDNAME, wire.TypeMX, wire.TypeTXT, wire.TypeDS, wire.TypeRRSIG,
		wire.TypeNSEC, wire.TypeNSEC3, wire.TypeNSEC3PARAM, wire.TypeSRV, wire.TypeSVCB, wire.TypeHTTPS, wire.TypeSOA, 65280}
	owner = m.name()
	typ = types[int(m.octet())%len(types)]
	switch typ {
	case wire.TypeA:
		rdata = []byte{192, 0, 2, m.octet()}
	case wire.TypeNS, wire.TypeCNAME, wire.TypeDNAME:
		rdata = m.name()
	case wire.TypeMX:
		rdata = append([]byte{0, m.octet()}, m.name()...)
	case wire.TypeSRV:
		rdata = append([]byte{0, 0, 0, 0, 0, m.octet()}, m.name()...)
	case wire.TypeSVCB, wire.TypeHTTPS:
		target := m.name()
		if m.octet()&1 == 0 {
			target = wire.Root
		}
		rdata = append([]byte{0, m.octet() & 1}, target...)
	case wire.TypeRRSIG:
		rdata = append([]byte{0, byte(types[int(m.octet())%len(types)])}, "\x0d\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01z\x00sig"...)
	case wire.TypeNSEC:
		rdata = append([]byte(m.name()), 0, 1, 0x40)
	case wire.TypeNSEC3:
		rdata = append([]byte{1, m.octet() & 1, 0, m.octet() & 1, 0, 20}, make([]byte, 20)...)
	case wire.TypeNSEC3PARAM:
		rdata = []byte{1 + m.octet()&1, 0, 0, m.octet() & 1, 0}
	default:
		n := min(int(m.octet()), len(m.in))
		rdata, m.in = m.in[:n], m.in[n:]
	}
	return owner, typ, rdata
}

// FuzzBuild: whatever records a zone is made of, it takes or refuses them, and
// every question about its names ends in a response that is well formed.
func FuzzBuild(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x01\x01\x00\x01\x01\x01\x00\x01\x02\x02\x00\x01\x00\x03\x01\x02\x01"))
	f.Add([]byte("\x01\x02\x02\x01\x02\x02\x01\x00\x03\x02\x00\x01\x02\x02\x00\x09\x01\x04\x09\x00\x00\x00\x0a\x00\x00"))
	f.Add([]byte("\x02\x00\x01\x01\x01\x01\x03\x01\x00\x01\x00\x03\x02\x01\x00\x02\x01\x00\x01"))
	f.Add([]byte("\x00\x0a\x00\x01\x01\x04\x09\x00\x01\x01\x05\x09\x01\x01\x01\x04\x07\x09"))
	soa := []byte("\x02ns\x01z\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01")
	f.Fuzz(func(t *testing.T, in []byte) {
		m := &maker{in: in}
		apex := wire.Name("\x01z\x00")
		b := zone.NewBuilder(apex, int(m.octet()))
		if err := b.Add(apex, wire.TypeSOA, 60, soa); err != nil {
			t.Fatal(err)
		}
		owners := map[string]bool{".": true}
		for range 40 {
			if len(m.in) == 0 {
				break
			}
			owner, typ, rdata := m.record()
			if err := b.Add(owner, typ, uint32(m.octet()), rdata); err == nil {
				owners[owner.String()] = true
			}
		}
		z, err := b.Zone()
		if err != nil {
			return
		}
		askAll(t, z, owners)
	})
}

// askAll asks for all types at all owners, at their parents and below them.
func askAll(t *testing.T, z *zone.Zone, owners map[string]bool) {
	t.Helper()
	us := testkit.NewAsker(zone.NewTable([]*zone.Zone{z}).Answer)
	for owner := range owners {
		for _, name := range []string{owner, testkit.Parent(owner), "x." + owner, "*." + owner, "x.y." + owner} {
			if owner == "." {
				name = "z."
			}
			for i, typ := range []uint16{dns.TypeA, dns.TypeNS, dns.TypeCNAME, dns.TypeDS, dns.TypeMX, dns.TypeHTTPS, dns.TypeRRSIG, dns.TypeANY} {
				us.Ask(t, testkit.Question{Name: name, Type: typ, DO: i%3 != 0, TCP: i%2 == 0})
			}
		}
	}
}
