package netsets

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func ipsetTarget(t *testing.T, args string) Target {
	t.Helper()
	all, err := ParseIPSet(args)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %v, %v", args, all, err)
	}
	return all[0]
}

// ipset runs the command of that name, which is not everywhere.
func ipset(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.Command("ipset", strings.Fields(line)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ipset %s: %v\n%s", line, err, out)
	}
	return string(out)
}

// members checks what is in an ipset.
func members(t *testing.T, set string, want ...string) {
	t.Helper()
	_, list, ok := strings.Cut(ipset(t, "list -sorted "+set), "Members:\n")
	var got []string
	for line := range strings.Lines(list) {
		got = append(got, strings.Fields(line)[0])
	}
	slices.Sort(got)
	if !ok || !slices.Equal(got, want) {
		t.Errorf("ipset %s has %q, want %q", set, got, want)
	}
}

// hasIPSet skips a test where there are no ipsets.
func hasIPSet(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ipset"); err != nil {
		t.Skip("no command ipset: apt-get install ipset")
	}
	if out, err := exec.Command("ipset", "list", "-name").CombinedOutput(); err != nil {
		t.Skipf("this kernel has no ipsets: %v\n%s", err, out)
	}
}

func TestIPSet(t *testing.T) {
	if !alone(t) {
		return
	}
	hasIPSet(t)
	k := newKernel(t)
	for _, c := range []struct {
		name, create, target, add string
		want                      []string
	}{
		{"prefixes", "hash:net", "inet,24", "192.0.2.1 192.0.2.77 198.51.100.9", []string{"192.0.2.0/24", "198.51.100.0/24"}},
		{"prefixes 6", "hash:net family inet6", "inet6,48", "2001:db8:1:2::3 2001:db8:1:3::4 2001:db8:2::1", []string{"2001:db8:1::/48", "2001:db8:2::/48"}},
		{"the lengths of 0", "hash:net family inet6", "inet6,0", "2001:db8:1:2::3", []string{"2001:db8::/32"}},
		{"whole addresses", "hash:net", "inet,32", "192.0.2.255", []string{"192.0.2.255"}},
		{"a set of addresses", "hash:ip", "inet,32", "192.0.2.1 192.0.2.2", []string{"192.0.2.1", "192.0.2.2"}},
		{"a set of addresses, a prefix", "hash:ip", "inet,30", "192.0.2.1", []string{"192.0.2.0", "192.0.2.1", "192.0.2.2", "192.0.2.3"}},
		{"a set of addresses 6", "hash:ip family inet6", "inet6,128", "2001:db8::1", []string{"2001:db8::1"}},
		{"the last prefix of all", "hash:net", "inet,24", "255.255.255.255", []string{"255.255.255.0/24"}},
	} {
		t.Log(c.name)
		ipset(t, "create s "+c.create)
		k.add(ipsetTarget(t, "s,"+c.target), c.add, 0)
		members(t, "s", c.want...)
		k.pass()
		k.add(ipsetTarget(t, "s,"+c.target), c.add, 0) // what is there may be added again
		members(t, "s", c.want...)
		ipset(t, "destroy s")
		k.pass()
	}
}

func TestIPSetFails(t *testing.T) {
	if !alone(t) {
		return
	}
	hasIPSet(t)
	k := newKernel(t)
	one := ipsetTarget(t, "s,inet,24")
	k.add(one, "192.0.2.1", 1)
	ipset(t, "create s hash:net")
	k.add(one, "192.0.2.1", 1)
	members(t, "s", "192.0.2.0/24")

	ipset(t, "destroy s")
	k.add(one, "192.0.3.1", 2)
	ipset(t, "create s hash:net")
	k.add(one, "192.0.2.1", 2) // that the old set had it is forgotten
	members(t, "s", "192.0.2.0/24")

	ipset(t, "create six hash:net family inet6")
	k.add(ipsetTarget(t, "six,inet,24"), "192.0.2.1", 3)
	ipset(t, "create full hash:net maxelem 1")
	k.add(ipsetTarget(t, "full,inet,24"), "192.0.2.1 192.0.3.1", 4)
	ipset(t, "create whole hash:ip family inet6")
	k.add(ipsetTarget(t, "whole,inet6,48"), "2001:db8::1", 5)
	for _, want := range []string{"there is none of that name", "it is of the other family", "the set is full", "no prefix of that length"} {
		if !strings.Contains(k.log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &k.log)
		}
	}
}

// Elements that time out are written again in time.
func TestIPSetTimeout(t *testing.T) {
	if !alone(t) {
		return
	}
	hasIPSet(t)
	k := newKernel(t)
	ipset(t, "create s hash:net timeout 40")
	one := ipsetTarget(t, "s,inet,24")
	k.add(one, "192.0.2.1", 0)
	ipset(t, "flush s")
	k.now.Add(int64(10*time.Second) - 1)
	k.add(one, "192.0.2.1", 0)
	members(t, "s")
	k.now.Add(1)
	k.add(one, "192.0.2.1", 0)
	members(t, "s", "192.0.2.0/24")
}
