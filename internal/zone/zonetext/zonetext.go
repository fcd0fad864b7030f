// Package zonetext writes records and whole zones in presentation format
// (RFC 1035 §5). It is the other half of package zonefile: what it writes,
// zonefile reads back to the same octets. It reads no text, keeps no zone and
// knows no file: package store exports its zones through it, and whoever shows
// RDATA to people calls it.
//
// A table names the fields of each type's RDATA. RDATA of other types, and such
// as does not fit its fields, is written in the form for unknown types (RFC 3597
// §5), so there is text for every octet sequence. Some of that is no RDATA of its
// type by any RFC: zonefile.Options.Opaque takes it back all the same.
package zonetext

import (
	"bytes"
	"strconv"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Record is one resource record of class IN. Nothing of it is kept.
type Record struct {
	Owner wire.Name // absolute, well formed
	Type  uint16
	TTL   uint32 // seconds; 2^31 and more count as 0 (RFC 2181 §8)
	RDATA []byte // uncompressed; it need not be well formed
}

// AppendRecord appends a record as one line without its end: owner, TTL, class,
// type and RDATA, one blank between. Names are as AppendName has them.
func AppendRecord(dst []byte, r *Record, origin wire.Name) []byte {
	dst = append(AppendName(dst, r.Owner, origin), ' ')
	dst = strconv.AppendUint(dst, uint64(effectiveTTL(r.TTL)), 10)
	dst = append(append(append(dst, " IN "...), wire.TypeString(r.Type)...), ' ')
	return AppendRDATA(dst, r.Type, r.RDATA, origin)
}

// effectiveTTL takes a TTL with the top bit set as 0 (RFC 2181 §8).
func effectiveTTL(ttl uint32) uint32 {
	if ttl >= 1<<31 {
		return 0
	}
	return ttl
}

// AppendRDATA appends RDATA of a type in presentation format, on one line. Names
// are as AppendName has them. Any octets may be given; text is never empty.
func AppendRDATA(dst []byte, typ uint16, rdata []byte, origin wire.Name) []byte {
	t := text{dst: dst, start: len(dst), rest: rdata, origin: origin}
	if t.fields(layoutOf(typ)) && len(t.rest) == 0 && len(t.dst) > t.start {
		return t.dst
	}
	return appendGeneric(dst, rdata)
}

// appendGeneric appends RDATA in the form for unknown types (RFC 3597 §5).
func appendGeneric(dst, rdata []byte) []byte {
	dst = append(dst, `\# `...)
	dst = strconv.AppendInt(dst, int64(len(rdata)), 10)
	if len(rdata) == 0 {
		return dst
	}
	return appendHex(append(dst, ' '), rdata)
}

const hexDigits = "0123456789ABCDEF"

func appendHex(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// AppendName appends a name in presentation format: absolute, or, where it is
// below origin, relative to it, and @ where it is the origin. A name whose letters
// are not in the case of the origin's stays absolute: they would be lost. The
// origin may be nil or the root: then all names are absolute.
func AppendName(dst []byte, n, origin wire.Name) []byte {
	if len(n) <= 1 {
		return append(dst, '.')
	}
	end := below(n, origin)
	if end == 0 {
		return append(dst, '@')
	}
	for i := 0; i < end && n[i] != 0; {
		next := min(i+1+int(n[i]), end)
		if i > 0 {
			dst = append(dst, '.')
		}
		dst = appendLabel(dst, n[i+1:next])
		i = next
	}
	if end == len(n) {
		dst = append(dst, '.')
	}
	return dst
}

// below is how many octets of n stand in front of origin; all where n is not
// below it.
func below(n, origin wire.Name) int {
	cut := len(n) - len(origin)
	if len(origin) <= 1 || cut < 0 || !bytes.Equal(n[cut:], origin) {
		return len(n)
	}
	for i := 0; i <= cut; i += int(n[i]) + 1 {
		if i == cut {
			return cut
		}
	}
	return len(n) // the octets of origin begin within a label
}

// Kinds of octets in names and in strings.
const (
	plain   = iota
	special // gets a backslash
	coded   // is written \DDD
)

// nameClass is how octets of a label are written. A semicolon is coded, for some
// readers take it for a comment behind a backslash too.
var nameClass = classes(`.\"()@$`, ";", '!')

// stringClass is how octets between quotes are written.
var stringClass = classes(`\"`, "", ' ')

// classes makes a table: octets of escaped get a backslash, those of codes, below
// first and above the last of ASCII that prints are coded.
func classes(escaped, codes string, first byte) (table [256]uint8) {
	for c := range table {
		if c < int(first) || c > '~' {
			table[c] = coded
		}
	}
	for i := range len(escaped) {
		table[escaped[i]] = special
	}
	for i := range len(codes) {
		table[codes[i]] = coded
	}
	return table
}

func appendLabel(dst, label []byte) []byte { return appendEscaped(dst, label, &nameClass) }

func appendEscaped(dst, b []byte, class *[256]uint8) []byte {
	for _, c := range b {
		switch class[c] {
		case plain:
			dst = append(dst, c)
		case special:
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, '\\', '0'+c/100, '0'+c/10%10, '0'+c%10)
		}
	}
	return dst
}

// appendQuoted appends octets as a string between quotes.
func appendQuoted(dst, b []byte) []byte {
	return append(appendEscaped(append(dst, '"'), b, &stringClass), '"')
}
