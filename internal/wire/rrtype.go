package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// Types that code names. All others stand in the table alone.
const (
	TypeA          = 1
	TypeNS         = 2
	TypeCNAME      = 5
	TypeSOA        = 6
	TypePTR        = 12
	TypeMX         = 15
	TypeTXT        = 16
	TypeAAAA       = 28
	TypeSRV        = 33
	TypeDNAME      = 39
	TypeOPT        = 41
	TypeDS         = 43
	TypeRRSIG      = 46
	TypeNSEC       = 47
	TypeDNSKEY     = 48
	TypeNSEC3      = 50
	TypeNSEC3PARAM = 51
	TypeSVCB       = 64
	TypeHTTPS      = 65
	TypeTSIG       = 250
	TypeIXFR       = 251
	TypeAXFR       = 252
	TypeANY        = 255
)

// Type is what is known about an RR type.
type Type struct {
	Number uint16
	Name   string // mnemonic
	// Layout is the RDATA, piece by piece: a digit is that many octets, c a name
	// that may be compressed (RFC 3597 §4), n a name that may not, s a character
	// string, t one or more of them up to the end, * any octets up to the end.
	Layout string
	Doc    string
}

// types is the registry of IANA ("Resource Record (RR) TYPEs"), by number.
var types = []Type{
	{1, "A", "4", "IPv4 address, RFC 1035"},
	{2, "NS", "c", "authoritative name server, RFC 1035"},
	{3, "MD", "c", "mail destination (obsolete), RFC 1035"},
	{4, "MF", "c", "mail forwarder (obsolete), RFC 1035"},
	{5, "CNAME", "c", "canonical name, RFC 1035"},
	{6, "SOA", "cc884", "start of authority, RFC 1035"},
	{7, "MB", "c", "mailbox, RFC 1035"},
	{8, "MG", "c", "mail group, RFC 1035"},
	{9, "MR", "c", "mail rename, RFC 1035"},
	{10, "NULL", "*", "anything, RFC 1035"},
	{11, "WKS", "5*", "well known services, RFC 1035"},
	{12, "PTR", "c", "name pointer, RFC 1035"},
	{13, "HINFO", "ss", "host information, RFC 1035, 8482"},
	{14, "MINFO", "cc", "mailbox information, RFC 1035"},
	{15, "MX", "2c", "mail exchange, RFC 1035"},
	{16, "TXT", "t", "text, RFC 1035"},
	{17, "RP", "nn", "responsible person, RFC 1183"},
	{18, "AFSDB", "2n", "AFS data base, RFC 1183, 5864"},
	{19, "X25", "s", "X.25 address, RFC 1183"},
	{20, "ISDN", "t", "ISDN address, RFC 1183"},
	{21, "RT", "2n", "route through, RFC 1183"},
	{22, "NSAP", "*", "NSAP address, RFC 1706"},
	{23, "NSAP-PTR", "n", "NSAP pointer, RFC 1706"},
	{24, "SIG", "882n*", "signature, RFC 2536, 2931"},
	{25, "KEY", "4*", "key, RFC 2535"},
	{26, "PX", "2nn", "X.400 mapping, RFC 2163"},
	{27, "GPOS", "sss", "geographical position, RFC 1712"},
	{28, "AAAA", "88", "IPv6 address, RFC 3596"},
	{29, "LOC", "88", "location, RFC 1876"},
	{30, "NXT", "n*", "next name (obsolete), RFC 2535"},
	{31, "EID", "*", "endpoint identifier"},
	{32, "NIMLOC", "*", "Nimrod locator"},
	{33, "SRV", "6n", "service location, RFC 2782"},
	{34, "ATMA", "*", "ATM address"},
	{35, "NAPTR", "4sssn", "naming authority pointer, RFC 3403"},
	{36, "KX", "2n", "key exchanger, RFC 2230"},
	{37, "CERT", "5*", "certificate, RFC 4398"},
	{38, "A6", "1*", "IPv6 address (historic), RFC 6563"},
	{39, "DNAME", "n", "redirection of a subtree, RFC 6672"},
	{40, "SINK", "*", "kitchen sink"},
	{41, "OPT", "*", "EDNS, RFC 6891"},
	{42, "APL", "*", "address prefixes, RFC 3123"},
	{43, "DS", "4*", "delegation signer, RFC 4034"},
	{44, "SSHFP", "2*", "SSH fingerprint, RFC 4255"},
	{45, "IPSECKEY", "3*", "IPsec key, RFC 4025"},
	{46, "RRSIG", "882n*", "signature of an RRset, RFC 4034"},
	{47, "NSEC", "n*", "next secure name, RFC 4034"},
	{48, "DNSKEY", "4*", "public key, RFC 4034"},
	{49, "DHCID", "*", "DHCP identity, RFC 4701"},
	{50, "NSEC3", "4ss*", "hashed next secure name, RFC 5155"},
	{51, "NSEC3PARAM", "4s", "NSEC3 parameters, RFC 5155"},
	{52, "TLSA", "3*", "TLS certificate, RFC 6698"},
	{53, "SMIMEA", "3*", "S/MIME certificate, RFC 8162"},
	{55, "HIP", "4*", "host identity, RFC 8005"},
	{56, "NINFO", "t", "zone status"},
	{57, "RKEY", "4*", "resource key"},
	{58, "TALINK", "nn", "trust anchor link"},
	{59, "CDS", "4*", "child's DS, RFC 7344"},
	{60, "CDNSKEY", "4*", "child's DNSKEY, RFC 7344"},
	{61, "OPENPGPKEY", "*", "OpenPGP key, RFC 7929"},
	{62, "CSYNC", "6*", "child-to-parent synchronisation, RFC 7477"},
	{63, "ZONEMD", "6*", "digest of a zone, RFC 8976"},
	{64, "SVCB", "2n*", "service binding, RFC 9460"},
	{65, "HTTPS", "2n*", "service binding for HTTPS, RFC 9460"},
	{66, "DSYNC", "5n", "endpoint for generalised NOTIFY, RFC 9859"},
	{67, "HHIT", "*", "hierarchical host identity tag, RFC 9886"},
	{68, "BRID", "*", "UAS broadcast remote id, RFC 9886"},
	{99, "SPF", "t", "sender policy (obsolete), RFC 7208"},
	{100, "UINFO", "*", "reserved"},
	{101, "UID", "*", "reserved"},
	{102, "GID", "*", "reserved"},
	{103, "UNSPEC", "*", "reserved"},
	{104, "NID", "28", "ILNP node identifier, RFC 6742"},
	{105, "L32", "24", "ILNP locator, RFC 6742"},
	{106, "L64", "28", "ILNP locator, RFC 6742"},
	{107, "LP", "2n", "ILNP locator pointer, RFC 6742"},
	{108, "EUI48", "6", "EUI-48 address, RFC 7043"},
	{109, "EUI64", "8", "EUI-64 address, RFC 7043"},
	{128, "NXNAME", "*", "no such name, in NSEC bitmaps only, RFC 9824"},
	{249, "TKEY", "n*", "transaction key, RFC 2930"},
	{250, "TSIG", "n*", "transaction signature, RFC 8945"},
	{251, "IXFR", "*", "incremental transfer, RFC 1995"},
	{252, "AXFR", "*", "transfer of a zone, RFC 5936"},
	{253, "MAILB", "*", "mailbox records, RFC 1035"},
	{254, "MAILA", "*", "mail agents (obsolete), RFC 1035"},
	{255, "ANY", "*", "any type, RFC 8482"},
	{256, "URI", "4*", "URI, RFC 7553"},
	{257, "CAA", "1s*", "certification authority authorisation, RFC 8659"},
	{258, "AVC", "t", "application visibility"},
	{259, "DOA", "*", "digital object"},
	{260, "AMTRELAY", "2*", "multicast relay, RFC 8777"},
	{261, "RESINFO", "t", "resolver information, RFC 9606"},
	{262, "WALLET", "t", "public wallet address"},
	{263, "CLA", "t", "BP convergence layer adapter"},
	{264, "IPN", "8", "BP node number"},
	{32768, "TA", "4*", "trust anchor"},
	{32769, "DLV", "4*", "lookaside validation (obsolete), RFC 8749"},
}

