package wire

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// registry is what IANA had assigned by the end of 2025, in ranges without gaps
// ("Resource Record (RR) TYPEs").
var registry = [][2]uint16{{1, 53}, {55, 68}, {99, 109}, {128, 128}, {249, 264}, {32768, 32769}}

func TestTypes(t *testing.T) {
	var want, got []uint16
	for _, r := range registry {
		for n := int(r[0]); n <= int(r[1]); n++ {
			want = append(want, uint16(n))
		}
	}
	names := map[string]bool{}
	for _, typ := range Types() {
		got = append(got, typ.Number)
		if names[typ.Name] || typ.Name != strings.ToUpper(typ.Name) || typ.Doc == "" {
			t.Errorf("row %+v: a mnemonic of its own in upper case, and words", typ)
		}
		names[typ.Name] = true
		if strings.Trim(typ.Layout, "0123456789cnst*") != "" || strings.ContainsAny(typ.Layout[:len(typ.Layout)-1], "t*") {
			t.Errorf("%s has the layout %q", typ.Name, typ.Layout)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table has %d\nthe registry %d", got, want)
	}
}

func TestTypeNames(t *testing.T) {
	for number, want := range dns.TypeToString {
		if number == dns.TypeNone || number == dns.TypeReserved {
			continue // no types
		}
		if got := TypeString(number); got != want {
			t.Errorf("type %d is %s, miekg/dns has %s", number, got, want)
		}
	}
	for n := range 1 << 16 {
		text := TypeString(uint16(n))
		for _, s := range []string{text, strings.ToLower(text), "type" + strconv.Itoa(n)} {
			if got, err := ParseType(s); err != nil || int(got) != n {
				t.Fatalf("type %d is written %s and %s is read as %d, %v", n, text, s, got, err)
			}
		}
	}
	for _, s := range []string{"", "TYPE", "TYPE65536", "TYPE-1", "TYPE1x", "TYPE+1", "B", "AA", " A", "TYPE 1"} {
		if got, err := ParseType(s); err == nil {
			t.Errorf("%q is read as type %d", s, got)
		}
	}
}

// samples are records in presentation format, by type.
var samples = map[string][]string{
	"A":          {"192.0.2.1"},
	"NS":         {"ns.example.org."},
	"MD":         {"md.example.org."},
	"MF":         {"mf.example.org."},
	"CNAME":      {"other.example.org."},
	"SOA":        {"ns.example.org. host.example.org. 1 2 3 4 5", ". . 0 0 0 0 0"},
	"MB":         {"mb.example.org."},
	"MG":         {"mg.example.org."},
	"MR":         {"mr.example.org."},
	"NULL":       {`\# 3 000102`},
	"PTR":        {`a\.b.example.org.`},
	"HINFO":      {`"RFC8482" ""`},
	"MINFO":      {"r.example.org. e.example.org."},
	"MX":         {"10 mx.example.org.", "0 ."},
	"TXT":        {`"one"`, `"one" "two" ""`, `"` + strings.Repeat("x", 255) + `" "y"`},
	"RP":         {"a.example.org. b.example.org."},
	"AFSDB":      {"1 afs.example.org."},
	"X25":        {"311061700956"},
	"ISDN":       {"150862028003217 004"},
	"RT":         {"10 relay.example.org."},
	"NSAP-PTR":   {"foo.example.org."},
	"SIG":        {"A 8 2 3600 20300101000000 20200101000000 1 example.org. AAAA"},
	"KEY":        {"256 3 8 AAAA"},
	"PX":         {"10 a.example.org. b.example.org."},
	"GPOS":       {"-32.6882 116.8652 10.0"},
	"AAAA":       {"2001:db8::1"},
	"LOC":        {"42 21 54 N 71 06 18 W -24m 30m"},
	"NXT":        {"a.example.org. A MX SIG NXT"},
	"EID":        {"0102"},
	"NIMLOC":     {"0102"},
	"SRV":        {"1 2 53 srv.example.org."},
	"NAPTR":      {`100 50 "s" "http" "!^.*$!a!" _http._tcp.example.org.`},
	"KX":         {"10 kx.example.org."},
	"CERT":       {"1 2 8 AAAA"},
	"DNAME":      {"other.example.org."},
	"APL":        {"1:192.0.2.0/24 !2:2001:db8::/32"},
	"DS":         {"1 8 2 " + strings.Repeat("ab", 32)},
	"SSHFP":      {"4 2 " + strings.Repeat("cd", 32)},
	"IPSECKEY":   {"10 1 2 192.0.2.38 AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ==", "10 0 2 . AQ=="},
	"RRSIG":      {"A 8 2 3600 20300101000000 20200101000000 1 example.org. AAAA"},
	"NSEC":       {"b.example.org. A RRSIG NSEC CAA TYPE65535"},
	"DNSKEY":     {"257 3 13 AAAA"},
	"DHCID":      {"AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA="},
	"NSEC3":      {"1 1 12 AABBCCDD 2vptu5timamqttgl4luu9kg21e0aor3s A RRSIG", "1 0 0 - 2vptu5timamqttgl4luu9kg21e0aor3s"},
	"NSEC3PARAM": {"1 0 12 AABBCCDD", "1 0 0 -"},
	"TLSA":       {"3 1 1 " + strings.Repeat("ef", 32)},
	"SMIMEA":     {"3 1 1 " + strings.Repeat("ef", 32)},
	"HIP":        {"2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc5EMzxTs9LBPCIkOFH8cIvM4p rvs.example.org."},
	"NINFO":      {`"state" "of" "zone"`},
	"RKEY":       {"0 3 8 AAAA"},
	"TALINK":     {"a.example.org. b.example.org."},
	"CDS":        {"0 0 0 00"},
	"CDNSKEY":    {"0 3 0 AA=="},
	"OPENPGPKEY": {"AAAA"},
	"CSYNC":      {"66 3 A NS AAAA"},
	"ZONEMD":     {"1 1 1 " + strings.Repeat("12", 48)},
	"SVCB":       {"0 alias.example.org.", `16 svc.example.org. mandatory=alpn alpn="h2,h3" port=8443 ipv4hint=192.0.2.1 key667="hello\210qoo"`},
	"HTTPS":      {"1 . alpn=h3 ech=AEj+DQBE ipv6hint=2001:db8::1", "0 alias.example.org."},
	"SPF":        {`"v=spf1 -all" "more"`},
	"UINFO":      {`"x"`},
	"UID":        {"1"},
	"GID":        {"1"},
	"NID":        {"10 0014:4fff:ff20:ee64"},
	"L32":        {"10 192.0.2.1"},
	"L64":        {"10 2001:0db8:1140:1000"},
	"LP":         {"10 l64.example.org."},
	"EUI48":      {"00-00-5e-00-53-2a"},
	"EUI64":      {"00-00-5e-ef-10-00-00-2a"},
	"URI":        {`10 1 "ftp://ftp.example.org/public"`},
	"CAA":        {`0 issue "ca.example.net"`, `128 tbs ""`},
	"AVC":        {`"app-name:WOLFGANG" "x"`},
	"AMTRELAY":   {"10 0 1 192.0.2.1", "10 1 3 amt.example.org.", "0 0 0 ."},
	"RESINFO":    {`qnamemin exterr=15-17`},
	"TA":         {"1 8 2 " + strings.Repeat("ab", 32)},
	"DLV":        {"1 8 2 " + strings.Repeat("ab", 32)},
	"TYPE65535":  {`\# 3 000102`, `\# 0`},
}

// oracleRDATA is RDATA as miekg/dns packs it, uncompressed.
func oracleRDATA(t *testing.T, rr dns.RR) []byte {
	t.Helper()
	buf := make([]byte, MaxMessage)
	n, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		t.Fatalf("packing %v: %v", rr, err)
	}
	return slices.Clone(buf[UncompressedEnd(buf, 0)+10 : n])
}

