package act

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// RFC 7871 §6.
func TestECSOption(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"IPv4 /24", "0001 18 00 c00002", "192.0.2.0/24 0"},
		{"IPv4 /32", "0001 20 00 c0000201", "192.0.2.1/32 0"},
		{"IPv4 /20, a part of an octet", "0001 14 00 c00010", "192.0.16.0/20 0"},
		{"IPv4 with a scope", "0001 18 18 c00002", "192.0.2.0/24 24"},
		{"IPv4 with a longer scope", "0001 18 20 c00002", "192.0.2.0/24 32"},
		{"IPv4 /0", "0001 00 00", "0.0.0.0/0 0"},
		{"IPv6 /56", "0002 38 00 20010db8 010203", "2001:db8:102:300::/56 0"},
		{"IPv6 /128", "0002 80 80 20010db8 00000000 00000000 00000001", "2001:db8::1/128 128"},
		{"IPv6 /0", "0002 00 00", "::/0 0"},
		{"empty", "", ""},
		{"no prefix lengths", "0001", ""},
		{"cut", "0001 18", ""},
		{"family 0", "0000 00 00", ""},
		{"family 3", "0003 18 00 c00002", ""},
		{"too few octets", "0001 18 00 c000", ""},
		{"no octets", "0001 18 00", ""},
		{"too many octets", "0001 18 00 c0000200", ""},
		{"octets for /0", "0001 00 00 00", ""},
		{"bits beyond the prefix", "0001 17 00 c00003", ""},
		{"IPv4 /33", "0001 21 00 c000020100", ""},
		{"IPv4 scope 33", "0001 18 21 c00002", ""},
		{"IPv6 /129", "0002 81 00 20010db8000000000000000000000001 00", ""},
		{"IPv6 scope 129", "0002 20 81 20010db8", ""},
	} {
		p, scope, ok := readSubnet(unhex(t, c.data))
		if !ok {
			if c.want != "" || p.IsValid() {
				t.Errorf("%s: malformed, %v; want %s", c.name, p, c.want)
			}
			continue
		}
		want, err := netip.ParsePrefix(strings.Split(c.want+" ", " ")[0])
		if err != nil || p != want || c.want != p.String()+" "+strconv.Itoa(scope) {
			t.Errorf("%s: %v, scope %d; want %s", c.name, p, scope, c.want)
		}
	}
}

// What is passed on is cut (RFC 7871 §11.1).
func TestECSClient(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"IPv4 /32", "0001 20 00 c0000281", "192.0.2.0/24"},
		{"IPv4 /25", "0001 19 00 c0000280", "192.0.2.0/24"},
		{"IPv4 /24", "0001 18 00 c00002", "192.0.2.0/24"},
		{"IPv4 /16", "0001 10 00 c000", "192.0.0.0/16"},
		{"IPv4 /0", "0001 00 00", "0.0.0.0/0"},
		{"IPv6 /128", "0002 80 00 20010db8 01020304 00000000 00000001", "2001:db8:102:300::/56"},
		{"IPv6 /48", "0002 30 00 20010db8 0102", "2001:db8:102::/48"},
		{"IPv6 /0", "0002 00 00", "::/0"},
		{"malformed", "0001 18 00 c000", "invalid Prefix"},
	} {
		r := received(t, "192.0.2.1", overUDP, query(t, "www.example.", dns.TypeA, option(wire.OptECS, string(unhex(t, c.data)))))
		if got := clientSubnet(r).String(); got != c.want {
			t.Errorf("%s: %s is passed on, want %s", c.name, got, c.want)
		}
	}
	r := received(t, "192.0.2.1", overUDP, query(t, "www.example.", dns.TypeA, edns))
	if p := clientSubnet(r); p.IsValid() {
		t.Errorf("%s is passed on for a client that gives none", p)
	}
}

// answerTo is a response with these octets as options.
func answerTo(t testing.TB, options string) []byte {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion("www.example.", dns.TypeA)
	m.Response = true
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	data := unhex(t, options)
	msg[11]++
	msg = append(msg, 0, 0, wire.TypeOPT, 4, 208, 0, 0, 0, 0, byte(len(data)>>8), byte(len(data)))
	return append(msg, data...)
}

