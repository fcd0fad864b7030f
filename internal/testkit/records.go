// Package testkit holds what tests of several packages share: zone text turned
// into records, a signer, queries put to an answering function without a socket,
// and responses as text. Nothing but tests imports it, and it knows no engine:
// a test hands it the function that answers.
package testkit

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Records reads text in presentation format (RFC 1035 §5.1). Names without a
// final dot end in origin; a record without a TTL has 3600.
func Records(t testing.TB, origin, text string) []dns.RR {
	t.Helper()
	p := dns.NewZoneParser(strings.NewReader(text), origin, "")
	p.SetDefaultTTL(3600)
	var all []dns.RR
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		all = append(all, rr)
	}
	if err := p.Err(); err != nil {
		t.Fatalf("reading records of %s: %v", origin, err)
	}
	return all
}

// Apex is the owner of the first SOA record, as a name in presentation format.
func Apex(t testing.TB, records []dns.RR) string {
	t.Helper()
	for _, rr := range records {
		if rr.Header().Rrtype == dns.TypeSOA {
			return rr.Header().Name
		}
	}
	t.Fatal("no SOA record among the records")
	return ""
}

// Text is the records as a master file.
func Text(records []dns.RR) string {
	var b strings.Builder
	for _, rr := range records {
		// Unknown types come with the class as RFC 3597 has it, which not every
		// server reads.
		b.WriteString(strings.Replace(rr.String(), "\tCLASS1\t", "\tIN\t", 1))
		b.WriteByte('\n')
	}
	return b.String()
}

// Name is a name in wire format.
func Name(t testing.TB, text string) wire.Name {
	t.Helper()
	n, err := wire.ParseName(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Adder takes records in wire format, as a builder of zones does.
type Adder interface {
	Add(owner wire.Name, typ uint16, ttl uint32, rdata []byte) error
}

// Fill adds all records.
func Fill(t testing.TB, to Adder, records []dns.RR) {
	t.Helper()
	for _, rr := range records {
		owner, rdata := Wire(t, rr)
		h := rr.Header()
		if err := to.Add(owner, h.Rrtype, h.Ttl, rdata); err != nil {
			t.Fatalf("%s: %v", rr, err)
		}
	}
}

// Wire is owner and RDATA of a record in wire format, names uncompressed.
func Wire(t testing.TB, rr dns.RR) (owner wire.Name, rdata []byte) {
	t.Helper()
	buf := make([]byte, dns.Len(rr)+wire.MaxName)
	n, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		t.Fatalf("packing %s: %v", rr, err)
	}
	end := wire.SkipName(buf, 0)
	return buf[:end], buf[end+10 : n]
}
