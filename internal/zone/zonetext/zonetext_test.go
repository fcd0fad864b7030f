package zonetext_test

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"pgregory.net/rapid"

	"github.com/waymark-dns/waymark/internal/testkit"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
	"github.com/waymark-dns/waymark/internal/zone/zonetext"
)

var origin = wire.Name("\x07example\x03org\x00")

// inZones tells whether zonefile takes records of a type.
func inZones(typ uint16) bool { return typ != 0 && typ != wire.TypeOPT && (typ < 128 || typ > 255) }

// back reads RDATA that AppendRDATA wrote.
func back(t interface{ Fatalf(string, ...any) }, typ uint16, text string) []byte {
	var got []byte
	o := zonefile.Options{Origin: origin, Opaque: true}
	err := zonefile.ReadText("text", "@ 60 "+wire.TypeString(typ)+" "+text+"\n", o, func(all []zonefile.Record) error {
		if len(all) != 1 || all[0].Type != typ {
			t.Fatalf("%s %s is read as %d records", wire.TypeString(typ), text, len(all))
		}
		got = bytes.Clone(all[0].RDATA)
		return nil
	})
	if err != nil {
		t.Fatalf("%s %.300s: %v", wire.TypeString(typ), text, err)
	}
	return got
}

// check writes RDATA, absolute and relative, and reads it again.
func check(t interface{ Fatalf(string, ...any) }, typ uint16, rdata []byte) {
	for _, from := range []wire.Name{nil, origin} {
		text := string(zonetext.AppendRDATA(nil, typ, rdata, from))
		if text == "" || strings.ContainsAny(text, "\n\r") {
			t.Fatalf("text %q", text)
		}
		if !inZones(typ) || !wire.CheckRDATA(typ, rdata) {
			continue
		}
		if got := back(t, typ, text); !bytes.Equal(got, rdata) {
			t.Fatalf("%s %.300s:\ngot  %x\nwant %x", wire.TypeString(typ), text, got, rdata)
		}
		if from == nil && !strings.HasPrefix(text, `\#`) {
			byMiekg(t, typ, text, rdata)
		}
	}
}

