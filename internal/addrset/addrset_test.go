package addrset

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func prefixes(t testing.TB, texts ...string) []netip.Prefix {
	t.Helper()
	var all []netip.Prefix
	for _, text := range texts {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func TestContains(t *testing.T) {
	for _, c := range []struct {
		name, set, addr string
		want            bool
	}{
		{"first address", "192.0.2.0/24", "192.0.2.0", true},
		{"last address", "192.0.2.0/24", "192.0.2.255", true},
		{"one below", "192.0.2.0/24", "192.0.1.255", false},
		{"one above", "192.0.2.0/24", "192.0.3.0", false},
		{"lone address", "192.0.2.1", "192.0.2.1", true},
		{"beside a lone address", "192.0.2.1", "192.0.2.2", false},
		{"IPv6", "2001:db8::/32", "2001:db8:ffff::1", true},
		{"beside IPv6", "2001:db8::/32", "2001:db9::", false},
		{"all of IPv4", "0.0.0.0/0", "255.255.255.255", true},
		{"all of IPv4 holds no IPv6", "0.0.0.0/0", "::1", false},
		{"all of IPv6 holds no IPv4", "::/0", "192.0.2.1", false},
		{"all of IPv6 holds no mapped IPv4", "::/0", "::ffff:192.0.2.1", false},
		{"mapped address", "192.0.2.0/24", "::ffff:192.0.2.7", true},
		{"mapped prefix", "::ffff:192.0.2.0/120", "192.0.2.7", true},
		{"mapped lone address", "::ffff:192.0.2.7", "192.0.2.7", true},
		{"zone", "fe80::/10", "fe80::1%eth0", true},
		{"zone of a lone address", "fe80::1", "fe80::1%eth0", true},
		{"overlap", "10.0.0.0/8 10.1.0.0/16", "10.2.0.1", true},
		{"of several", "10.0.0.0/8 2001:db8::/32 192.0.2.1", "192.0.2.1", true},
		{"empty set", "", "192.0.2.1", false},
	} {
		s := New(prefixes(t, strings.Fields(c.set)...))
		if got := s.Contains(netip.MustParseAddr(c.addr)); got != c.want {
			t.Errorf("%s: %q contains %s: %v", c.name, c.set, c.addr, got)
		}
	}
	if (*Set)(nil).Contains(netip.MustParseAddr("192.0.2.1")) {
		t.Error("a nil set contains an address")
	}
	if New(prefixes(t, "0.0.0.0/0", "::/0")).Contains(netip.Addr{}) {
		t.Error("a set contains the invalid address")
	}
}

// A set says what a walk over its prefixes says, and a map finds the longest.
func TestAsByHand(t *testing.T) {
	addrs := rapid.Custom(func(rt *rapid.T) netip.Addr {
		// Few values per octet, so that prefixes and addresses meet.
		octet := func() byte { return rapid.SampledFrom([]byte{0, 1, 127, 128, 255}).Draw(rt, "octet") }
		switch rapid.IntRange(0, 2).Draw(rt, "family") {
		case 0:
			return netip.AddrFrom4([4]byte{octet(), octet(), octet(), octet()})
		case 1:
			return netip.AddrFrom16(netip.AddrFrom4([4]byte{octet(), octet(), octet(), octet()}).As16())
		}
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, octet(), octet(), octet(), octet(), 14: octet(), 15: octet()})
	})
	rapid.Check(t, func(rt *rapid.T) {
		var list []netip.Prefix
		var entries []Entry[int]
		for range rapid.IntRange(0, 12).Draw(rt, "prefixes") {
			addr := addrs.Draw(rt, "prefix").Unmap()
			p := netip.PrefixFrom(addr, rapid.IntRange(0, addr.BitLen()).Draw(rt, "length"))
			entries = append(entries, Entry[int]{p, len(list)})
			list = append(list, p)
		}
		set, m := New(list), NewMap(entries)
		for range 8 {
			addr := addrs.Draw(rt, "address")
			best := -1
			for i, p := range list {
				if p.Contains(addr.Unmap()) && (best < 0 || p.Bits() >= list[best].Bits()) {
					best = i
				}
			}
			if got := set.Contains(addr); got != (best >= 0) {
				rt.Fatalf("%v contains %s: %v", list, addr, got)
			}
			if got, ok := m.Find(addr); ok != (best >= 0) || ok && got != best {
				rt.Fatalf("%v finds %d, %v for %s; want %d", list, got, ok, addr, best)
			}
		}
	})
}

