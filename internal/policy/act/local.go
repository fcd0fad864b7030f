package act

import (
	"encoding/binary"
	"fmt"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
)

// Local answers what must not leave the site: special-use names (RFC 6761) and
// the reverse of private addresses (RFC 6303), unless a group of upstreams is for
// them.
type Local struct {
	Table  *zone.Table
	Routes *Routes
}

// Do is part of policy.Step.
func (a *Local) Do(r *serve.Request) policy.Next {
	if a.Table.Find(r.Ask.Name, r.Ask.Labels, 0) == nil || a.Routes.named(r) {
		return policy.Go
	}
	rcode, found := a.Table.Answer(r)
	if !found {
		return policy.Go
	}
	r.Note.Source, r.Note.Zone = serve.SourceLocal, 0
	r.Finish(rcode)
	return policy.Stop
}

// localZones is the names that are answered here, each with all below, and where
// it is written that they are.
func localZones() []struct{ name, rfc string } {
	zones := []struct{ name, rfc string }{
		{"localhost.", "6761 §6.3"}, {"test.", "6761 §6.2"}, {"invalid.", "6761 §6.4"},
		{"local.", "6762 §22.1"}, {"onion.", "7686 §2"}, {"alt.", "9476 §3"},
		{"home.arpa.", "8375 §4"}, {"resolver.arpa.", "9462 §6.4"},
		{"0.in-addr.arpa.", "6303 §4.2"}, {"127.in-addr.arpa.", "6303 §4.2"},
		{"10.in-addr.arpa.", "6303 §4.1"}, {"168.192.in-addr.arpa.", "6303 §4.1"},
		{"254.169.in-addr.arpa.", "6303 §4.2"}, {"2.0.192.in-addr.arpa.", "6303 §4.2"},
		{"100.51.198.in-addr.arpa.", "6303 §4.2"}, {"113.0.203.in-addr.arpa.", "6303 §4.2"},
		{"255.255.255.255.in-addr.arpa.", "6303 §4.2"},
		{nibbles(0), "6303 §4.3"}, {nibbles(1), "6303 §4.3"},
		{"d.f.ip6.arpa.", "6303 §4.4"},
		{"8.e.f.ip6.arpa.", "6303 §4.5"}, {"9.e.f.ip6.arpa.", "6303 §4.5"},
		{"a.e.f.ip6.arpa.", "6303 §4.5"}, {"b.e.f.ip6.arpa.", "6303 §4.5"},
		{"8.b.d.0.1.0.0.2.ip6.arpa.", "6303 §4.6"},
	}
	add := func(rfc, format string, first, last int) {
		for n := first; n <= last; n++ {
			zones = append(zones, struct{ name, rfc string }{fmt.Sprintf(format, n), rfc})
		}
	}
	add("6303 §4.1", "%d.172.in-addr.arpa.", 16, 31)
	add("7793 §4", "%d.100.in-addr.arpa.", 64, 127)
	return zones
}

// nibbles is the reverse name of ::last.
func nibbles(last int) string {
	name := fmt.Sprintf("%d.", last)
	for range 31 {
		name += "0."
	}
	return name + "ip6.arpa."
}

// NewLocal makes the zones. With test the names below test. are answered here as
// well: it is left out where the upstreams are on the site, which may have them.
func NewLocal(routes *Routes, test bool) (*Local, error) {
	var zones []*zone.Zone
	for _, l := range localZones() {
		if l.name == "test." && !test {
			continue
		}
		z, err := localZone(l.name)
		if err != nil {
			return nil, fmt.Errorf("making local zone %s: %w", l.name, err)
		}
		zones = append(zones, z)
	}
	return &Local{Table: zone.NewTable(zones), Routes: routes}, nil
}

// localTTL is the TTL of RFC 6303 §3, three hours.
const localTTL = 10800

// localZone makes one zone: SOA and NS as RFC 6303 §3 has them, and the addresses
// and the name of localhost.
func localZone(text string) (*zone.Zone, error) {
	apex, err := wire.ParseName(text)
	if err != nil {
		return nil, err
	}
	b := zone.NewBuilder(apex, 4)
	nobody := wire.Name("\x06nobody\x07invalid\x00")
	soa := append(append([]byte{}, apex...), nobody...)
	for _, n := range []uint32{1, 3600, 1200, 604800, localTTL} {
		soa = binary.BigEndian.AppendUint32(soa, n)
	}
	type record struct {
		owner wire.Name
		typ   uint16
		rdata []byte
	}
	records := []record{{apex, wire.TypeSOA, soa}, {apex, wire.TypeNS, apex}}
	loopback6 := make([]byte, 16)
	loopback6[15] = 1
	switch text {
	case "localhost.":
		for _, owner := range []wire.Name{apex, append(wire.Name("\x01*"), apex...)} {
			records = append(records, record{owner, wire.TypeA, []byte{127, 0, 0, 1}}, record{owner, wire.TypeAAAA, loopback6})
		}
	case "127.in-addr.arpa.":
		records = append(records, record{append(wire.Name("\x011\x010\x010"), apex...), wire.TypePTR, wire.Name("\x09localhost\x00")})
	case nibbles(1):
		records = append(records, record{apex, wire.TypePTR, wire.Name("\x09localhost\x00")})
	}
	for _, r := range records {
		if err := b.Add(r.owner, r.typ, localTTL, r.rdata); err != nil {
			return nil, err
		}
	}
	return b.Zone()
}