// byMiekg has miekg/dns read the text of types that it knows whole.
func byMiekg(t interface{ Fatalf(string, ...any) }, typ uint16, text string, rdata []byte) {
	if dns.TypeToRR[typ] == nil || typ == dns.TypeISDN || typ == dns.TypeLOC || typ == dns.TypeNXNAME || typ == dns.TypeAMTRELAY {
		return
	}
	if (typ == dns.TypeURI || typ == dns.TypeCAA) && (len(text) > 250 || strings.Contains(text, `\`)) {
		return // it splits such strings, or unescapes them twice
	}
	rr, err := dns.NewRR("example.org. 60 IN " + wire.TypeString(typ) + " " + text)
	if err != nil {
		if hasTypes(typ) {
			return // of newer types it does not know the names
		}
		t.Fatalf("miekg/dns takes %s %.300s for an error: %v", wire.TypeString(typ), text, err)
	}
	buf := make([]byte, 70_000)
	end, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		t.Fatalf("miekg/dns cannot pack %s %.300s: %v", wire.TypeString(typ), text, err)
	}
	if got := buf[len(origin)+10 : end]; !bytes.Equal(got, rdata) {
		t.Fatalf("%s %.300s:\nmiekg %x\nwant  %x", wire.TypeString(typ), text, got, rdata)
	}
}

// examples is RDATA and what it is as text, relative to example.org.
var examples = []struct {
	name, rrtype, rdata, want string
}{
	{"RFC 1035 3.4.1", "A", "c0000201", "192.0.2.1"},
	{"RFC 5952 4", "AAAA", "20010db8000000000000000000000001", "2001:db8::1"},
	{"IPv4 in IPv6", "AAAA", "00000000000000000000ffffc0000201", "::ffff:192.0.2.1"},
	{"an address cut short", "A", "c00002", `\# 3 C00002`},
	{"an address that is too long", "A", "c000020101", `\# 5 C000020101`},
	{"no octets", "A", "", `\# 0`},
	{"a name below the origin", "NS", "026e73076578616d706c65036f726700", "ns"},
	{"the origin", "NS", "076578616d706c65036f726700", "@"},
	{"the origin in other letters", "NS", "074578616d706c65036f726700", "Example.org."},
	{"a label that ends as the origin", "NS", "0978076578616d706c65036f726700", `x\007example.org.`},
	{"a name elsewhere", "NS", "03636f6d00", "com."},
	{"the root, RFC 7505", "MX", "000000", "0 ."},
	{"escapes in a name, RFC 4343 2.1", "CNAME", "082e4022285c00ff2000", `\.\@\"\(\\\000\255\032.`},
	{"a compressed name", "NS", "c00c", `\# 2 C00C`},
	{"SOA", "SOA", "026e73000468 6f737400 00000001 00000002 00000003 00000004 00000005", "ns. host. 1 2 3 4 5"},
	{"TXT", "TXT", "0161 00 03225c3b 02c3a4", `"a" "" "\"\\;" "\195\164"`},
	{"a word of RFC 3597 as a string", "TXT", "025c23", `"\\#"`},
	{"SRV", "SRV", "0000000513c4027369 00", "0 5 5060 si."},
	{"RRSIG, RFC 4034 3.3", "RRSIG", "0001050300015180 3eefb0f5 3ed9ff70 0a52 076578616d706c65036f726700 010203", ""},
	{"NSEC, RFC 4034 4.3", "NSEC", "04686f7374076578616d706c65036f726700 0006400100000003 041b000000000000000000000000000000000000000000000000000020", "host A MX RRSIG NSEC TYPE1234"},
	{"a bitmap with zeros at its end", "NSEC", "00 00024000", `\# 5 0000024000`},
	{"NSEC3, RFC 5155 3.3", "NSEC3", "0101000c04aabbccdd14174eb2409fe28bcb4887a1836f957f0a8425e27b000722010000000290", "1 1 12 AABBCCDD 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR NS SOA MX RRSIG DNSKEY NSEC3PARAM"},
	{"NSEC3PARAM without salt", "NSEC3PARAM", "0100000000", "1 0 0 -"},
	{"DS, RFC 4034 5.4", "DS", "ec45050102bb", "60485 5 1 02BB"},
	{"DS without a digest", "DS", "ec450501", `\# 4 EC450501`},
	{"CDNSKEY that deletes, RFC 8078 4", "CDNSKEY", "0000030000", "0 3 0 AA=="},
	{"CAA, RFC 8659 4.1.1", "CAA", "0005697373756563612e6578616d706c65", `0 issue "ca.example"`},
	{"CAA with an odd tag", "CAA", "00012d61", `\# 4 00012D61`},
	{"URI, RFC 7553 4.4", "URI", "000a00016674703a2f2f61", `10 1 "ftp://a"`},
	{"NAPTR, RFC 3403 6", "NAPTR", "0064000a0175074532552b736970 00 00", `100 10 "u" "E2U+sip" "" .`},
	{"LOC, RFC 1876 3", "LOC", "00121613 8b35b41a 7f19a0b5 0098967a", ""},
	{"LOC of another version", "LOC", "0112161380000000800000000098 9680", `\# 16 01121613800000008000000000989680`},
	{"APL, RFC 3123 4", "APL", "000115 03c0a820 00011c 84c0a826", ""},
	{"SVCB, RFC 9460 D.2", "SVCB", "001003666f6f07 6578616d706c6503636f6d00 0003 0002 0035", "16 foo.example.com. port=53"},
	{"HTTPS in alias mode", "HTTPS", "000000", "0 ."},
	{"SVCB, a key without a name", "SVCB", "000100 029b 0005 68656c6c6f", `1 . key667="hello"`},
	{"SVCB, keys that do not rise", "SVCB", "000100 00030002 0035 00030002 0035", `\# 15 000100000300020035000300020035`},
	{"HTTPS", "HTTPS", "000100 0001000602683202 6833 0004 0004 c0000201 0006 0010 20010db8000000000000000000000001", "1 . alpn=h2,h3 ipv4hint=192.0.2.1 ipv6hint=2001:db8::1"},
	{"IPSECKEY, RFC 4025 3.2", "IPSECKEY", "0a0102c0000226 0103", "10 1 2 192.0.2.38 AQM="},
	{"AMTRELAY, RFC 8777 4.3.1", "AMTRELAY", "0a81cb00710f", "10 1 1 203.0.113.15"},
	{"HIP, RFC 8005 6", "HIP", "02020001aabb0303727673 00", ""},
	{"EUI48, RFC 7043 3.2", "EUI48", "00005e00532a", "00-00-5E-00-53-2A"},
	{"NID, RFC 6742 2.1", "NID", "000a00144fffff20ee64", "10 0014:4FFF:FF20:EE64"},
	{"DSYNC, RFC 9859 2", "DSYNC", "003b0114e701 6100", "CDS 1 5351 a."},
	{"an unknown type, RFC 3597 5", "TYPE65280", "0a0b", `\# 2 0A0B`},
	{"a type without text of its own", "WKS", "c0000201 06 40", `\# 6 C00002010640`},
}

func TestExamples(t *testing.T) {
	for _, c := range examples {
		t.Run(c.name, func(t *testing.T) {
			typ, err := wire.ParseType(c.rrtype)
			if err != nil {
				t.Fatal(err)
			}
			rdata, err := hex.DecodeString(strings.ReplaceAll(c.rdata, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			got := string(zonetext.AppendRDATA(nil, typ, rdata, origin))
			if got != c.want && c.want != "" {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if c.want == "" {
				t.Log(got)
			}
			check(t, typ, rdata)
		})
	}
}

// RDATA by the layout of package wire is read again to the same octets, whatever
// the octets are.
func TestAllTypes(t *testing.T) {
	for _, typ := range wire.Types() {
		t.Run(typ.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { check(t, typ.Number, drawRDATA(t, typ.Layout)) })
		})
	}
}

// drawName draws a name, some below the origin, some of the octets rare.
func drawName(t *rapid.T) []byte {
	n := []byte{}
	for range rapid.IntRange(0, 3).Draw(t, "labels") {
		label := drawOctets(t, 1, 12)
		n = append(append(n, byte(len(label))), label...)
	}
	if rapid.Bool().Draw(t, "below") {
		return append(n, origin...)
	}
	return append(n, 0)
}

// drawOctets draws octets that are text half of the time.
func drawOctets(t *rapid.T, least, most int) []byte {
	one := rapid.Byte()
	if rapid.Bool().Draw(t, "text") {
		one = rapid.SampledFrom([]byte(`abcXYZ019-_.,=:;\"' @$()#!`))
	}
	return rapid.SliceOfN(one, least, most).Draw(t, "octets")
}

func drawRDATA(t *rapid.T, layout string) []byte {
	var b []byte
	for _, piece := range []byte(layout) {
		switch piece {
		case 'c', 'n':
			b = append(b, drawName(t)...)
		case 's', 't':
			for more := true; more; more = piece == 't' && rapid.Bool().Draw(t, "more") {
				s := drawOctets(t, 0, 20)
				b = append(append(b, byte(len(s))), s...)
			}
		case '*':
			b = append(b, drawOctets(t, 0, 40)...)
		default:
			b = append(b, drawOctets(t, int(piece-'0'), int(piece-'0'))...)
		}
	}
	return b
}

// RDATA of every type that is changed in one octet or cut somewhere is read again
// as well: what looks well formed and is not shows here.
func TestMutations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range examples {
		t.Run(c.name, func(t *testing.T) {
			typ, _ := wire.ParseType(c.rrtype)
			rdata, _ := hex.DecodeString(strings.ReplaceAll(c.rdata, " ", ""))
			for range 200 {
				b := bytes.Clone(rdata)
				for range 1 + r.IntN(3) {
					if len(b) > 0 {
						b[r.IntN(len(b))] = byte(r.Uint32()) >> r.IntN(8)
					}
				}
				check(t, typ, b)
				check(t, typ, append(b[:r.IntN(len(b)+1)], bytes.Repeat([]byte{0}, r.IntN(3))...))
			}
		})
	}
}

// Text that miekg/dns writes, of records with all its types in the common form, has
// the octets that text of ours has; and RDATA in common form is not left to RFC
// 3597.
func TestCommonFormHasText(t *testing.T) {
	for _, line := range []string{
		"a.example. 60 IN MD m.example.", "a.example. 60 IN MINFO a. b.", `a.example. 60 IN HINFO "x" "y z"`, "a.example. 60 IN RP a. b.",
		"a.example. 60 IN AFSDB 1 a.", "a.example. 60 IN X25 311061700956", `a.example. 60 IN ISDN "150862028003217" "004"`, "a.example. 60 IN RT 10 a.",
		"a.example. 60 IN NSAP-PTR a.", "a.example. 60 IN KEY 256 3 13 AQID", "a.example. 60 IN PX 10 a. b.", "a.example. 60 IN GPOS -32.6882 116.8652 10.0",
		"a.example. 60 IN LOC 51 30 12.748 N 0 7 39.611 W 0.00m 0.00m 0.00m 0.00m", "a.example. 60 IN EID AABB", "a.example. 60 IN NIMLOC AABB", "a.example. 60 IN KX 1 a.",
		"a.example. 60 IN CERT PGP 0 0 AQID", "a.example. 60 IN DNAME a.", "a.example. 60 IN APL 1:192.168.32.0/21 !1:192.168.38.0/28 2:FF00::/8 1:0.0.0.0/0",
		"a.example. 60 IN SSHFP 1 1 AA", "a.example. 60 IN IPSECKEY 10 3 2 gw.example. AQNR", "a.example. 60 IN IPSECKEY 10 0 2 . AQNR",
		"a.example. 60 IN DHCID AAIB", "a.example. 60 IN TLSA 3 1 1 AABB", "a.example. 60 IN SMIMEA 3 1 1 AABB",
		"a.example. 60 IN HIP 2 200100107B1A74DF365639CC39F1D578 AwEAAbdx rvs.example. b.", `a.example. 60 IN NINFO "x"`, "a.example. 60 IN RKEY 0 1 2 AQID",
		"a.example. 60 IN TALINK a. b.", "a.example. 60 IN CDS 1 13 2 AABB", "a.example. 60 IN OPENPGPKEY AQID", "a.example. 60 IN CSYNC 66 3 A NS AAAA",
		"a.example. 60 IN ZONEMD 2018031500 1 1 AABB", `a.example. 60 IN SVCB 1 foo.example. mandatory=alpn,port alpn=h2 no-default-alpn port=8443 ech=AQID dohpath=/q{?dns} ohttp`,
		`a.example. 60 IN SPF "v=spf1"`, "a.example. 60 IN UID 7", "a.example. 60 IN GID 7", `a.example. 60 IN UINFO "x"`, "a.example. 60 IN L32 10 10.1.2.0",
		"a.example. 60 IN L64 10 2001:0DB8:1140:1000", "a.example. 60 IN LP 10 l.", "a.example. 60 IN EUI64 00-00-5e-ef-10-00-00-2a", `a.example. 60 IN AVC "x"`,
		`a.example. 60 IN RESINFO "qnamemin" "exterr=15-17"`, "a.example. 60 IN AMTRELAY 10 0 3 relay.example.", "a.example. 60 IN TA 1 8 2 AABB", "a.example. 60 IN DLV 1 8 2 AABB",
		"a.example. 60 IN SIG A 13 3 60 20380119031408 20260101000000 7 example. AQID", "a.example. 60 IN RRSIG NS 13 3 60 20380119031408 20260101000000 7 example. AQID",
	} {
		t.Run(strings.Fields(line)[3], func(t *testing.T) {
			rr, err := dns.NewRR(line)
			if err != nil {
				t.Fatal(err)
			}
			owner, rdata := testkit.Wire(t, rr)
			text := string(zonetext.AppendRecord(nil, &zonetext.Record{Owner: owner, Type: rr.Header().Rrtype, TTL: 60, RDATA: rdata}, nil))
			if strings.Contains(text, `\#`) || !strings.HasPrefix(text, "a.example. 60 IN "+strings.Fields(line)[3]+" ") {
				t.Errorf("text %s", text)
			}
			check(t, rr.Header().Rrtype, rdata)
		})
	}
}

// The longest RDATA there can be is read again.
func TestLongest(t *testing.T) {
	for _, c := range []struct {
		typ  uint16
		head string
	}{
		{wire.TypeTXT, ""}, {65280, ""}, {wire.TypeDNSKEY, "\x01\x00\x03\x0d"}, {256, "\x00\x01\x00\x01"}, {wire.TypeDS, "\x00\x01\x08\x02"},
		{257, "\x00\x05issue"},
	} {
		rdata := []byte(c.head)
		for len(rdata) < 65535 {
			if c.typ == wire.TypeTXT {
				rdata = append(rdata, byte(min(255, 65534-len(rdata))))
			}
			rdata = append(rdata, bytes.Repeat([]byte{0xff}, min(255, 65535-len(rdata)))...)
		}
		check(t, c.typ, rdata)
	}
}

// FuzzRDATA takes any octets as RDATA of any type.
func FuzzRDATA(f *testing.F) {
	for _, c := range examples {
		typ, _ := wire.ParseType(c.rrtype)
		rdata, _ := hex.DecodeString(strings.ReplaceAll(c.rdata, " ", ""))
		f.Add(typ, rdata)
	}
	f.Fuzz(func(t *testing.T, typ uint16, rdata []byte) {
		if len(rdata) <= wire.MaxMessage {
			check(t, typ, rdata)
		}
	})
}

func TestAppendName(t *testing.T) {
	for _, c := range []struct{ name, from, want string }{
		{"a.b.example.org.", "example.org.", "a.b"}, {"example.org.", "example.org.", "@"}, {"org.", "example.org.", "org."},
		{"xexample.org.", "example.org.", "xexample.org."}, {"a.", ".", "a."}, {".", ".", "."}, {".", "example.org.", "."},
		{`\@.example.org.`, "example.org.", `\@`}, {"a.EXAMPLE.org.", "example.org.", "a.EXAMPLE.org."},
	} {
		got := string(zonetext.AppendName(nil, testkit.Name(t, c.name), testkit.Name(t, c.from)))
		if got != c.want {
			t.Errorf("%s from %s: %s, want %s", c.name, c.from, got, c.want)
		}
	}
}

func TestAppendRecord(t *testing.T) {
	for _, c := range []struct {
		ttl  uint32
		want string
	}{{60, "w 60 IN A 192.0.2.1"}, {1<<31 + 5, "w 0 IN A 192.0.2.1"}} { // RFC 2181 §8
		r := zonetext.Record{Owner: testkit.Name(t, "w.example.org."), Type: wire.TypeA, TTL: c.ttl, RDATA: []byte{192, 0, 2, 1}}
		if got := string(zonetext.AppendRecord([]byte("x"), &r, origin)); got != "x"+c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// hasTypes tells whether RDATA names types.
func hasTypes(typ uint16) bool {
	switch typ {
	case dns.TypeNSEC, dns.TypeNSEC3, dns.TypeCSYNC, dns.TypeRRSIG, dns.TypeSIG:
		return true
	}
	return false
}