// Types is the whole table. The caller does not change it.
func Types() []Type { return types }

// TypeString is the mnemonic of t, or TYPEnnn (RFC 3597 §5).
func TypeString(t uint16) string {
	for i := range types {
		if types[i].Number == t {
			return types[i].Name
		}
	}
	return "TYPE" + strconv.Itoa(int(t))
}

// ParseType reads a mnemonic or TYPEnnn, letters folded.
func ParseType(s string) (uint16, error) {
	for i := range types {
		if strings.EqualFold(types[i].Name, s) {
			return types[i].Number, nil
		}
	}
	if len(s) > 4 && strings.EqualFold(s[:4], "TYPE") {
		if v, err := strconv.ParseUint(s[4:], 10, 16); err == nil {
			return uint16(v), nil
		}
	}
	return 0, fmt.Errorf("reading RR type %q: no such mnemonic, and not TYPE0 to TYPE65535", s)
}

// layout is the RDATA layout of t; unknown types are opaque (RFC 3597).
func layout(t uint16) string {
	for i := range types {
		if types[i].Number == t {
			return types[i].Layout
		}
	}
	return "*"
}

// CheckRDATA tells whether rdata, uncompressed, has the layout of type t: its
// names end, its fixed parts are there, and nothing is left over. Whoever hands
// RDATA to a Builder has checked it.
func CheckRDATA(t uint16, rdata []byte) bool {
	off := 0
	for _, c := range []byte(layout(t)) {
		switch c {
		case '*':
			return off <= len(rdata)
		case 'c', 'n':
			if off = UncompressedEnd(rdata, off); off < 0 {
				return false
			}
		case 's':
			if off >= len(rdata) {
				return false
			}
			off += 1 + int(rdata[off])
		case 't':
			off = stringsEnd(rdata, off)
		default:
			off += int(c - '0')
		}
		if off > len(rdata) {
			return false
		}
	}
	return off == len(rdata)
}

// stringsEnd is the offset behind the character strings that rdata has from off
// on, beyond its end where the last is cut short or there is none.
func stringsEnd(rdata []byte, off int) int {
	if off == len(rdata) {
		return off + 1
	}
	for off < len(rdata) {
		off += 1 + int(rdata[off])
	}
	return off
}

// compressible is where the compressible names of RDATA stand: count names from
// octet skip on. Only types of RFC 1035 may be compressed (RFC 3597 §4).
func compressible(t uint16) (skip, count int) {
	switch t {
	case TypeNS, TypeCNAME, TypePTR, 3, 4, 7, 8, 9:
		return 0, 1
	case TypeSOA, 14:
		return 0, 2
	case TypeMX:
		return 2, 1
	}
	return 0, 0
}

// Target is where the name stands in RDATA of type t that additional-section
// processing looks up (RFC 1035 §3.3, 2782, 9460 §4.1), and whether there is one.
func Target(t uint16) (off int, ok bool) {
	switch t {
	case TypeNS:
		return 0, true
	case TypeMX, TypeSVCB, TypeHTTPS:
		return 2, true
	case TypeSRV:
		return 6, true
	}
	return 0, false
}