// RFC 7871 §7.3.
func TestECSScope(t *testing.T) {
	for _, c := range []struct{ name, sent, options, want string }{
		{"no option: for everyone", "192.0.2.0/24", "", "0.0.0.0/0"},
		{"scope 0: for everyone", "192.0.2.0/24", "0008 0007 0001 18 00 c00002", "0.0.0.0/0"},
		{"a shorter scope", "192.0.2.0/24", "0008 0007 0001 18 10 c00002", "192.0.0.0/16"},
		{"the same", "192.0.2.0/24", "0008 0007 0001 18 18 c00002", "192.0.2.0/24"},
		{"a longer one is for what we asked for", "192.0.2.0/24", "0008 0007 0001 18 20 c00002", "192.0.2.0/24"},
		{"behind another option", "192.0.2.0/24", "000a 0002 ffff 0008 0007 0001 18 10 c00002", "192.0.0.0/16"},
		{"IPv6", "2001:db8:1::/48", "0008 000a 0002 30 20 20010db80001", "2001:db8::/32"},
		{"another subnet", "192.0.2.0/24", "0008 0007 0001 18 18 c00003", "dropped"},
		{"another length", "192.0.2.0/24", "0008 0006 0001 10 10 c000", "dropped"},
		{"another family", "192.0.2.0/24", "0008 0007 0002 18 18 c00002", "dropped"},
		{"malformed", "192.0.2.0/24", "0008 0006 0001 18 18 c000", "dropped"},
		{"empty", "192.0.2.0/24", "0008 0000", "dropped"},
		{"an option that runs over the end", "192.0.2.0/24", "000a ffff 00", "dropped"},
		{"a cut option", "192.0.2.0/24", "000a 00", "dropped"},
		{"ours says nothing: whatever it was asked with", "0.0.0.0/0", "0008 0007 0001 18 18 c63364", "0.0.0.0/0"},
	} {
		got := "dropped"
		if p, sound := answeredScope(netip.MustParsePrefix(c.sent), answerTo(t, c.options)); sound {
			got = p.String()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if p, sound := answeredScope(netip.Prefix{}, answerTo(t, "0008 0007 0001 18 18 c00002")); p.IsValid() || !sound {
		t.Errorf("what nobody asked for counts: %v, %v", p, sound)
	}
}

// What is read is written as it was, and is what the other parser reads.
func FuzzSubnet(f *testing.F) {
	for _, s := range []string{"", "00011800c00002", "0001180ac00002", "0001170ac00003", "0002380020010db8010203", "00010000", "00020000", "0001200000000000"} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, scope, ok := readSubnet(data)
		if !ok {
			return
		}
		if !p.IsValid() || p.Masked() != p || scope < 0 || scope > p.Addr().BitLen() {
			t.Fatalf("%x is read as %v, scope %d", data, p, scope)
		}
		want := bytes.Clone(data)
		want[3] = 0
		if got := appendSubnet(nil, p); !bytes.Equal(got[4:], want) || int(got[3]) != len(want) || got[1] != wire.OptECS {
			t.Fatalf("%x is written as %x", data, got)
		}
		m := new(dns.Msg)
		if err := m.Unpack(query(t, "example.", dns.TypeA, option(wire.OptECS, string(data)))); err != nil {
			t.Fatalf("the other parser does not take %x: %v", data, err)
		}
		e := m.IsEdns0().Option[0].(*dns.EDNS0_SUBNET)
		theirs, _ := netip.AddrFromSlice(e.Address)
		if int(e.SourceNetmask) != p.Bits() || int(e.SourceScope) != scope || theirs.Unmap() != p.Addr().Unmap() {
			t.Fatalf("%x is read as %v, scope %d; by the other parser as %v", data, p, scope, e)
		}
	})
}

// prefixOf is an option as the other parser has read it.
func prefixOf(t *testing.T, e *dns.EDNS0_SUBNET) netip.Prefix {
	t.Helper()
	addr, ok := netip.AddrFromSlice(e.Address)
	if !ok {
		t.Fatalf("no address: %v", e)
	}
	if e.Family == familyIPv4 {
		addr = addr.Unmap()
	}
	return netip.PrefixFrom(addr, int(e.SourceNetmask))
}
