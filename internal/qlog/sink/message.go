package sink

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/wire"
)

// The messages here stand in for those that were on the wire, of which a row has only
// the facts.

const (
	flagDO  = 1 << 15
	udpSize = 1232 // that OPT records of such messages tell
)

// Where counts stand in a header (RFC 1035 §4.1.1).
const ancount, arcount = 6, 10

var headerFlags = map[string]uint16{
	"AA": wire.FlagAA, "TC": wire.FlagTC, "RD": wire.FlagRD, "RA": wire.FlagRA, "AD": wire.FlagAD, "CD": wire.FlagCD,
}

// flags reads the flags of a row.
func flags(row *qlog.Row) (header uint16, do bool) {
	for word := range strings.FieldsSeq(row.Flags) {
		header |= headerFlags[word]
		do = do || word == "DO"
	}
	return header, do
}

// appendQuery appends the client's query: of the flags, RD and CD are its own.
func appendQuery(dst []byte, row *qlog.Row) []byte {
	header, do := flags(row)
	at := len(dst)
	dst = appendHeader(dst, header&(wire.FlagRD|wire.FlagCD), row)
	var ecs []byte
	if subnet, err := netip.ParsePrefix(row.ECS); err == nil {
		ecs = appendSubnet(nil, subnet)
	}
	if do || ecs != nil {
		dst = appendOPT(dst, 0, do, ecs)
		count(dst[at:], arcount)
	}
	return dst
}

// appendResponse appends the response: question, addresses, and an OPT record where
// there is something to tell in it.
func appendResponse(dst []byte, row *qlog.Row) []byte {
	header, do := flags(row)
	rcode := rcodeOf(row.Rcode)
	at := len(dst)
	dst = appendHeader(dst, wire.FlagQR|header|rcode&15, row)
	for text := range strings.FieldsSeq(row.Answers) {
		a, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		dst = appendAddress(dst, a)
		count(dst[at:], ancount)
	}
	var ede []byte
	if code, err := strconv.ParseUint(row.EDE, 10, 16); err == nil {
		ede = binary.BigEndian.AppendUint16([]byte{0, wire.OptEDE, 0, 2}, uint16(code))
	}
	if do || ede != nil || rcode > 15 {
		dst = appendOPT(dst, rcode, do, ede)
		count(dst[at:], arcount)
	}
	return dst
}

// count adds one to a count in the header of msg.
func count(msg []byte, at int) {
	binary.BigEndian.PutUint16(msg[at:], binary.BigEndian.Uint16(msg[at:])+1)
}

// appendHeader appends a header and the question. A name that cannot be read is the
// root's.
func appendHeader(dst []byte, flags uint16, row *qlog.Row) []byte {
	name, err := wire.ParseName(row.Name)
	if err != nil {
		name = wire.Name{0}
	}
	typ, _ := wire.ParseType(row.Type) // 0 is no type
	dst = binary.BigEndian.AppendUint16(append(dst, 0, 0), flags)
	dst = append(append(dst, 0, 1, 0, 0, 0, 0, 0, 0), name...)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(dst, typ), classOf(row.Class))
}

// appendAddress appends an A or AAAA record. Its owner is the question's name: a row
// does not tell which aliases were between.
func appendAddress(dst []byte, a netip.Addr) []byte {
	typ := byte(wire.TypeA)
	if a.Is6() {
		typ = wire.TypeAAAA
	}
	octets := a.AsSlice()
	dst = append(dst, 0xc0, wire.HeaderSize, 0, typ, 0, wire.ClassIN, 0, 0, 0, 0, 0, byte(len(octets)))
	return append(dst, octets...)
}

// appendOPT appends an OPT record (RFC 6891 §6.1.2).
func appendOPT(dst []byte, rcode uint16, do bool, options []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint16(append(dst, 0, 0, wire.TypeOPT), udpSize)
	flags := uint16(0)
	if do {
		flags = flagDO
	}
	dst = be.AppendUint16(append(dst, byte(rcode>>4), 0), flags)
	return append(be.AppendUint16(dst, uint16(len(options))), options...)
}

// appendSubnet appends an ECS option (RFC 7871 §6).
func appendSubnet(dst []byte, p netip.Prefix) []byte {
	family := byte(1)
	if p.Addr().Is6() {
		family = 2
	}
	octets := p.Masked().Addr().AsSlice()[:(p.Bits()+7)/8]
	dst = append(dst, 0, wire.OptECS, 0, byte(4+len(octets)), 0, family, byte(p.Bits()), 0)
	return append(dst, octets...)
}

func classOf(text string) uint16 {
	switch text {
	case "CH":
		return wire.ClassCH
	case "ANY":
		return wire.ClassANY
	}
	if n, err := strconv.ParseUint(strings.TrimPrefix(text, "CLASS"), 10, 16); err == nil {
		return uint16(n)
	}
	return wire.ClassIN
}

// rcodeOf is the number of a mnemonic, also of RCODEn.
func rcodeOf(text string) uint16 {
	for n := range wire.BadCookie + 1 {
		if n.String() == text {
			return uint16(n)
		}
	}
	n, _ := strconv.ParseUint(strings.TrimPrefix(text, "RCODE"), 10, 12) // 0 is as good as any other
	return uint16(n)
}