// oracleType makes records of one type from the samples.
func oracleType(t *testing.T, name string) []dns.RR {
	t.Helper()
	var all []dns.RR
	for _, text := range samples[name] {
		rr, err := dns.NewRR("a.example.org. 300 IN " + name + " " + text)
		if err != nil {
			t.Fatalf("%s %s: %v", name, text, err)
		}
		all = append(all, rr)
	}
	return all
}

// Every type with a sample: our table takes the RDATA that miekg/dns packs, and
// nothing shorter or longer where its end is fixed; and what the Builder writes,
// miekg/dns reads as the same record.
func TestTypeRoundTrip(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		t.Run(name, func(t *testing.T) {
			records := oracleType(t, name)
			typ := records[0].Header().Rrtype
			if want, err := ParseType(name); err != nil || want != typ {
				t.Fatalf("%s is type %d, %v; miekg/dns has %d", name, want, err, typ)
			}
			var rdata []byte
			for _, rr := range records {
				rd := oracleRDATA(t, rr)
				if !CheckRDATA(typ, rd) {
					t.Errorf("RDATA %x of %v is refused", rd, rr)
				}
				if l := layout(typ); l[len(l)-1] != '*' && CheckRDATA(typ, append(slices.Clone(rd), 1)) {
					t.Errorf("RDATA %x with an octet behind it is taken", rd)
				}
				if len(rd) > 0 && !strings.ContainsAny(layout(typ), "t*") && CheckRDATA(typ, rd[:len(rd)-1]) {
					t.Errorf("RDATA %x without its last octet is taken", rd)
				}
				rdata = append(binary.BigEndian.AppendUint16(rdata, uint16(len(rd))), rd...)
			}
			msg := buildOne(t, Name("\x01a\x07example\x03org\x00"), &RRset{typ, ClassIN, 300, len(records), rdata})
			var m dns.Msg
			if err := m.Unpack(msg); err != nil {
				t.Fatal(err)
			}
			if len(m.Answer) != len(records) {
				t.Fatalf("%d records of %d came out", len(m.Answer), len(records))
			}
			for i, rr := range records {
				got := m.Answer[i]
				got.Header().Rdlength = rr.Header().Rdlength // names may have been compressed
				if *got.Header() != *rr.Header() || string(oracleRDATA(t, got)) != string(oracleRDATA(t, rr)) {
					t.Errorf("came out as %v, want %v", m.Answer[i], rr)
				}
			}
		})
	}
	for number := range dns.TypeToRR {
		switch number {
		case dns.TypeOPT, dns.TypeTKEY, dns.TypeTSIG, dns.TypeANY, dns.TypeIXFR, dns.TypeAXFR, dns.TypeNXNAME:
			continue // not in zones
		}
		if samples[TypeString(number)] == nil {
			t.Errorf("%s has no sample, though miekg/dns knows it", TypeString(number))
		}
	}
}

