package netsets

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// spell is all of a target.
func spell(t Target) string {
	family := "4"
	if t.v6 {
		family = "6"
	}
	return fmt.Sprintf("%s/%s %d", t.String(), family, t.bits)
}

func TestParse(t *testing.T) {
	long := strings.Repeat("n", 31)
	for _, c := range []struct{ name, kind, args, want string }{
		{"both families", "ipset", "my,inet,24 my6,inet6,48", "ipset my/4 24; ipset my6/6 48"},
		{"defaults", "ipset", "my,inet,0 my6,inet6,0", "ipset my/4 24; ipset my6/6 32"},
		{"whole addresses", "ipset", "my,inet,32 my6,inet6,128", "ipset my/4 32; ipset my6/6 128"},
		{"one, and spaces", "ipset", "  my6,inet6,64\t", "ipset my6/6 64"},
		{"none", "ipset", " ", ""},
		{"the later of one family", "ipset", "a,inet,8 b,inet,16", "ipset b/4 16"},
		{"longest name", "ipset", long + ",inet,24", "ipset " + long + "/4 24"},
		{"name too long", "ipset", long + "n,inet,24", "error"},
		{"three", "ipset", "a,inet,24 b,inet6,48 c,inet,24", "error"},
		{"too few parts", "ipset", "a,inet", "error"},
		{"too many parts", "ipset", "a,inet,24,1", "error"},
		{"family", "ipset", "a,ip,24", "error"},
		{"no name", "ipset", ",inet,24", "error"},
		{"no mask", "ipset", "a,inet,", "error"},
		{"mask of the other family", "ipset", "a,inet,33", "error"},
		{"mask", "ipset", "a,inet6,129", "error"},
		{"negative mask", "ipset", "a,inet,-1", "error"},
		{"one of two is bad", "ipset", "a,inet,24 b,inet6,x", "error"},

		{"both types", "nftset", "inet,t,s,ipv4_addr,24 ip6,t,s6,ipv6_addr,56", "nftables set inet t s/4 24; nftables set ip6 t s6/6 56"},
		{"defaults", "nftset", "inet,t,s,ipv4_addr,0 inet,t,s6,ipv6_addr,-3", "nftables set inet t s/4 24; nftables set inet t s6/6 48"},
		{"whole addresses", "nftset", "ip,t,s,ipv4_addr,32 ip6,t,s6,ipv6_addr,128", "nftables set ip t s/4 32; nftables set ip6 t s6/6 128"},
		{"none", "nftset", "", ""},
		{"the later of one type", "nftset", "ip,t,a,ipv4_addr,8 ip,t,b,ipv4_addr,16", "nftables set ip t b/4 16"},
		{"family", "nftset", "bridge,t,s,ipv4_addr,24", "error"},
		{"type", "nftset", "inet,t,s,inet,24", "error"},
		{"no table", "nftset", "inet,,s,ipv4_addr,24", "error"},
		{"no set", "nftset", "inet,t,,ipv4_addr,24", "error"},
		{"name too long", "nftset", "inet,t," + strings.Repeat("n", 256) + ",ipv4_addr,24", "error"},
		{"parts", "nftset", "inet,t,s,ipv4_addr", "error"},
		{"mask", "nftset", "inet,t,s,ipv4_addr,33", "error"},
		{"no number", "nftset", "inet,t,s,ipv4_addr,-x", "error"},
		{"three", "nftset", "ip,t,a,ipv4_addr,8 ip,t,b,ipv4_addr,16 ip,t,b,ipv4_addr,16", "error"},
	} {
		parse := ParseIPSet
		if c.kind == "nftset" {
			parse = ParseNFTSet
		}
		var texts []string
		all, err := parse(c.args)
		for _, one := range all {
			texts = append(texts, spell(one))
		}
		got := strings.Join(texts, "; ")
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%s %s: %q is %q (%v), want %q", c.kind, c.name, c.args, got, err, c.want)
		}
	}
}

func TestTakes(t *testing.T) {
	all, err := ParseIPSet("a,inet,24 b,inet6,48")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		addr      string
		four, six bool
	}{
		{"192.0.2.1", true, false},
		{"2001:db8::1", false, true},
		{"::ffff:192.0.2.1", false, true}, // of an AAAA record
	} {
		a := netip.MustParseAddr(c.addr)
		if four, six := all[0].Takes(a), all[1].Takes(a); four != c.four || six != c.six {
			t.Errorf("%s: taken by inet %v, by inet6 %v", c.addr, four, six)
		}
	}
	if all[0].Takes(netip.Addr{}) || all[1].Takes(netip.Addr{}) {
		t.Error("no address at all is taken")
	}
}

// What is read is fit to use, whatever the text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a,inet,24 b,inet6,48", "inet,t,s,ipv4_addr,24 ip6,t,s6,ipv6_addr,-1", "", "a,inet,0", "a\x00,inet,24", ",,", "ip,t,s,ipv4_addr,+8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for kind, parse := range map[string]func(string) ([]Target, error){"ipset": ParseIPSet, "nftset": ParseNFTSet} {
			all, err := parse(s)
			if err != nil && all != nil || len(all) > maxTargets {
				t.Fatalf("%s %q: %d targets, %v", kind, s, len(all), err)
			}
			for i := range all {
				one := &all[i]
				most := 32
				if one.v6 {
					most = 128
				}
				if one.set == "" || one.bits < 1 || one.bits > most || (one.family == "") != (kind == "ipset") || (one.table == "") != (kind == "ipset") {
					t.Errorf("%s %q: %s", kind, s, spell(*one))
				}
				if i > 0 && one.v6 == all[0].v6 {
					t.Errorf("%s %q: two targets of one family", kind, s)
				}
			}
		}
	})
}
