package match

import (
	"net/netip"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// ClientIP matches clients whose address is in one of the sets.
type ClientIP struct{ Sets []*IPSet }

// Match is part of policy.Matcher.
func (m ClientIP) Match(r *serve.Request) bool { return contains(m.Sets, r.Client.Addr()) }

// RespIP matches responses with an address in the answer that is in one of the
// sets.
type RespIP struct{ Sets []*IPSet }

// Match is part of policy.Matcher.
func (m RespIP) Match(r *serve.Request) bool {
	var resp wire.Response
	if r.Out == nil || !resp.Read(r.Out) {
		return false
	}
	var rec wire.Record
	for resp.Next(&rec) && rec.Section == wire.Answer {
		if a, ok := Address(r.Out, &rec); ok && contains(m.Sets, a) {
			return true
		}
	}
	return false
}

// Address is the address of an A or AAAA record.
func Address(msg []byte, rec *wire.Record) (netip.Addr, bool) {
	if rec.Class != wire.ClassIN || rec.Type != wire.TypeA && rec.Type != wire.TypeAAAA {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice(msg[rec.RDATA:rec.End])
}

// PtrIP matches PTR questions for an address that is in one of the sets.
type PtrIP struct{ Sets []*IPSet }

// Match is part of policy.Matcher.
func (m PtrIP) Match(r *serve.Request) bool {
	if r.Ask.Type != wire.TypePTR {
		return false
	}
	a, ok := ReverseAddr(r.Ask.Name)
	return ok && contains(m.Sets, a)
}

func contains(sets []*IPSet, a netip.Addr) bool {
	for _, s := range sets {
		if s.Contains(a) {
			return true
		}
	}
	return false
}

// Suffixes of reverse names.
var (
	inAddr = []byte("\x07in-addr\x04arpa\x00")
	ip6    = []byte("\x03ip6\x04arpa\x00")
)

// ReverseAddr is the address that a reverse name (RFC 1035 §3.5, RFC 3596 §2.5)
// stands for: the labels nearest to the suffix count, those in front of them do
// not. It is false for other names.
func ReverseAddr(name wire.Name) (netip.Addr, bool) {
	var offs [wire.MaxLabels + 1]uint8
	n := 0
	for off := 0; name[off] != 0; off += 1 + int(name[off]) {
		offs[n] = uint8(off)
		n++
	}
	if n < 2 || !isSuffix(name, int(offs[n-2])) {
		return netip.Addr{}, false
	}
	if wire.EqualFold(name[offs[n-2]:], inAddr) {
		return reverse4(name, offs[:n-2])
	}
	return reverse6(name, offs[:n-2])
}

func isSuffix(name wire.Name, off int) bool {
	return wire.EqualFold(name[off:], inAddr) || wire.EqualFold(name[off:], ip6)
}

func reverse4(name wire.Name, offs []uint8) (netip.Addr, bool) {
	if len(offs) < 4 {
		return netip.Addr{}, false
	}
	var a [4]byte
	for i := range a {
		label := name[offs[len(offs)-1-i]:]
		label = label[1 : 1+label[0]]
		v := 0
		for _, c := range label {
			if v = 10*v + int(c-'0'); c < '0' || c > '9' || v > 255 {
				return netip.Addr{}, false
			}
		}
		a[i] = byte(v)
	}
	return netip.AddrFrom4(a), true
}

func reverse6(name wire.Name, offs []uint8) (netip.Addr, bool) {
	if len(offs) < 32 {
		return netip.Addr{}, false
	}
	var a [16]byte
	for i := range 32 {
		label := name[offs[len(offs)-1-i]:]
		v := -1
		if label[0] == 1 {
			v = hexDigit(label[1])
		}
		if v < 0 {
			return netip.Addr{}, false
		}
		a[i/2] = a[i/2]<<4 | byte(v)
	}
	return netip.AddrFrom16(a), true
}

func hexDigit(c byte) int {
	switch c = wire.FoldByte(c); {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}