func TestMap(t *testing.T) {
	p := prefixes(t, "10.0.0.0/8", "10.1.0.0/16", "::/0", "10.1.0.0/16")
	m := NewMap([]Entry[string]{{p[0], "wide"}, {p[1], "narrow"}, {p[2], "six"}, {p[3], "again"}})
	find := func(addr, want string) {
		t.Helper()
		if got, ok := m.Find(netip.MustParseAddr(addr)); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", addr, got, ok, want)
		}
	}
	find("10.2.0.1", "wide")
	find("10.1.0.1", "again") // the later of two
	find("::ffff:10.1.0.1", "again")
	find("2001:db8::1%eth0", "six")
	find("11.0.0.0", "")
	if _, ok := (*Map[string])(nil).Find(netip.MustParseAddr("::1")); ok {
		t.Error("a nil map finds something")
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want, mistake string }{
		{text: "192.0.2.0/24", want: "192.0.2.0/24"},
		{text: "192.0.2.1", want: "192.0.2.1/32"},
		{text: "0.0.0.0/0", want: "0.0.0.0/0"},
		{text: "2001:DB8:0:0::/32", want: "2001:db8::/32"},
		{text: "2001:db8::1", want: "2001:db8::1/128"},
		{text: "::ffff:192.0.2.0/120", want: "192.0.2.0/24"},
		{text: "::ffff:192.0.2.1", want: "192.0.2.1/32"},
		{text: "::/80", want: "::/80"},
		{text: "10.1.2.3/8", mistake: "write 10.0.0.0/8 for the network, or 10.1.2.3 for the one address"},
		{text: "2001:db8::1/64", mistake: "write 2001:db8::/64 for the network, or 2001:db8::1 for the one address"},
		{text: "::ffff:10.1.2.3/104", mistake: "write 10.0.0.0/8 for the network, or 10.1.2.3 for the one address"},
		{text: "::ffff:10.0.0.0/90", mistake: "write ::ffc0:0:0/90 for the network"},
		{text: "fe80::1%eth0", mistake: "leave out the %"},
		{text: "fe80::%eth0/10", mistake: "leave out the %"},
		{text: "", mistake: "no IP address"},
		{text: "example", mistake: "no IP address"},
		{text: "192.0.2", mistake: "no IP address"},
		{text: "192.0.2.01", mistake: "no IP address"},
		{text: " 192.0.2.1", mistake: "no IP address"},
		{text: "192.0.2.0/33", mistake: "no IP prefix"},
		{text: "192.0.2.0/", mistake: "no IP prefix"},
		{text: "192.0.2.0/024", mistake: "no IP prefix"},
		{text: "192.0.2.0/255.255.255.0", mistake: "a slash and a length"},
		{text: "2001:db8::/129", mistake: "no IP prefix"},
	} {
		got, err := Parse(c.text)
		switch {
		case c.mistake == "" && (err != nil || got.String() != c.want):
			t.Errorf("%q: %v, %v; want %s", c.text, got, err, c.want)
		case c.mistake != "" && (err == nil || !strings.Contains(err.Error(), c.mistake) || got.IsValid()):
			t.Errorf("%q: %v, %v; want an error with %q", c.text, got, err, c.mistake)
		}
	}
}

func TestInvalidPrefixPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a set was made of an invalid prefix")
		}
	}()
	New([]netip.Prefix{{}})
}

func TestPrivate(t *testing.T) {
	s := New(Private())
	for _, c := range []struct {
		rfc, first, last, beside string
	}{
		{"RFC 1122 §3.2.1.3", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
		{"RFC 4291 §2.5.3", "::1", "::1", "::2"},
		{"RFC 3927 §2.1", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
		{"RFC 4291 §2.5.6", "fe80::", "febf:ffff::", "fec0::"},
		{"RFC 1918 §3", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
		{"RFC 1918 §3", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
		{"RFC 1918 §3", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
		{"RFC 6598 §7", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
		{"RFC 4193 §3.1", "fc00::", "fdff:ffff::", "fe00::"},
	} {
		for addr, want := range map[string]bool{c.first: true, c.last: true, c.beside: false} {
			if s.Contains(netip.MustParseAddr(addr)) != want {
				t.Errorf("%s: %s is private: %v", c.rfc, addr, !want)
			}
		}
	}
	Private()[0] = netip.Prefix{} // the caller's own
	if !Private()[0].IsValid() {
		t.Error("two callers share one slice")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"192.0.2.0/24", "10.1.2.3/8", "::ffff:10.0.0.0/104", "2001:db8::1", "fe80::1%eth0", "1.2.3.4/", "::/0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			if p.IsValid() {
				t.Fatalf("%q: %v with an error", text, p)
			}
			return
		}
		if p != p.Masked() || p.Addr().Is4In6() && p.Bits() >= 96 || p.Addr().Zone() != "" {
			t.Fatalf("%q: %v is not canonical", text, p)
		}
		if again, err := Parse(p.String()); err != nil || again != p {
			t.Fatalf("%q: %v reads as %v, %v", text, p, again, err)
		}
		addr, err := netip.ParseAddr(strings.Split(text, "/")[0])
		if err != nil || p.Addr() != addr.Unmap() {
			t.Fatalf("%q: %v has another address", text, p)
		}
		// Of mapped prefixes shorter than 96 bits there is none without host bits.
		if !New([]netip.Prefix{p}).Contains(addr) {
			t.Fatalf("%q: %v does not contain %v", text, p, addr)
		}
	})
}

// many is a set of the size of a country list.
func many() []netip.Prefix {
	var all []netip.Prefix
	for i := range 10_000 {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i >> 6), byte(i << 2), byte(i * 37), 0}), 16+i%9))
	}
	return all
}

func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	s := New(many())
	m := NewMap([]Entry[int]{{netip.MustParsePrefix("10.0.0.0/8"), 1}})
	for _, text := range []string{"10.2.3.4", "::ffff:10.2.3.4", "fe80::1%eth0"} {
		addr := netip.MustParseAddr(text)
		if n := testing.AllocsPerRun(100, func() { s.Contains(addr); m.Find(addr) }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

func BenchmarkContains(b *testing.B) {
	for _, c := range []struct {
		name     string
		prefixes []netip.Prefix
	}{{"private", Private()}, {"10000", many()}} {
		b.Run(c.name, func(b *testing.B) {
			s, addr := New(c.prefixes), netip.MustParseAddr("192.168.3.4")
			b.ReportAllocs()
			for b.Loop() {
				s.Contains(addr)
			}
		})
	}
}