// buildOne is the response to an A question for owner with set in its answer
// section.
func buildOne(t *testing.T, owner Name, set *RRset) []byte {
	t.Helper()
	var b Builder
	b.Begin(ask(t, string(owner), TypeA), make([]byte, MaxMessage))
	if !b.Add(Answer, owner, set, nil) {
		t.Fatal("the RRset does not fit")
	}
	return b.End(NoError)
}

// ask is a parsed query without EDNS.
func ask(t testing.TB, name string, typ uint16) *Query {
	t.Helper()
	q := new(Query)
	if err := q.Parse(slices.Concat(header(FlagRD, 1), question(name, typ))); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestCheckRDATA(t *testing.T) {
	for _, c := range []struct {
		name, typ, rdata string
		want             bool
	}{
		{"TXT of nothing, 1035 §3.3.14", "TXT", "", false},
		{"TXT of an empty string", "TXT", "\x00", true},
		{"TXT whose second string is cut", "TXT", "\x01a\x02b", false},
		{"TXT whose first string is cut", "TXT", "\x02a", false},
		{"a name with a pointer, 3597 §4", "NS", "\xc0\x0c", false},
		{"a name without end", "NS", "\x01a", false},
		{"a name of 256 octets", "NS", longName(256), false},
		{"a name of 255 octets", "NS", longName(255), true},
		{"two names for one", "NS", "\x00\x00", false},
		{"one name for two", "RP", "\x00", false},
		{"MX without a name", "MX", "\x00\x0a", false},
		{"A of five octets", "A", "12345", false},
		{"NSEC3 whose hash is cut, 5155 §3.2", "NSEC3", "\x01\x00\x00\x00\x00\x14abc", false},
		{"NSEC3 without a hash", "NSEC3", "\x01\x00\x00\x00\x00", false},
		{"NSEC3PARAM whose salt is cut", "NSEC3PARAM", "\x01\x00\x00\x00\x02a", false},
		{"CAA without a tag", "CAA", "\x00", false},
		{"RRSIG up to the signer", "RRSIG", strings.Repeat("x", 18), false},
		{"SIG up to the signer", "SIG", strings.Repeat("x", 17) + "\x00", false},
		{"type without a layout", "TYPE65280", "anything", true},
	} {
		typ, err := ParseType(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		if got := CheckRDATA(typ, []byte(c.rdata)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// The Builder compresses exactly the names that layouts mark as compressible.
func TestCompressible(t *testing.T) {
	for n := range 1 << 16 {
		l := layout(uint16(n))
		skip, count := compressible(uint16(n))
		want := strings.Count(l, "c")
		if count != want {
			t.Errorf("%s has the layout %q, %d names are compressed", TypeString(uint16(n)), l, count)
		}
		if first := strings.IndexByte(l, 'c'); count > 0 && (first > 1 || first == 1 && int(l[0]-'0') != skip || first == 0 && skip != 0) {
			t.Errorf("%s has the layout %q, %d octets are skipped", TypeString(uint16(n)), l, skip)
		}
		if off, ok := Target(uint16(n)); ok {
			rdata := append(make([]byte, off), "\x01a\x00"...)
			if !CheckRDATA(uint16(n), rdata) || CheckRDATA(uint16(n), append(make([]byte, off), "\x41a\x00"...)) {
				t.Errorf("%s has no name at octet %d", TypeString(uint16(n)), off)
			}
		}
	}
}
