package netsets

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Target is one set of the kernel, and how much of an address goes into it.
// ParseIPSet and ParseNFTSet make it; it is never changed. A Writer keeps the
// pointer that it is given.
type Target struct {
	family string // of the table; empty in an ipset, which has no table
	table  string
	set    string
	v6     bool
	bits   int    // prefix length
	sum    uint64 // of all the above
}

// Takes tells whether the address is of the target's family. One that is IPv4
// mapped into IPv6 is IPv6.
func (t *Target) Takes(a netip.Addr) bool {
	if t.v6 {
		return a.Is6()
	}
	return a.Is4()
}

// String names the set as its tool does.
func (t *Target) String() string {
	if t.family == "" {
		return "ipset " + t.set
	}
	return "nftables set " + t.family + " " + t.table + " " + t.set
}

// prefix is the part of an address that counts.
func (t *Target) prefix(a netip.Addr) netip.Prefix {
	p, _ := a.Prefix(t.bits) // of the family that Takes says
	return p
}

// maxTargets is how many targets one rule has: one per family.
const maxTargets = 2

// The lengths of names that the kernel takes.
const (
	maxIPSetName = 31  // IPSET_MAXNAMELEN, without the octet behind it
	maxNFTName   = 255 // NFT_NAME_MAXLEN, likewise
)

// ParseIPSet reads "set,inet,24 set6,inet6,48": up to two fields of a name, a
// family and a prefix length. The length 0 stands for 24 and 32. Of two fields
// of one family the later counts. No field at all is no target.
func ParseIPSet(args string) ([]Target, error) {
	return parse(args, func(field string) (Target, error) {
		part := strings.Split(field, ",")
		if len(part) != 3 {
			return Target{}, fmt.Errorf("found %d parts, want set,{inet|inet6},mask", len(part))
		}
		t := Target{set: part[0]}
		switch part[1] {
		case "inet":
		case "inet6":
			t.v6 = true
		default:
			return t, fmt.Errorf("family %q is neither inet nor inet6", part[1])
		}
		if err := checkName("set", t.set, maxIPSetName); err != nil {
			return t, err
		}
		return t, t.mask(part[2], 24, 32)
	})
}

// ParseNFTSet reads "inet,table,set,ipv4_addr,24 inet,table,set6,ipv6_addr,48":
// up to two fields of a table's family, its name, a set's name, the type of its
// elements and a prefix length. The length 0, or one below, stands for 24 and
// 48. Of two fields of one type the later counts. No field at all is no target.
func ParseNFTSet(args string) ([]Target, error) {
	return parse(args, func(field string) (Target, error) {
		part := strings.Split(field, ",")
		if len(part) != 5 {
			return Target{}, fmt.Errorf("found %d parts, want {ip|ip6|inet},table,set,{ipv4_addr|ipv6_addr},mask", len(part))
		}
		t := Target{family: part[0], table: part[1], set: part[2]}
		if !slices.Contains([]string{"ip", "ip6", "inet"}, t.family) {
			return t, fmt.Errorf("family %q is none of ip, ip6 and inet", t.family)
		}
		switch part[3] {
		case "ipv4_addr":
		case "ipv6_addr":
			t.v6 = true
		default:
			return t, fmt.Errorf("type %q is neither ipv4_addr nor ipv6_addr", part[3])
		}
		if err := errors.Join(checkName("table", t.table, maxNFTName), checkName("set", t.set, maxNFTName)); err != nil {
			return t, err
		}
		if strings.HasPrefix(part[4], "-") {
			if _, err := strconv.Atoi(part[4]); err == nil {
				part[4] = "0"
			}
		}
		return t, t.mask(part[4], 24, 48)
	})
}

func checkName(what, name string, most int) error {
	if name == "" || len(name) > most || strings.ContainsRune(name, 0) {
		return fmt.Errorf("the name of the %s has %d octets, want 1 to %d, none of them NUL", what, len(name), most)
	}
	return nil
}

// mask reads a prefix length; 0 stands for the others, by family.
func (t *Target) mask(text string, four, six int) error {
	most := 32
	if t.v6 {
		four, most = six, 128
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return fmt.Errorf("mask %q is no prefix length up to %d", text, most)
	}
	if n == 0 {
		n = four
	}
	t.bits = n
	return nil
}

func parse(args string, one func(field string) (Target, error)) ([]Target, error) {
	fields := strings.Fields(args)
	if len(fields) > maxTargets {
		return nil, fmt.Errorf("reading %q: %d sets, at most %d", args, len(fields), maxTargets)
	}
	var all []Target
	for _, field := range fields {
		t, err := one(field)
		if err != nil {
			return nil, fmt.Errorf("reading set %q: %w", field, err)
		}
		t.sum = sum(field)
		all = slices.DeleteFunc(all, func(o Target) bool { return o.v6 == t.v6 })
		all = append(all, t)
	}
	return all, nil
}

// sum is FNV-1a. It spreads the few targets of a configuration; what clients
// choose is hashed with a secret on top of it.
func sum(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
